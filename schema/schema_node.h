// The compiled form of one schema. Private to the schema room.
#pragma once

#include <re2/re2.h>
#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

enum JsonType : std::uint8_t {
  kNullType = 1,
  kBooleanType = 2,
  kIntegerType = 4,
  kNumberType = 8,
  kStringType = 16,
  kArrayType = 32,
  kObjectType = 64,
};

/// The bit of JsonType that a value has.
std::uint8_t typeOf(const boost::json::value& value);

inline std::string_view view(const boost::json::string& text) {
  return {text.data(), text.size()};
}

struct SchemaNode {
  std::uint8_t types = 0;  // bits of JsonType; 0 allows all
  std::map<std::string, const SchemaNode*, std::less<>> properties;
  std::vector<std::string> required;
  bool closed = false;                     // additionalProperties: false
  const SchemaNode* additional = nullptr;  // additionalProperties: a schema
  const SchemaNode* items = nullptr;
  std::vector<boost::json::value> allowed;      // enum, const
  std::vector<const SchemaNode*> alternatives;  // oneOf, anyOf
  bool exactlyOne = false;                      // oneOf
  std::optional<double> minimum;
  std::optional<double> exclusiveMinimum;
  std::optional<double> maximum;
  std::optional<std::size_t> minSize;  // characters, items or members, as the type says
  std::optional<std::size_t> maxSize;
  std::unique_ptr<re2::RE2> pattern;
  std::optional<boost::json::value> defaultValue;
};

}  // namespace stitchkit
