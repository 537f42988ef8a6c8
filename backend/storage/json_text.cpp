#include "backend/storage/json_text.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>

namespace stitchkit {

namespace {

/// The letter after the backslash for characters that have one, else 0.
char shortEscape(char character) {
  switch (character) {
    case '\b':
      return 'b';
    case '\t':
      return 't';
    case '\n':
      return 'n';
    case '\f':
      return 'f';
    case '\r':
      return 'r';
    case '"':
    case '\\':
      return character;
    default:
      return 0;
  }
}

/// The object, or an empty one.
boost::json::object parseObject(std::string_view text) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(boost::json::string_view(text.data(), text.size()), error);
  return !error && value.is_object() ? std::move(value.get_object()) : boost::json::object();
}

const boost::json::string* findString(const boost::json::object& object, std::string_view name) {
  const boost::json::value* const value = object.if_contains(boost::json::string_view(name.data(), name.size()));
  return value != nullptr ? value->if_string() : nullptr;
}

}  // namespace

void appendJsonString(std::string& out, std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (const char letter = shortEscape(character); letter != 0) {
      out += '\\';
      out += letter;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4U];
      out += kDigits[byte & 15U];
    } else {
      out += character;
    }
  }
  out += '"';
}

std::string writeStringObject(const StringMembers& members) {
  std::string text = "{";
  for (const auto& [name, value] : members) {
    text += text.size() > 1 ? "," : "";
    appendJsonString(text, name);
    text += ':';
    appendJsonString(text, value);
  }
  return text + '}';
}

bool isStringObject(std::string_view text, const StringMembers& members) {
  const boost::json::object object = parseObject(text);
  return object.size() == members.size() && std::all_of(members.begin(), members.end(), [&](const auto& member) {
           const boost::json::string* const value = findString(object, member.first);
           return value != nullptr && std::string_view(value->data(), value->size()) == member.second;
         });
}

std::string stringMember(std::string_view text, std::string_view name) {
  const boost::json::object object = parseObject(text);
  const boost::json::string* const value = findString(object, name);
  return value != nullptr ? std::string(value->data(), value->size()) : std::string();
}

}  // namespace stitchkit
