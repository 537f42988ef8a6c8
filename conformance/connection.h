// A conversation with one implementation: sends messages, keeps what has come, and holds every message to the contract.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/contract.h"
#include "conformance/framing.h"
#include "conformance/json_text.h"
#include "conformance/process.h"

namespace conformance {

class Connection {
 public:
  /// `secretPath` must not turn up in an error.
  Connection(std::unique_ptr<Process> process, const Contract& contract, Framing framing, std::string secretPath);

  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] std::deque<Json>& inbox() { return inbox_; }
  /// An id that no other request of the runner has.
  int nextId() { return nextId_++; }

  /// Sends one message or batch and remembers its ids. `deliberatelyInvalid` leaves out the check of parameters.
  std::optional<std::string> send(const Json& message, bool deliberatelyInvalid);
  /// Sends bytes as they are; whatever requests they hold are found out and remembered.
  void sendRaw(std::string_view bytes);

  /// Waits until `found` likes the inbox. nullopt when it did; else what went wrong: the time was up, the output ended,
  /// or a message broke the contract.
  std::optional<std::string> waitFor(const std::function<bool()>& found, Deadline deadline);
  /// The same, but until the implementation has closed its output and ended.
  std::optional<std::string> waitForEnd(Deadline deadline);

 private:
  void remember(const Json& message);
  void rememberLines(std::string_view bytes);
  std::optional<std::string> receive();
  std::optional<std::string> judge(const Json& message);
  std::optional<std::string> judgeAnswer(const Json& answer);
  std::optional<std::string> judgeOutcome(const std::string& method, const Json& answer);

  std::unique_ptr<Process> process_;
  const Contract& contract_;
  Framing framing_;
  std::string secretPath_;
  FrameReader reader_;
  std::deque<Json> inbox_;
  std::map<std::string, std::string> pending_;  ///< id to method, "" when the method is unknown
  bool sentRaw_ = false;                        ///< then an unknown id may be one that we could not read ourselves
  int nextId_ = 1001;
};

}  // namespace conformance
