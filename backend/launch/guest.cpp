#include "backend/launch/guest.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <optional>
#include <utility>

#include "backend/launch/descriptors.h"
#include "backend/launch/launch_failure.h"
#include "backend/launch/output_pump.h"
#include "backend/launch/sandbox_process.h"
#include "backend/launch/stdin_writer.h"

namespace stitchkit {
namespace {

// What a program that was killed leaves as its status (PROTOCOL.md, 5).
constexpr int kKilledExitCode = 137;
// Of a program's name in the words that say why it could not be run.
constexpr std::size_t kMaxNameBytes = 256;

class GuestRun final : public Guest, public SandboxProcess::Owner, public std::enable_shared_from_this<GuestRun> {
 public:
  GuestRun(boost::asio::io_context& io, const Command& command, const PreparedProfile& profile, GuestOptions options,
           Completion completion)
      : io_(io),
        options_(std::move(options)),
        completion_(std::move(completion)),
        executable_(command.executable.substr(0, kMaxNameBytes)),
        payload_(commandPayload(command, profile.softOpenFiles(), profile.entersGroup())),
        timeout_(command.timeout),
        outputLeft_(command.maxOutputBytes),
        deadline_(io) {}

  void begin(const PreparedProfile& profile, std::string standardInput);

  void kill(EndCause cause) override;
  void pauseOutput() override;
  void resumeOutput() override;

  void onReady() override;
  void onReport(const LaunchReport& report, UniqueFd descriptor) override;
  void onControlEnd(bool taken) override;
  void onEnd(SandboxEnd end) override;

 private:
  Result<void> launch(const PreparedProfile& profile);
  void killSandbox();
  Result<void> prepare(std::string standardInput);
  Result<void> sendCommand();
  UniqueFd makeOutput(Pipe pipe, OutputChannel channel, std::optional<OutputPump>& pump);
  bool takeOutput(OutputChannel channel, std::string_view bytes);
  void tellWhyNot(int error);
  void fail(Error error);
  void started(Result<void> result);
  void judge(const SandboxEnd& end);
  void complete();

  boost::asio::io_context& io_;
  GuestOptions options_;
  Completion completion_;
  std::string executable_;
  std::string payload_;
  std::chrono::milliseconds timeout_;
  std::uint64_t outputLeft_;
  boost::asio::steady_timer deadline_;
  std::weak_ptr<SandboxProcess> sandbox_;

  // The guest's side of its streams: from prepare() until they are sent.
  UniqueFd guestStdin_, guestStdout_, guestStderr_;
  std::optional<StdinWriter> stdinWriter_;
  std::optional<OutputPump> stdout_, stderr_;

  GuestOutcome outcome_;
  std::optional<EndCause> cause_;  // never together with failure_: the first of them counts
  std::optional<Error> failure_;
  bool sent_ = false;
  bool executed_ = false;  // the program runs or ran, or its absence is its result
  bool startReported_ = false;
  bool ended_ = false;
};

void GuestRun::begin(const PreparedProfile& profile, std::string standardInput) {
  deadline_.expires_after(timeout_);
  deadline_.async_wait([this, keep = shared_from_this()](boost::system::error_code error) {
    if (!error) {
      kill(EndCause::kDeadline);
    }
  });
  const std::shared_ptr<SandboxProcess> warm = std::exchange(options_.sandbox, nullptr);
  if (warm) {
    sandbox_ = warm;
    warm->handOver(shared_from_this());
  } else if (Result<void> result = launch(profile); !result) {
    failure_ = result.error();
    boost::asio::post(io_, [this, keep = shared_from_this()] { complete(); });
    return;
  }
  // While bwrap sets up, unless it has done so.
  if (Result<void> result = prepare(std::move(standardInput)); !result) {
    fail(result.error());
  } else if (warm && warm->ready()) {
    onReady();
  }
}

Result<void> GuestRun::launch(const PreparedProfile& profile) {
  const auto sandbox = std::make_shared<SandboxProcess>(io_);
  sandbox_ = sandbox;
  return sandbox->start(profile, shared_from_this(), LaunchPriority::kNormal);
}

void GuestRun::killSandbox() {
  if (const auto sandbox = sandbox_.lock()) {
    sandbox->kill();
  }
}

Result<void> GuestRun::prepare(std::string standardInput) {
  Result<Pipe> output = makePipe();
  Result<Pipe> error = makePipe();
  if (!output || !error) {
    return !output ? output.error() : error.error();
  }
  guestStdout_ = makeOutput(std::move(*output), OutputChannel::kStdout, stdout_);
  guestStderr_ = makeOutput(std::move(*error), OutputChannel::kStderr, stderr_);
  if (standardInput.empty()) {
    Result<UniqueFd> null = openNull();
    if (!null) {
      return null.error();
    }
    guestStdin_ = std::move(*null);
    return {};
  }
  Result<Pipe> input = makePipe();
  if (!input) {
    return input.error();
  }
  guestStdin_ = std::move(input->readEnd);
  stdinWriter_.emplace(io_, std::move(input->writeEnd), std::move(standardInput));
  return {};
}

UniqueFd GuestRun::makeOutput(Pipe pipe, OutputChannel channel, std::optional<OutputPump>& pump) {
  pump.emplace(io_, std::move(pipe.readEnd),
               [this, channel](std::string_view bytes) { return takeOutput(channel, bytes); });
  return std::move(pipe.writeEnd);
}

void GuestRun::onReady() {
  if (cause_ || failure_) {
    return;
  }
  if (Result<void> result = sendCommand(); !result) {
    fail(result.error());
    return;
  }
  stdout_->start(shared_from_this());
  stderr_->start(shared_from_this());
  if (stdinWriter_) {
    stdinWriter_->start(shared_from_this());
  }
}

Result<void> GuestRun::sendCommand() {
  const int streams[] = {guestStdin_.get(), guestStdout_.get(), guestStderr_.get()};
  const auto sandbox = sandbox_.lock();
  Result<void> result = sandbox->send(kLaunchRun, payload_, streams);
  sent_ = result.has_value();
  // From here on only the guest holds its ends: the end of its output can be seen.
  guestStdin_.reset();
  guestStdout_.reset();
  guestStderr_.reset();
  payload_ = {};
  return result;
}

void GuestRun::onReport(const LaunchReport& report, UniqueFd) {
  if (report.exitCode != 0) {
    executed_ = true;
    tellWhyNot(report.error);
    return;
  }
  fail(launchReportError(report));
}

// In the guest's name, as a shell would say it; it takes of the output budget what is left, and never exceeds it.
void GuestRun::tellWhyNot(int error) {
  const char* const cause = ::strerrordesc_np(error);
  const std::string text =
      "stitchkit-sandbox: " + executable_ + ": " + (cause != nullptr ? cause : "unknown error") + "\n";
  takeOutput(
      OutputChannel::kStderr,
      std::string_view(text).substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(text.size(), outputLeft_))));
}

