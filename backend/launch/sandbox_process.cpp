#include "backend/launch/sandbox_process.h"

#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "backend/diagnosis/set_up_cause.h"
#include "backend/launch/descriptors.h"
#include "backend/launch/guest_launcher.h"
#include "backend/launch/launch_failure.h"
#include "backend/launch/orphan_reaper.h"
#include "backend/launch/warden.h"

namespace stitchkit {
namespace {

// From spawn to ready. A healthy machine needs milliseconds.
constexpr std::chrono::seconds kSetUpTimeout{10};
// Of bwrap's own words, for the log.
constexpr int kMaxSetUpTextBytes = 4096;
// Of a launch: bwrap, its init, and the helper.
constexpr int kOurProcesses = 3;

// Descriptor numbers of bwrap; the control socket's is the helper's as well.
constexpr char kArgumentsFd[] = "4";
static_assert(LAUNCH_CONTROL_FD == 3 && kSystemCallsFd == 5 && LAUNCH_GROUP_FD == 6);

// Takes what lies in the pipe now; never waits for a writer.
std::string takePipe(int fd) {
  int available = 0;
  if (::ioctl(fd, FIONREAD, &available) != 0 || available <= 0) {
    return {};
  }
  std::string text(static_cast<std::size_t>(std::min(available, kMaxSetUpTextBytes)), '\0');
  const ssize_t size = ::read(fd, text.data(), text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

}  // namespace

SandboxProcess::SandboxProcess(boost::asio::io_context& io)
    : io_(io), bwrap_(io.get_executor()), bwrapEnd_(io), init_(io), setUpTimer_(io) {}

SandboxProcess::~SandboxProcess() {
  kill();
  letGo();
  if (spawned_ && !reaped_) {
    ::waitpid(bwrap_.id(), nullptr, 0);
    collectedChild(bwrap_.id());
  }
}

Result<void> SandboxProcess::start(const PreparedProfile& profile, std::shared_ptr<Owner> owner,
                                   LaunchPriority priority) {
  cgroup_ = profile.cgroup();
  countLimits();
  allowOurs(kOurProcesses);
  if (Result<void> spawned = spawn(profile, priority); !spawned) {
    allowOurs(0);
    return judgeStart(std::move(spawned).error());
  }
  owner_ = std::move(owner);
  setUpTimer_.expires_after(kSetUpTimeout);
  setUpTimer_.async_wait([this, keep = shared_from_this()](boost::system::error_code error) {
    if (!error && !end_.ready) {
      end_.timedOut = true;
      kill();
    }
  });
  awaitControl();
  return {};
}

Result<void> SandboxProcess::spawn(const PreparedProfile& profile, LaunchPriority priority) {
  Result<SocketPair> control = makeSocketPair();
  if (!control) {
    return control.error();
  }
  Result<Pipe> text = makePipe();
  if (!text) {
    return text.error();
  }
  Result<UniqueFd> null = openNull();
  if (!null) {
    return null.error();
  }
  // Files of its own for each launch: an offset is shared by all who hold a file.
  Result<UniqueFd> arguments = sealedMemory(profile.argumentBlock());
  if (!arguments) {
    return arguments.error();
  }
  Result<UniqueFd> systemCalls = sealedMemory(profile.systemCalls());
  if (!systemCalls) {
    return systemCalls.error();
  }
  GuestLauncher launcher{"bwrap",
                         // Of bwrap itself nothing is written to stdout; what is no bwrap may say there what it is.
                         {null->get(), text->writeEnd.get(), text->writeEnd.get(), control->theirs.get(),
                          arguments->get(), systemCalls->get()},
                         priority,
                         cgroup_ ? cgroup_->join() : CgroupJoin()};
  if (profile.entersGroup()) {
    launcher.descriptors.push_back(cgroup_->guestEntrance());
  }
  boost::system::error_code error;
  auto process =
      launcher(io_.get_executor(), error, profile.bubblewrap(), {"--args", kArgumentsFd, "--", kGuestHelperPath});
  if (error) {
    // Too little to begin with: the program's first pages are the session's already.
    end_.outOfMemory = error.value() == ENOMEM && cgroup_ && cgroup_->limitsMemory();
    return unavailableBecause("The sandbox could not be started",
                              causeOfSpawn(error.value(), lookAtProgram(profile.bubblewrap())))
        .withPrivate("start " + profile.bubblewrap() + ": " + errnoName(error.value()));
  }
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.id(), 0)));
  if (!pidfd) {
    const int failure = errno;
    ::kill(-process.id(), SIGKILL);  // reaped by the process object
    return launchResourceError("pidfd_open", failure);
  }
  bwrapEnd_.start(std::move(pidfd), [this, keep = shared_from_this()] { onBwrapEnd(); });
  expectChild(process.id());
  bwrap_ = process.detach();  // a process object would signal its number on destruction, reaped or not
  spawned_ = true;
  end_.bubblewrap = profile.bubblewrap();
  workspace_ = profile.workspace();
  warden_ = profile.warden();
  control_ = std::make_unique<ControlChannel>(io_, std::move(control->ours));
  setUpText_ = std::move(text->readEnd);
  return {};
}

void SandboxProcess::handOver(std::shared_ptr<Owner> next) {
  owner_ = std::move(next);
  if (end_.ready) {
    countLimits();
  }
}

void SandboxProcess::countLimits() {
  before_ = cgroup_ ? cgroup_->counts() : CgroupCounts();
}

