#include <boost/json/serialize.hpp>

#include <cmath>
#include <limits>

#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"
#include "schema/schema.h"
#include "schema/schema_node.h"

namespace stitchkit {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxIssues = 32;

std::string typeNames(std::uint8_t types) {
  static constexpr std::pair<std::uint8_t, std::string_view> kNames[] = {
      {kNullType, "null"},       {kBooleanType, "a boolean"}, {kIntegerType, "an integer"}, {kNumberType, "a number"},
      {kStringType, "a string"}, {kArrayType, "an array"},    {kObjectType, "an object"},
  };
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if ((types & bit) != 0) {
      text += text.empty() ? "" : " or ";
      text += name;
    }
  }
  return text;
}

// The member's name may be the caller's.
std::string joined(const std::string& path, std::string_view member) {
  std::string whole = path;
  if (!whole.empty()) {
    whole += '.';
  }
  return whole.append(excerpt(member, limits::kEchoedCharacters));
}

std::string shortText(double number) {
  const json::value value = number == std::floor(number) && std::abs(number) < 1e15
                                ? json::value(static_cast<std::int64_t>(number))
                                : json::value(number);
  return json::serialize(value);
}

class Checker {
 public:
  explicit Checker(std::vector<ValidationIssue>& issues) : issues_(issues) {}

  void check(const SchemaNode& schema, json::value& value, const std::string& path) {
    if (issues_.size() >= kMaxIssues) {
      return;
    }
    normalise(schema, value);
    const std::uint8_t type = typeOf(value);
    if (!accepts(schema, type)) {
      issue(path, "must be " + typeNames(schema.types));
      return;
    }
    checkAllowed(schema, value, path);
    switch (type) {
      case kIntegerType:
      case kNumberType:
        checkNumber(schema, value, path);
        break;
      case kStringType:
        checkString(schema, value, path);
        break;
      case kArrayType:
        checkArray(schema, value, path);
        break;
      case kObjectType:
        checkObject(schema, value, path);
        break;
      default:
        break;
    }
    if (!schema.alternatives.empty()) {
      checkAlternatives(schema, value, path);
    }
  }

 private:
  void issue(const std::string& path, std::string message) {
    if (issues_.size() < kMaxIssues) {
      issues_.push_back({path, std::move(message)});
    }
  }

  // JSON has one kind of number: 5.0 and 5 are the same integer.
  static bool isIntegral(const json::value& value) {
    constexpr double kExact = 9007199254740992.0;
    return value.is_double() && value.get_double() == std::floor(value.get_double()) &&
           std::abs(value.get_double()) <= kExact;
  }

  static void normalise(const SchemaNode& schema, json::value& value) {
    if ((schema.types & kIntegerType) != 0 && isIntegral(value)) {
      value = static_cast<std::int64_t>(value.get_double());
    }
  }

  void checkAllowed(const SchemaNode& schema, const json::value& value, const std::string& path) {
    if (schema.allowed.empty()) {
      return;
    }
    std::string list;
    for (const json::value& candidate : schema.allowed) {
      if (candidate == value) {
        return;
      }
      list += (list.empty() ? "" : ", ") + json::serialize(candidate);
    }
    issue(path, (schema.allowed.size() == 1 ? "must be " : "must be one of ") + list);
  }

  void checkNumber(const SchemaNode& schema, const json::value& value, const std::string& path) {
    if (value.is_uint64() &&
        value.get_uint64() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      issue(path, "must be at most 9223372036854775807");
      return;
    }
    const double number = value.to_number<double>();
    if (schema.minimum && number < *schema.minimum) {
      issue(path, "must be at least " + shortText(*schema.minimum));
    }
    if (schema.exclusiveMinimum && number <= *schema.exclusiveMinimum) {
      issue(path, "must be more than " + shortText(*schema.exclusiveMinimum));
    }
    if (schema.maximum && number > *schema.maximum) {
      issue(path, "must be at most " + shortText(*schema.maximum));
    }
  }

