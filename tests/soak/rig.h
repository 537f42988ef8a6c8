// One sidecar under load: its sessions, what their files should hold, and the requests that are under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/attacks/upstream.h"
#include "tests/soak/dice.h"
#include "tests/support/session.h"

namespace stitchkit::soak {

using testing::Json;

/// What all rigs share. Thread-safe.
class Soak {
 public:
  explicit Soak(std::uint64_t seed);

  /// Says it at once and keeps it for the report, the first few of them.
  void failed(const std::string& what);
  [[nodiscard]] std::vector<std::string> failures() const;
  void did(std::string_view what) const;
  /// "run 120, write 90, ...", of all rigs.
  [[nodiscard]] std::string counts() const;
  [[nodiscard]] std::size_t total() const { return total_; }
  /// Waits for what sidecars and guests leave to their ancestor. `started` are not to be taken for that.
  void reapOrphans() const;
  void started(pid_t sidecar) const;

  std::shared_ptr<testing::StateDirectory> state;
  const std::uint64_t seed;
  /// Of the upstream's: `/echo` answers the injected header, `/slow` waits until its client leaves, `/cut` breaks off,
  /// all else is 200.
  testing::Upstream upstream;
  static constexpr const char* kSecret = "soak-secret-0123456789";

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> failures_;
  std::size_t failureCount_ = 0;
  mutable std::map<std::string, std::size_t, std::less<>> counts_;
  mutable std::atomic<std::size_t> total_{0};
  mutable std::vector<pid_t> sidecars_;
};

/// A file's contents; none: it is not there.
using Content = std::optional<std::string>;

/// A session and what is known of it.
struct Room {
  std::unique_ptr<testing::Session> session;
  std::string toolset;
  std::string gatewayClient;  ///< the guest's program, when it is in the workspace
  Json policy = "deny-all";
  std::map<std::string, std::string> files;
  /// Of files that requests under way write: what they may hold afterwards, should the sidecar die meanwhile.
  std::map<std::string, std::vector<Content>> claimed;
  int commands = 0;  ///< under way

  [[nodiscard]] const std::string& handle() const { return session->handle(); }
};

class Rig {
 public:
  struct Options {
    testing::StartAs startAs;
    std::vector<std::string> arguments;
    std::size_t rooms = 4;
  };

  Rig(const Soak& soak, std::uint64_t seed, Options options);

  /// Opens what is missing of the rooms.
  void open();
  /// A few dozen requests, many at once. Throws for what should not be.
  void round();
  /// A round that the sidecar does not survive, and a new sidecar that carries on with all sessions.
  void killed();
  /// Deletes the rooms from `first` on.
  void close(std::size_t first = 0);
  /// Brings the rooms that are open to what can be compared: each has one launch that waits, and no connection.
  void rest();
  /// After a failure: leaves everything and begins anew with another sidecar.
  void restart();
  /// The end of input; throws unless it exits with 0.
  void end();

  // For operations.
  [[nodiscard]] const Soak& soak() const { return soak_; }
  Dice& dice() { return dice_; }
  testing::Sidecar& sidecar() { return *sidecar_; }
  std::vector<Room>& rooms() { return rooms_; }
  /// Digits that stand on the command line of each guest that lives for long.
  [[nodiscard]] const std::string& marker() const { return marker_; }
  /// Sends a request; `check` gets its whole answer later and throws when it is wrong.
  void begin(std::string what, std::string_view method, Json params, std::function<void(const Json&)> check);
  /// The same for a command, which counts against the room's limit until it is answered.
  void beginCommand(Room& room, std::string what, std::string_view method, Json params,
                    std::function<void(const Json&)> check);
  /// The id of the request that was begun last.
  [[nodiscard]] std::int64_t lastRequest() const { return pending_.back().id; }
  /// Waits for all answers.
  void collect();
  Room openRoom();
  void openTools(Room& room) const;
  void deleteRoom(Room& room);
  /// Reads every file and compares.
  void verify(Room& room);

 private:
  struct Pending {
    std::string what;
    std::int64_t id;
    std::function<void(const Json&)> check;
    Room* room;  ///< whose command it is, or nullptr
  };

  void start();
  /// After a kill: finds out which of the contents that it may hold each file under way holds.
  void settleClaims(Room& room);

  const Soak& soak_;
  Dice dice_;
  Options options_;
  std::string marker_;
  std::unique_ptr<testing::Sidecar> sidecar_;
  std::vector<Room> rooms_;
  std::vector<Pending> pending_;
};

/// Throws with the answer in its text.
[[noreturn]] void wrong(const std::string& what, const Json& answer);
/// The result of an answer, or wrong().
const Json& resultOf(const Json& answer);
/// Throws unless it is an error of that code, and of that reason when one is given.
void requireError(const Json& answer, std::string_view code, std::string_view reason = "");

}  // namespace stitchkit::soak
