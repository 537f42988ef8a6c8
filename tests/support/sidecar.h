// A sidecar under test, spoken to over the wire as a host does. One thread; every wait has a deadline.
#pragma once

#include "rpc/base/unique_fd.h"
#include "tests/support/processes.h"
#include "tests/support/scratch.h"
#include "tests/support/spawn.h"

#include <sys/types.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stitchkit::testing {

using Json = nlohmann::json;

/// Who starts the sidecar. Both must hold what PROTOCOL.md promises: root has something to give up.
enum class StartAs { kRoot, kOrdinaryUser };
std::ostream& operator<<(std::ostream& out, StartAs startAs);

/// For `--user`: the number of a user whose processes no other test starts, where those are counted.
std::string userOfItsOwn();

/// The ways that this test process can start one: both as root, only the second else. For Catch2's
/// `GENERATE(from_range(startModes()))`. With STITCHKIT_TEST_START_MODES=1 only the first of them.
std::vector<StartAs> startModes();

/// The environment variable STITCHKIT_SIDECAR_ARGUMENTS holds options with their values, between spaces, that every
/// sidecar gets whose test does not give the same option itself.

/// What the sidecar's stdin and stdout are. Standard error is a pipe in each case.
enum class Wiring { kPipes, kSocketPair, kTerminal };

/// A state directory that several sidecars may share, in a scratch folder of its own. For kRoot the directory itself
/// is left to the sidecar to make; for kOrdinaryUser the folder is the user's.
class StateDirectory {
 public:
  explicit StateDirectory(StartAs startAs);
  [[nodiscard]] std::string path() const { return folder_ / "state"; }
  [[nodiscard]] const ScratchFolder& folder() const { return folder_; }

 private:
  ScratchFolder folder_;
};

struct SidecarOptions {
  StartAs startAs = StartAs::kRoot;
  Wiring wiring = Wiring::kPipes;
  std::vector<std::string> arguments;            ///< after `--state-dir PATH`; see STITCHKIT_SIDECAR_ARGUMENTS
  std::vector<std::string> environment;          ///< "NAME=value", beside PATH and the sanitizers' options
  std::vector<std::pair<int, int>> descriptors;  ///< {source here, number there}, beside the standard streams
  std::vector<std::string> hardLimits;           ///< of prlimit(1), such as "--nofile=100": what it is started with
  int stderrTo = -1;                             ///< a descriptor here, instead of the pipe
  bool readStderr = true;                        ///< false: the pipe is left to fill up
  bool keepTranscript = false;                   ///< transcript() holds all that came on stdout
  std::shared_ptr<StateDirectory> state;         ///< none: a new one
};

/// An error answer.
class RpcError : public std::runtime_error {
 public:
  explicit RpcError(Json error);
  [[nodiscard]] const Json& error() const { return error_; }
  [[nodiscard]] std::string code() const { return error_.value("/data/code"_json_pointer, ""); }

 private:
  Json error_;
};

class Sidecar {
 public:
  static constexpr Milliseconds kPatience{20000};

  /// Starts it. Throws when the program cannot be executed. It may not be ready yet: the first answer tells.
  explicit Sidecar(SidecarOptions options = {});
  /// Kills it when it still lives.
  ~Sidecar();
  Sidecar(const Sidecar&) = delete;
  Sidecar& operator=(const Sidecar&) = delete;

  /// A request and its result. Throws RpcError for an error answer, std::runtime_error when none comes in time.
  Json call(std::string_view method, Json params = Json::object(), Milliseconds within = kPatience);
  /// A request that must fail: the error object. Throws when it succeeds.
  Json callError(std::string_view method, Json params = Json::object(), Milliseconds within = kPatience);
  /// Sends a request and gives its id.
  std::int64_t request(std::string_view method, Json params = Json::object());
  /// The whole answer to a request, in whatever order answers come.
  Json response(std::int64_t id, Milliseconds within = kPatience);
  void notify(std::string_view method, Json params);
  void cancel(std::int64_t id) { notify("$/cancelRequest", {{"id", id}}); }
  /// The next notification of that method.
  Json notification(std::string_view method, Milliseconds within = kPatience);
  /// The bytes of the next `process.output` notification, whatever its process and channel; "" when none comes in time.
  std::string outputBytes(Milliseconds within = kPatience);
  /// The next request of the sidecar to the host.
  Json hostRequest(Milliseconds within = kPatience);

  /// Bytes as they are. Reads meanwhile, unless reading is paused, so that neither side can wait for the other for
  /// ever. Throws when they are not taken in time.
  void sendRaw(std::string_view bytes, Milliseconds within = kPatience);
  /// The next line that no call has taken, whatever it is; nullopt at the end of the output.
  std::optional<std::string> receiveLine(Milliseconds within = kPatience);

  /// From now on nothing is read from its stdout.
  void pauseReading() { paused_ = true; }
  void resumeReading() { paused_ = false; }
  void closeInput();
  void closeOutput();

  void kill(int signal) const;
  /// Waits for its end, reading meanwhile (unless paused); nullopt when it is still alive.
  std::optional<ExitStatus> waitForExit(Milliseconds within = kPatience);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running() const { return !ended_; }
  [[nodiscard]] const std::shared_ptr<StateDirectory>& state() const { return options_.state; }
  /// Answers that came and that nobody has asked for: those with id null, for instance.
  [[nodiscard]] std::size_t unclaimedAnswers() const { return responses_.size(); }
  /// Notifications that came and that nobody has asked for.
  [[nodiscard]] std::size_t unclaimedNotifications() const { return notifications_.size(); }
  /// Everything that came on stdout so far, if asked for.
  [[nodiscard]] const std::string& transcript() const { return transcript_; }
  /// What stderr has said so far.
  [[nodiscard]] const std::string& stderrText() const { return stderrText_; }
  /// For Wiring::kTerminal: the master's descriptor. What is typed on the terminal can be seen by reading its slave.
  [[nodiscard]] int terminal() const { return input_.get(); }
  [[nodiscard]] const std::string& terminalName() const { return terminalName_; }

 private:
  using Instant = std::chrono::steady_clock::time_point;

  void openStreams(SpawnOptions& spawn, std::vector<UniqueFd>& theirs);
  /// Waits for anything to read (or room to write, when asked) and takes in what there is. False: time is over.
  bool pump(Instant deadline, bool wantWrite, bool& canWrite);
  void takeOutput();
  void takeStderr();
  void splitLines();
  /// Reads until `ready`, the end of output or the deadline.
  template <class Ready>
  bool readUntil(Milliseconds within, Ready ready);
  void sortIn(std::string line);

  SidecarOptions options_;
  UniqueFd input_;   ///< non-blocking; of a socket pair and a terminal the same file as output_
  UniqueFd output_;  ///< non-blocking
  UniqueFd stderr_;
  std::string terminalName_;
  pid_t pid_ = -1;
  std::optional<ExitStatus> ended_;
  bool paused_ = false;
  bool outputEnded_ = false;
  std::int64_t nextId_ = 1;
  std::string partial_;
  std::string stderrText_;
  std::string transcript_;
  std::deque<std::string> lines_;
  std::deque<Json> responses_;
  std::deque<Json> notifications_;
  std::deque<Json> hostRequests_;
};

/// The binary under test.
std::string sidecarBinary();

}  // namespace stitchkit::testing
