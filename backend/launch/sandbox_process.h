// One bubblewrap process from its start to the proven end of its PID namespace: what guests and guest file
// operations have in common.
//
// Who holds what: bwrap, its init and the helper inherit one end of the control socket; init and outer bwrap let go of
// it when set-up is done, the helper at exec. The helper's ready message brings a pidfd of init. The kernel lets init
// end only after every process of the namespace has ended. So, once
//   outer bwrap is reaped, the control socket has ended, and init (where known) has ended,
// nothing of this launch is left, and only then is onEnd called.
//
// Killing: before ready, bwrap and its init are one process group (init leaves it just before it starts the helper,
// and then the helper sees the ended socket); after it, init's pidfd is the handle. Should the sidecar itself be
// killed, the helper and bwrap's --die-with-parent see to it.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/process/v2/process_handle.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backend/launch/control_channel.h"
#include "backend/launch/guest_launcher.h"
#include "backend/launch/launch_profile.h"
#include "backend/launch/process_watch.h"

namespace stitchkit {

/// How a sandbox ended.
struct SandboxEnd {
  bool ready = false;      ///< set-up had been finished
  bool timedOut = false;   ///< set-up took too long
  bool misplaced = false;  ///< /workspace was another directory than the profile says
  bool signalled = false;  ///< outer bwrap died of a signal
  int exitCode = 0;        ///< bwrap's, which is the launched program's (128+n for signal n) when that ran
  /// Meanwhile processes of the session were killed for want of memory, or refused for want of room for more.
  bool outOfMemory = false;
  bool outOfProcesses = false;
  std::string bubblewrap;  ///< the host path of bwrap; private
  std::string setUpText;   ///< bwrap's stdout and stderr, when it did not become ready; private
};

/// Loop thread only. Keeps itself alive from start() until onEnd, and its owner with it; to the owner it is a weak
/// reference.
class SandboxProcess : public std::enable_shared_from_this<SandboxProcess> {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// The helper waits for its packet.
    virtual void onReady() = 0;
    virtual void onReport(const LaunchReport& report, UniqueFd descriptor) = 0;
    /// The helper's end is closed; after a packet that was `taken` and without a report: the program runs (or ran).
    virtual void onControlEnd(bool taken) = 0;
    /// Called once, last.
    virtual void onEnd(SandboxEnd end) = 0;
  };

  explicit SandboxProcess(boost::asio::io_context& io);
  SandboxProcess(const SandboxProcess&) = delete;
  SandboxProcess& operator=(const SandboxProcess&) = delete;
  /// Kills what is left, for a loop that is torn down; the ordinary end is kill() and onEnd().
  ~SandboxProcess();

  /// Starts bwrap. Errors: kUnavailable, and then the owner is never called.
  Result<void> start(const PreparedProfile& profile, std::shared_ptr<Owner> owner, LaunchPriority priority);

  /// From now on `next` is told. For a sandbox that has been sent nothing; whether it is ready() `next` has to ask.
  void handOver(std::shared_ptr<Owner> next);

  [[nodiscard]] bool ready() const noexcept { return end_.ready; }

  /// Asks the kernel whether it is ready and all of it still lives, its warden too, whatever the loop has not heard of
  /// yet.
  [[nodiscard]] bool waits() noexcept;

  /// After onReady. `streams`: stdin, stdout, stderr for kLaunchRun, else none. Errors: kUnavailable.
  Result<void> send(LaunchOperation operation, std::string_view payload, std::span<const int> streams);

  /// Ends everything; onEnd follows. Idempotent.
  void kill() noexcept;

  /// Outer bwrap has been reaped after an exit of its own: a kill from now on changes no result.
  [[nodiscard]] bool exited() const noexcept { return reaped_ && !end_.signalled; }

 private:
  Result<void> spawn(const PreparedProfile& profile, LaunchPriority priority);
  void allowOurs(int processes);
  void letGo();
  void countLimits();
  void judgeLimits();
  Error judgeStart(Error error);
  void awaitControl();
  void onControlReadable();
  void onMessage(HelperMessage message);
  void onBwrapEnd();
  void finishWhenGone();

  boost::asio::io_context& io_;
  std::shared_ptr<Owner> owner_;
  std::unique_ptr<ControlChannel> control_;
  boost::process::v2::basic_process_handle<boost::asio::any_io_executor> bwrap_;
  ProcessWatch bwrapEnd_;
  ProcessWatch init_;
  boost::asio::steady_timer setUpTimer_;
  UniqueFd setUpText_;
  DirectoryIdentity workspace_;
  Warden* warden_ = nullptr;
  std::uint64_t wardenGeneration_ = 0;
  std::shared_ptr<SessionCgroup> cgroup_;
  CgroupCounts before_;  // of cgroup_: when the launch began, or a command took one that was ready
  int ours_ = 0;         // processes of this launch that cgroup_ has been told to allow
  SandboxEnd end_;
  bool spawned_ = false;
  bool killed_ = false;
  bool letGo_ = false;
  bool reaped_ = false;
  bool controlEnded_ = false;
  bool initEnded_ = false;
  bool finished_ = false;
};

}  // namespace stitchkit
