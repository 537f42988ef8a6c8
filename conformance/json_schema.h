// JSON Schema, judged by valijson. The only user of that header-only library, which is slow to compile.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "conformance/json_text.h"

namespace conformance {

/// One compiled schema (draft 7). May be asked by many threads at once; they are served one after another.
class JsonSchema {
 public:
  /// Throws std::exception for what is no schema.
  explicit JsonSchema(const Json& schema);
  JsonSchema(JsonSchema&& other) noexcept;
  JsonSchema& operator=(JsonSchema&& other) noexcept;
  ~JsonSchema();

  [[nodiscard]] bool accepts(const Json& value) const;
  /// Nullopt when all is well, else one line for a person.
  [[nodiscard]] std::optional<std::string> problemOf(const Json& value) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace conformance