void SandboxProcess::allowOurs(int processes) {
  if (cgroup_ && processes != ours_) {
    cgroup_->allow(processes - std::exchange(ours_, processes));
  }
}

// Nothing of this launch is left in the session's groups, or nobody will see it go.
void SandboxProcess::letGo() {
  allowOurs(0);
  if (cgroup_ && killed_ && !std::exchange(letGo_, true)) {
    cgroup_->endHurry();
  }
}

Error SandboxProcess::judgeStart(Error error) {
  judgeLimits();
  return end_.outOfMemory ? setUpError(end_) : std::move(error);
}

void SandboxProcess::judgeLimits() {
  if (cgroup_) {
    const CgroupCounts now = cgroup_->counts();
    end_.outOfMemory = end_.outOfMemory || now.memoryKills > before_.memoryKills;
    end_.outOfProcesses = now.refusedProcesses > before_.refusedProcesses;
  }
}

Result<void> SandboxProcess::send(LaunchOperation operation, std::string_view payload, std::span<const int> streams) {
  const LaunchPacket packet{LAUNCH_MAGIC, static_cast<std::uint32_t>(operation), payload.size()};
  if (sizeof packet + payload.size() <= LAUNCH_PACKET_BYTES) {
    return control_->send(packet, payload, streams);
  }
  Result<UniqueFd> file = sealedMemory(payload);
  if (!file) {
    return std::move(file).error();
  }
  std::vector<int> descriptors(streams.begin(), streams.end());
  descriptors.push_back(file->get());
  return control_->send(packet, {}, descriptors);
}

bool SandboxProcess::waits() noexcept {
  const bool guarded = warden_ == nullptr || warden_->lives(wardenGeneration_);
  return end_.ready && !killed_ && !reaped_ && guarded && !bwrapEnd_.ended() && !init_.ended() && !control_->hungUp();
}

void SandboxProcess::kill() noexcept {
  if (!spawned_ || finished_) {
    return;
  }
  if (!std::exchange(killed_, true)) {
    control_->endSending();
    if (cgroup_) {
      cgroup_->beginHurry();
    }
  }
  init_.kill();
  if (!reaped_) {
    ::kill(-bwrap_.id(), SIGKILL);
  }
}

void SandboxProcess::awaitControl() {
  control_->asyncWait([this, keep = shared_from_this()](boost::system::error_code error) {
    if (!error) {
      onControlReadable();
    }
  });
}

void SandboxProcess::onControlReadable() {
  for (;;) {
    HelperMessage message;
    const ControlChannel::Receipt receipt = control_->receive(message);
    switch (receipt) {
      case ControlChannel::Receipt::kNothing:
        awaitControl();
        return;
      case ControlChannel::Receipt::kEnd:
      case ControlChannel::Receipt::kUntaken:
        controlEnded_ = true;
        if (end_.ready) {
          owner_->onControlEnd(receipt == ControlChannel::Receipt::kEnd);
        }
        finishWhenGone();
        return;
      case ControlChannel::Receipt::kMessage:
        onMessage(std::move(message));
        break;
    }
  }
}

void SandboxProcess::onMessage(HelperMessage message) {
  if (message.report) {
    owner_->onReport(*message.report, std::move(message.descriptor));
    return;
  }
  if (end_.ready || !message.descriptor) {
    return;
  }
  const bool guarded = warden_ == nullptr || warden_->watch(message.descriptor.get()).has_value();
  wardenGeneration_ = warden_ == nullptr ? 0 : warden_->generation();
  init_.start(std::move(message.descriptor), [this, keep = shared_from_this()] {
    initEnded_ = true;
    finishWhenGone();
  });
  end_.misplaced = workspace_ != DirectoryIdentity{message.ready.workspaceDevice, message.ready.workspaceInode};
  if (killed_ || end_.misplaced || !guarded) {
    kill();  // now that there is a handle on the namespace
    return;
  }
  end_.ready = true;
  // The helper has done so for what is in the namespace. Nothing that a command waits for makes way for others.
  if (!reaped_) {
    const sched_param parameters{};
    ::sched_setscheduler(bwrap_.id(), SCHED_OTHER, &parameters);
  }
  setUpText_.reset();  // what comes now, a guest could have written through its pid 1
  setUpTimer_.cancel();
  owner_->onReady();
}

void SandboxProcess::onBwrapEnd() {
  int status = 0;
  boost::system::error_code error;
  bwrap_.running(status, error);  // reaps: it is known to have ended
  reaped_ = true;
  collectedChild(bwrap_.id());
  end_.signalled = WIFSIGNALED(status);
  end_.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (init_.started()) {
    kill();  // init dies with its parent, unless a guest has talked it out of that (ptrace)
  } else if (!control_->hungUp()) {
    // Its init may hang in the first steps of set-up, where it waits for the outer process without a parent-death
    // signal. It keeps the number of this group from being used again, or has left the group and sees the socket's end.
    control_->endSending();
    ::kill(-bwrap_.id(), SIGKILL);
  }
  finishWhenGone();
}

void SandboxProcess::finishWhenGone() {
  if (finished_ || !reaped_ || !controlEnded_ || (init_.started() && !initEnded_)) {
    return;
  }
  finished_ = true;
  setUpTimer_.cancel();
  if (!end_.ready) {
    end_.setUpText = takePipe(setUpText_.get());
  }
  letGo();
  judgeLimits();
  const std::shared_ptr<Owner> owner = std::exchange(owner_, nullptr);
  owner->onEnd(std::move(end_));
}

}  // namespace stitchkit
