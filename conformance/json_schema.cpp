#include "conformance/json_schema.h"

#include <algorithm>
#include <mutex>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace conformance {
namespace {

using Adapter = valijson::adapters::NlohmannJsonAdapter;

/// The innermost faults say most; the outer ones follow from them.
std::string describe(valijson::ValidationResults& results) {
  std::string text;
  valijson::ValidationResults::Error error;
  for (int shown = 0; results.popError(error) && shown < 4;) {
    std::string where;
    for (const auto& part : error.context) {
      where += part;
    }
    text += (shown++ == 0 ? "" : "; ") + where + ": " + error.description;
  }
  return text;
}

/// The validator takes NUL for the end of a text.
Json withoutNul(Json value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    std::replace(text.begin(), text.end(), '\0', '\1');
  } else if (value.is_structured()) {
    for (auto& member : value) {
      member = withoutNul(std::move(member));
    }
  }
  return value;
}

}  // namespace

struct JsonSchema::Compiled {
  valijson::Schema schema;
  std::mutex mutex;  ///< the validator caches its regular expressions
  valijson::Validator validator{valijson::Validator::kStrongTypes};
};

JsonSchema::JsonSchema(const Json& schema) : compiled_(std::make_unique<Compiled>()) {
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  parser.populateSchema(Adapter(schema), compiled_->schema);
}

JsonSchema::JsonSchema(JsonSchema&& other) noexcept = default;
JsonSchema& JsonSchema::operator=(JsonSchema&& other) noexcept = default;
JsonSchema::~JsonSchema() = default;

bool JsonSchema::accepts(const Json& value) const {
  const Json checked = withoutNul(value);
  const std::scoped_lock lock(compiled_->mutex);
  return compiled_->validator.validate(compiled_->schema, Adapter(checked), nullptr);
}

std::optional<std::string> JsonSchema::problemOf(const Json& value) const {
  valijson::ValidationResults results;
  const Json checked = withoutNul(value);
  const std::scoped_lock lock(compiled_->mutex);
  if (compiled_->validator.validate(compiled_->schema, Adapter(checked), &results)) {
    return std::nullopt;
  }
  return describe(results);
}

}  // namespace conformance
