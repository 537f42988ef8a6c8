#include "gateway/cancel_signal.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace stitchkit {
namespace {

Error cancelledCall() {
  return Error(ErrorKind::kCancelled, "The request ended: its guest left, the policy changed, or the handle stopped");
}

Error lateCall() {
  return Error(ErrorKind::kLimit, "The request took too long").withReason("deadline");
}

}  // namespace

Result<void> CancelSignal::open() {
  event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_) {
    return internalError("A request could not be begun", "eventfd", errno);
  }
  return {};
}

void CancelSignal::cancel() noexcept {
  if (!cancelled_.exchange(true)) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
  }
}

Result<void> CancelSignal::wait(int fd, short events, GatewayClock::time_point deadline) const {
  while (true) {
    std::array<pollfd, 2> polled{{{event_.get(), POLLIN, 0}, {fd, events, 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - GatewayClock::now()).count();
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000)));
    if (cancelled()) {
      return cancelledCall();
    }
    if (ready < 0 && errno != EINTR) {
      return internalError("A request failed", "poll", errno);
    }
    if (polled[1].revents != 0) {
      return {};
    }
    if (left <= 0) {
      return lateCall();
    }
  }
}

}  // namespace stitchkit
