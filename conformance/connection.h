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

/// What a host says to a request of the implementation.
struct HostReply {
  std::optional<Json> outcome;  ///< `{result}` or `{error}`; none: it never says anything
  bool invalid = false;         ///< breaks the document on purpose
};

/// nullopt leaves the request in the inbox.
using HostHandler = std::function<std::optional<HostReply>(const std::string& method, const Json& params)>;

class Connection {
 public:
  /// `secretPath` must not turn up in an error.
  Connection(std::unique_ptr<Process> process, const Contract& contract, Framing framing, std::string secretPath);

  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] std::deque<Json>& inbox() { return inbox_; }
  /// Is asked about every request of the implementation, and told when one is cancelled, as soon as that has come.
  void setHost(HostHandler host) { host_ = std::move(host); }
  /// No message may hold one of these.
  void setSecrets(std::vector<std::string> secrets) { secrets_ = std::move(secrets); }
  /// An id that no other request of the runner has.
  int nextId() { return nextId_++; }

  /// Sends one message or batch (calls, notifications, answers) and remembers its ids. `deliberatelyInvalid` leaves out
  /// the check against the document.
  std::optional<std::string> send(const Json& message, bool deliberatelyInvalid);
  /// Sends bytes as they are; whatever requests they hold are found out and remembered.
  void sendRaw(std::string_view bytes);

  /// Waits until `found` likes the inbox. nullopt when it did; else what went wrong: the time was up, the output ended,
  /// or a message broke the contract.
  std::optional<std::string> waitFor(const std::function<bool()>& found, Deadline deadline);
  /// The same, but until the implementation has closed its output and ended.
  std::optional<std::string> waitForEnd(Deadline deadline);
  /// Takes what has come already. nullopt, or how it breaks the contract.
  std::optional<std::string> takeArrived();

 private:
  void remember(const Json& message);
  void rememberLines(std::string_view bytes);
  std::optional<std::string> judgeOwnAnswer(const Json& answer, bool deliberatelyInvalid);
  /// True when the host has taken it.
  bool offerToHost(const Json& request, std::optional<std::string>& problem);
  std::optional<std::string> receive();
  std::optional<std::string> judge(const Json& message);
  [[nodiscard]] std::optional<std::string> judgeNotification(const std::string& method, const Json& params) const;
  std::optional<std::string> judgeHostRequest(const Json& request);
  std::optional<std::string> judgeAnswer(const Json& answer);
  std::optional<std::string> judgeOutcome(const std::string& method, const Json& answer);

  std::unique_ptr<Process> process_;
  const Contract& contract_;
  Framing framing_;
  std::string secretPath_;
  FrameReader reader_;
  std::deque<Json> inbox_;
  std::map<std::string, std::string> pending_;  ///< id to method, "" when the method is unknown
  std::map<std::string, std::string> asked_;    ///< id to method of the implementation's requests without an answer
  std::set<std::string> everAsked_;             ///< ids of all of them
  HostHandler host_;
  std::vector<std::string> secrets_;
  bool sentRaw_ = false;  ///< then an unknown id may be one that we could not read ourselves
  int nextId_ = 1001;
};

}  // namespace conformance
