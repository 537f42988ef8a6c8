#include "backend/launch/guest_file_operation.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <optional>
#include <utility>

#include "backend/launch/command_payload.h"
#include "backend/launch/launch_failure.h"
#include "backend/launch/sandbox_process.h"
#include "codingtools/file_error.h"

namespace stitchkit {
namespace {

using Completion = std::function<void(Result<UniqueFd>)>;

// The words of the file engine: whether a link stood in the path is not the caller's concern. A guest can bring about
// faults that no path of the engine has; they are its path's, too, and none of the host's.
Error fileReportError(const LaunchReport& report) {
  if (report.error == ELOOP) {
    return pathError("The path leads through too many symbolic links", report.error);
  }
  Error error = fileError(report.error, "file operation in a guest");
  return error.kind == ErrorKind::kInternal ? launchReportError(report) : error;
}

class FileOperation final : public GuestFileOperation,
                            public SandboxProcess::Owner,
                            public std::enable_shared_from_this<FileOperation> {
 public:
  FileOperation(boost::asio::io_context& io, LaunchOperation operation, std::string payload, Completion completion)
      : io_(io),
        operation_(operation),
        payload_(std::move(payload)),
        completion_(std::move(completion)),
        deadline_(io) {}

  void begin(const PreparedProfile& profile, std::chrono::milliseconds timeout) {
    deadline_.expires_after(timeout);
    deadline_.async_wait([this, keep = shared_from_this()](boost::system::error_code error) {
      if (!error) {
        end(Error(ErrorKind::kLimit, "The file operation took too long").withReason("deadline"));
      }
    });
    const auto sandbox = std::make_shared<SandboxProcess>(io_);
    sandbox_ = sandbox;
    if (Result<void> started = sandbox->start(profile, shared_from_this(), LaunchPriority::kNormal); !started) {
      result_ = started.error();
      boost::asio::post(io_, [this, keep = shared_from_this()] { complete(); });
    }
  }

  void cancel() override { end(Error(ErrorKind::kCancelled, "The file operation was cancelled")); }

  void onReady() override {
    if (Result<void> sent = sandbox_.lock()->send(operation_, payload_, {}); !sent) {
      end(sent.error());
    }
  }

  void onReport(const LaunchReport& report, UniqueFd descriptor) override {
    if (result_) {
      return;
    }
    if (report.step == kLaunchStepFile && report.error == 0) {
      result_.emplace(std::move(descriptor));
    } else if (report.step == kLaunchStepFile) {
      result_.emplace(fileReportError(report));
    } else {
      result_.emplace(launchReportError(report));
    }
  }

  void onControlEnd(bool) override {}

  void onEnd(SandboxEnd sandboxEnd) override {
    if (!result_) {
      result_.emplace(setUpError(sandboxEnd));
    }
    complete();
  }

 private:
  void end(Error error) {
    if (!result_) {
      result_.emplace(std::move(error));
    }
    if (const auto sandbox = sandbox_.lock()) {
      sandbox->kill();
    }
  }

  void complete() {
    deadline_.cancel();
    const Completion completion = std::exchange(completion_, nullptr);
    completion(std::move(*result_));
  }

  boost::asio::io_context& io_;
  LaunchOperation operation_;
  std::string payload_;
  Completion completion_;
  boost::asio::steady_timer deadline_;
  std::weak_ptr<SandboxProcess> sandbox_;
  std::optional<Result<UniqueFd>> result_;
};

std::shared_ptr<GuestFileOperation> startOperation(boost::asio::io_context& io, const PreparedProfile& profile,
                                                   LaunchOperation operation, std::string payload,
                                                   std::chrono::milliseconds timeout, Completion completion) {
  auto started = std::make_shared<FileOperation>(io, operation, std::move(payload), std::move(completion));
  started->begin(profile, timeout);
  return started;
}

}  // namespace

std::shared_ptr<GuestFileOperation> openInGuest(boost::asio::io_context& io, const PreparedProfile& profile,
                                                const GuestOpenRequest& request, std::chrono::milliseconds timeout,
                                                std::function<void(Result<UniqueFd>)> completion) {
  LaunchPathHeader header{};
  header.flags = static_cast<std::uint32_t>(request.flags);
  header.mode = request.mode;
  header.createParents = request.createParents ? 1 : 0;
  return startOperation(io, profile, kLaunchOpen, pathPayload(header, request.path), timeout, std::move(completion));
}

std::shared_ptr<GuestFileOperation> removeInGuest(boost::asio::io_context& io, const PreparedProfile& profile,
                                                  const std::string& path, std::chrono::milliseconds timeout,
                                                  std::function<void(Result<void>)> completion) {
  return startOperation(io, profile, kLaunchRemove, pathPayload({}, path), timeout,
                        [completion = std::move(completion)](Result<UniqueFd> removed) {
                          completion(removed ? Result<void>() : Result<void>(removed.error()));
                        });
}

}  // namespace stitchkit