  void checkSize(const SchemaNode& schema, std::size_t size, const char* unit, const std::string& path) {
    if (schema.minSize && size < *schema.minSize) {
      issue(path, "must have at least " + std::to_string(*schema.minSize) + " " + unit);
    }
    if (schema.maxSize && size > *schema.maxSize) {
      issue(path, "must have at most " + std::to_string(*schema.maxSize) + " " + unit);
    }
  }

  void checkString(const SchemaNode& schema, const json::value& value, const std::string& path) {
    const std::string_view text = view(value.get_string());
    if (schema.minSize || schema.maxSize) {
      std::size_t characters = 0;
      for (const char c : text) {
        characters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
      }
      checkSize(schema, characters, "characters", path);
    }
    if (schema.pattern && !re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *schema.pattern)) {
      issue(path, "must match " + schema.pattern->pattern());
    }
  }

  void checkArray(const SchemaNode& schema, json::value& value, const std::string& path) {
    json::array& array = value.get_array();
    checkSize(schema, array.size(), "items", path);
    for (std::size_t i = 0; schema.items != nullptr && i < array.size(); ++i) {
      check(*schema.items, array[i], joined(path, std::to_string(i)));
    }
  }

  void checkObject(const SchemaNode& schema, json::value& value, const std::string& path) {
    json::object& object = value.get_object();
    checkSize(schema, object.size(), "members", path);
    for (const std::string& name : schema.required) {
      if (!object.contains(name)) {
        issue(joined(path, name), "is required");
      }
    }
    for (auto& member : object) {
      const std::string_view name(member.key().data(), member.key().size());
      const auto known = schema.properties.find(name);
      if (known != schema.properties.end()) {
        check(*known->second, member.value(), joined(path, name));
      } else if (schema.additional != nullptr) {
        check(*schema.additional, member.value(), joined(path, name));
      } else if (schema.closed) {
        issue(joined(path, name), "is not known here");
      }
    }
    for (const auto& [name, property] : schema.properties) {
      if (property->defaultValue && !object.contains(name)) {
        object.emplace(name, *property->defaultValue);
      }
    }
  }

  static bool accepts(const SchemaNode& schema, std::uint8_t type) {
    const std::uint8_t types = schema.types | ((schema.types & kNumberType) != 0 ? kIntegerType : 0);
    return types == 0 || (types & type) != 0;
  }

  // Most unions differ by type, so that one form is left: it is checked in place, and its issues are the answer.
  void checkAlternatives(const SchemaNode& schema, json::value& value, const std::string& path) {
    std::vector<const SchemaNode*> candidates;
    std::uint8_t types = 0;
    const std::uint8_t type = isIntegral(value) ? std::uint8_t{kIntegerType} : typeOf(value);
    for (const SchemaNode* form : schema.alternatives) {
      types |= form->types;
      if (accepts(*form, type)) {
        candidates.push_back(form);
      }
    }
    if (candidates.empty()) {
      issue(path, "must be " + typeNames(types));
    } else if (candidates.size() == 1) {
      check(*candidates.front(), value, path);
    } else {
      checkCandidates(schema, candidates, value, path);
    }
  }

  void checkCandidates(const SchemaNode& schema, const std::vector<const SchemaNode*>& candidates, json::value& value,
                       const std::string& path) {
    std::size_t matches = 0;
    json::value matched;
    std::vector<ValidationIssue> fewest;
    for (const SchemaNode* form : candidates) {
      std::vector<ValidationIssue> found;
      json::value copy = value;
      Checker(found).check(*form, copy, path);
      if (found.empty() && ++matches == 1) {
        matched = std::move(copy);
      }
      if (fewest.empty() || found.size() < fewest.size()) {
        fewest = std::move(found);
      }
    }
    if (matches == 1 || (matches > 1 && !schema.exactlyOne)) {
      value = std::move(matched);
    } else if (matches > 1) {
      issue(path, "matches more than one of its forms");
    } else {
      for (ValidationIssue& found : fewest) {
        issue(found.path, std::move(found.message));
      }
    }
  }

  std::vector<ValidationIssue>& issues_;
};

}  // namespace

void checkAgainst(const SchemaNode& schema, json::value& value, const std::string& path,
                  std::vector<ValidationIssue>& issues) {
  Checker(issues).check(schema, value, path);
}

}  // namespace stitchkit