void GuestRun::onControlEnd(bool taken) {
  if (sent_ && taken && !failure_) {
    executed_ = true;
    started({});
  }
}

void GuestRun::kill(EndCause cause) {
  if (ended_) {
    return;
  }
  const auto sandbox = sandbox_.lock();
  if (!cause_ && !failure_ && !(sandbox && sandbox->exited())) {
    cause_ = cause;
  }
  killSandbox();
}

void GuestRun::fail(Error error) {
  if (!cause_ && !failure_) {
    failure_ = std::move(error);
  }
  killSandbox();
}

void GuestRun::pauseOutput() {
  if (stdout_ && stderr_) {
    stdout_->pause();
    stderr_->pause();
  }
}

void GuestRun::resumeOutput() {
  if (stdout_ && stderr_ && !ended_) {
    stdout_->resume();
    stderr_->resume();
  }
}

bool GuestRun::takeOutput(OutputChannel channel, std::string_view bytes) {
  started({});  // whatever event says so comes later
  const bool fits = bytes.size() <= outputLeft_;
  const std::string_view kept =
      bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), outputLeft_)));
  outputLeft_ -= kept.size();
  if (!kept.empty() && options_.onOutput) {
    options_.onOutput(channel, kept);
  } else {
    (channel == OutputChannel::kStdout ? outcome_.standardOutput : outcome_.standardError).append(kept);
  }
  if (!fits) {
    // Over the budget is over the budget, whether or not the guest has ended by itself meanwhile.
    if (!cause_ && !failure_) {
      cause_ = EndCause::kOutputBudget;
    }
    killSandbox();
  }
  return fits;
}

void GuestRun::onEnd(SandboxEnd end) {
  if (stdinWriter_) {
    stdinWriter_->close();
  }
  if (stdout_ && stderr_) {
    stdout_->drain();
    stderr_->drain();
  }
  judge(end);
  complete();
}

void GuestRun::judge(const SandboxEnd& end) {
  outcome_.resource = exhaustedResource(end);
  if (failure_ || cause_) {
    outcome_.exitCode = kKilledExitCode;
    outcome_.cause = cause_.value_or(EndCause::kExited);
    return;
  }
  // Out of the session's memory, too, may be what is left of bwrap.
  if (executed_ && end.signalled && end.outOfMemory) {
    outcome_.exitCode = kKilledExitCode;
    return;
  }
  // bwrap's status is the program's only if the program is known to have been there, and bwrap to have ended by itself.
  if (!executed_ || end.signalled) {
    failure_ = setUpError(end);
    return;
  }
  outcome_.exitCode = end.exitCode;
  if (end.exitCode == 0) {
    outcome_.resource.clear();
  }
}

void GuestRun::started(Result<void> result) {
  if (!std::exchange(startReported_, true) && options_.onStarted) {
    options_.onStarted(std::move(result));
  }
}

void GuestRun::complete() {
  ended_ = true;
  deadline_.cancel();
  started(failure_ ? Result<void>(*failure_) : Result<void>());
  // What the callbacks hold may hold the guest.
  options_ = {};
  const Completion completion = std::exchange(completion_, nullptr);
  if (failure_) {
    completion(std::move(*failure_));
  } else {
    completion(std::move(outcome_));
  }
}

}  // namespace

std::shared_ptr<Guest> Guest::start(boost::asio::io_context& io, const PreparedProfile& profile, Command command,
                                    std::string standardInput, GuestOptions options, Completion completion) {
  auto guest = std::make_shared<GuestRun>(io, command, profile, std::move(options), std::move(completion));
  guest->begin(profile, std::move(standardInput));
  return guest;
}

}  // namespace stitchkit
