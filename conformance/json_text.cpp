#include "conformance/json_text.h"

#include <set>
#include <stdexcept>
#include <vector>

namespace conformance {
namespace {

constexpr int kMaxDepth = 512;
constexpr std::size_t kShownString = 200;

Json withShortStrings(const Json& value) {
  if (value.is_string() && value.get_ref<const std::string&>().size() > kShownString) {
    const auto& text = value.get_ref<const std::string&>();
    return text.substr(0, kShownString) + "...(" + std::to_string(text.size()) + " bytes)";
  }
  if (!value.is_structured()) {
    return value;
  }
  Json copy = value;
  for (auto& member : copy) {
    member = withShortStrings(member);
  }
  return copy;
}

}  // namespace

std::optional<Json> parseStrict(std::string_view text, std::string& problem) {
  std::vector<std::set<std::string>> names;
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) {
      throw std::length_error("more than 512 levels");  // the library copies and destroys by recursion
    }
    if (event == Json::parse_event_t::object_start) {
      names.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      names.pop_back();
    } else if (event == Json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second) {
      problem = "the member " + parsed.dump() + " comes twice";
    }
    return true;
  };
  try {
    Json value = Json::parse(text, watch);
    return problem.empty() ? std::optional<Json>(std::move(value)) : std::nullopt;
  } catch (const std::exception& error) {
    problem = error.what();
    return std::nullopt;
  }
}

std::string show(const Json& value, std::size_t maxBytes) {
  std::string text = withShortStrings(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > maxBytes) {
    const std::size_t left = text.size() - maxBytes;
    text.resize(maxBytes);
    text += "...(" + std::to_string(left) + " more bytes)";
  }
  return text;
}

std::string keyOf(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace conformance
