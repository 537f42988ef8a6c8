// The OpenRPC document as a judge of messages, and the schema of case files.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "conformance/json_text.h"

namespace conformance {

/// Compiled once, then read by many threads at once. Every check returns nullopt when
/// all is well, else one line for a person.
class Contract {
 public:
  /// Compiles the document. On failure null, and `problem` says why.
  static std::unique_ptr<Contract> compile(const Json& document, std::string& problem);
  ~Contract();
  Contract(const Contract&) = delete;
  Contract& operator=(const Contract&) = delete;

  /// Whether the document has it for the host to call or to notify.
  [[nodiscard]] bool knows(const std::string& method) const;
  /// Parameters of a call or of a notification from the host.
  [[nodiscard]] std::optional<std::string> checkParams(const std::string& method, const Json& params) const;
  /// Results and errors are judged in both directions.
  [[nodiscard]] std::optional<std::string> checkResult(const std::string& method, const Json& result) const;
  /// `error` of an answer: its shape, number and name agree, and the method (when known, else "") lists it.
  [[nodiscard]] std::optional<std::string> checkError(const std::string& method, const Json& error) const;
  /// A notification from the implementation.
  [[nodiscard]] std::optional<std::string> checkNotification(const std::string& method, const Json& params) const;
  /// A request from the implementation.
  [[nodiscard]] std::optional<std::string> checkHostRequest(const std::string& method, const Json& params) const;

 private:
  struct Compiled;
  explicit Contract(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

/// Judges any value by any schema (used for case files).
std::optional<std::string> checkAgainst(const Json& schema, const Json& value);

}  // namespace conformance
