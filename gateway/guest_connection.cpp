#include "gateway/guest_connection.h"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

constexpr std::size_t kReadAtOnce = 16U * 1024;

GatewayClock::time_point inMs(GatewayClock::time_point from, std::int64_t milliseconds) {
  return from + std::chrono::milliseconds(milliseconds);
}

// The guest's end is closed, not merely finished with sending.
bool guestIsGone(int socket) {
  pollfd polled{socket, 0, 0};
  return ::poll(&polled, 1, 0) == 1 && (polled.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

GuestConnection::GuestConnection(std::shared_ptr<GatewayCore> core, boost::asio::local::stream_protocol::socket socket)
    : core_(std::move(core)),
      socket_(std::move(socket)),
      timer_(core_->context()),
      began_(GatewayClock::now()),
      deadline_(began_) {}

void GuestConnection::start() {
  boost::system::error_code ignored;
  socket_.non_blocking(true, ignored);
  setDeadline(inMs(began_, limits::kGatewayIdleMs));
  waitForBytes();
}

std::optional<GatewayClock::time_point> GuestConnection::idleSince() const {
  if (phase_ != Phase::kReading || !fence_->untouched()) {
    return {};
  }
  return began_;
}

void GuestConnection::waitForBytes() {
  if (!waiting_) {
    waiting_ = true;
    socket_.async_wait(socket_.wait_read, [self = shared_from_this()](boost::system::error_code ec) {
      self->waiting_ = false;
      if (!ec) {
        self->onReadable();
      }
    });
  }
}

void GuestConnection::onReadable() {
  switch (phase_) {
    case Phase::kReading:
      takeBytes();
      break;
    case Phase::kLingering:
      discardBytes();
      break;
    case Phase::kHeld:
    case Phase::kCalling:
    case Phase::kWriting:
      watchGuest();
      break;
    case Phase::kEnded:
      break;
  }
}

void GuestConnection::takeBytes() {
  if (waitsForBudget_) {
    watchGuest();
    return;
  }
  std::array<char, kReadAtOnce> buffer;
  const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
  if (got > 0) {
    consume({buffer.data(), static_cast<std::size_t>(got)});
  } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    waitForBytes();
  } else {
    end();
  }
}

// While nothing is read from the guest: it may have left meanwhile, and then its request ends.
void GuestConnection::watchGuest() {
  if (guestIsGone(socket_.native_handle())) {
    end();
    return;
  }
  char byte = 0;
  const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK);
  if (got == 0) {
    guestFinished_ = true;
  } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    waitForBytes();
  }
}

void GuestConnection::consume(std::string_view bytes) {
  while (phase_ == Phase::kReading) {
    if (fence_->untouched() && !bytes.empty()) {
      began_ = GatewayClock::now();
      setDeadline(inMs(began_, limits::kGatewayHeaderMs));
    }
    bytes.remove_prefix(fence_->feed(bytes));
    const RequestFence::State state = fence_->state();
    if (state == RequestFence::State::kRefused) {
      refuse(framingRefusal(fence_->status()), false);
    } else if (state == RequestFence::State::kComplete) {
      unread_ = bytes;
      beginCall();
    } else if (state == RequestFence::State::kHeaderDone) {
      unread_ = bytes;
      if (!onHeader()) {
        return;
      }
      unread_.clear();
    } else if (state == RequestFence::State::kBody && !bodyMayGrow()) {
      unread_ = bytes;
      waitForBytes();
      return;
    } else if (bytes.empty()) {
      waitForBytes();
      return;
    }
  }
}

// @return whether the request goes on now.
bool GuestConnection::onHeader() {
  GuestRequest& request = fence_->request();
  setDeadline(inMs(began_, limits::kGatewayRequestMs));
  auto judged = admit(request, core_->policy());
  if (const auto* refusal = std::get_if<Refusal>(&judged)) {
    if (!refusal->reason.empty()) {
      core_->tell({Error(ErrorKind::kNetworkDenied, refusal->reason), refusal->origin});
    }
    refuse(*refusal, request.keepAlive && !request.hasBody() && request.method != "CONNECT" && refusal->status != 400);
    return false;
  }
  if (!core_->mayCall(shared_from_this())) {
    phase_ = Phase::kHeld;
    watchGuest();
    return false;
  }
  admission_ = std::get<Admission>(judged);
  if (request.contentLength.value_or(0) <= admission_->rule->maxRequestBytes) {
    hasSlot_ = core_->takeSlot();
    if (!hasSlot_) {
      refuse(busyRefusal(), request.keepAlive && !request.hasBody());
      return false;
    }
  }
  fence_->admitBody(admission_->rule->maxRequestBytes);
  if (fence_->state() == RequestFence::State::kBody && request.expectsContinue) {
    sendContinue();
    return false;
  }
  return true;
}

void GuestConnection::resume() {
  if (phase_ == Phase::kHeld) {
    phase_ = Phase::kReading;
    if (onHeader()) {
      consume(std::exchange(unread_, {}));
    }
  }
}

void GuestConnection::sendContinue() {
  phase_ = Phase::kWriting;
  write("HTTP/1.1 100 Continue\r\n\r\n", [this] {
    phase_ = Phase::kReading;
    const std::string bytes = std::exchange(unread_, {});
    consume(bytes);
  });
}

// A large body needs its share of the memory before more of it is read.
bool GuestConnection::bodyMayGrow() {
  const GuestRequest& request = fence_->request();
  const std::uint64_t expected = request.contentLength.value_or(fence_->bodyBytes());
  if (heldBytes_ != 0 || expected <= limits::kGatewaySmallBodyBytes) {
    return true;
  }
  const std::uint64_t share = request.contentLength.value_or(admission_->rule->maxRequestBytes);
  const auto granted = [weak = weak_from_this(), share] {
    const auto self = weak.lock();
    self->heldBytes_ = share;
    boost::asio::post(self->core_->context(), [self] {
      if (std::exchange(self->waitsForBudget_, false) && self->phase_ == Phase::kReading) {
        const std::string bytes = std::exchange(self->unread_, {});
        self->consume(bytes);
      }
    });
  };
  if (core_->bodies().take(this, share, granted)) {
    heldBytes_ = share;
    return true;
  }
  waitsForBudget_ = true;
  return false;
}

void GuestConnection::beginCall() {
  phase_ = Phase::kCalling;
  signal_ = std::make_shared<CancelSignal>();
  UpstreamCall call{std::move(fence_->request()), *admission_,
                    core_->policy(),              core_->redactorFor(*admission_->rule),
                    signal_,                      inMs(began_, limits::kGatewayRequestMs),
                    false};
  call.keepAlive = call.request.keepAlive && !guestFinished_;
  if (Result<void> opened = signal_->open(); !opened) {
    core_->tell({std::move(opened).error(), admission_->rule->origin.text()});
    refuse(upstreamRefusal(), false);
    return;
  }
  const bool keepAlive = call.keepAlive;
  core_->call(std::move(call), [self = shared_from_this(), keepAlive](CallResult result) {
    self->signal_.reset();
    if (self->phase_ == Phase::kEnded) {
      self->giveBack();
      return;
    }
    if (result.failure) {
      self->core_->tell(std::move(*result.failure));
    }
    self->phase_ = Phase::kWriting;
    self->setDeadline(std::max(inMs(self->began_, limits::kGatewayRequestMs),
                               inMs(GatewayClock::now(), limits::kGatewayLingerMs)));
    self->write(std::move(result.response), [raw = self.get(), keepAlive] { raw->requestDone(keepAlive); });
  });
  if (unread_.empty() && !guestFinished_) {
    waitForBytes();
  }
}

void GuestConnection::refuse(const Refusal& refusal, bool keepAlive) {
  phase_ = Phase::kWriting;
  setDeadline(inMs(GatewayClock::now(), limits::kGatewayLingerMs));
  write(guestResponse(refusal, fence_->request().method == "HEAD", keepAlive),
        [this, keepAlive] { requestDone(keepAlive); });
}

// `then` is called by a handler that holds this connection, or before the return.
void GuestConnection::write(std::string bytes, std::function<void()> then) {
  const ssize_t sent = ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(bytes.size())) {
    then();
    return;
  }
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    end();
    return;
  }
  outgoing_ = std::move(bytes);
  const std::size_t done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
  boost::asio::async_write(
      socket_, boost::asio::buffer(outgoing_.data() + done, outgoing_.size() - done),
      [self = shared_from_this(), then = std::move(then)](boost::system::error_code ec, std::size_t) {
        self->outgoing_ = {};
        if (self->phase_ == Phase::kEnded) {
          return;
        }
        if (ec) {
          self->end();
        } else {
          then();
        }
      });
}

void GuestConnection::requestDone(bool keepAlive) {
  giveBack();
  admission_.reset();
  if (!keepAlive) {
    linger();
    return;
  }
  fence_ = std::make_unique<RequestFence>();
  began_ = GatewayClock::now();
  phase_ = Phase::kReading;
  setDeadline(inMs(began_, limits::kGatewayIdleMs));
  if (unread_.empty()) {
    waitForBytes();
  } else {
    // Not from here: a guest that sends many short requests at once would nest as deep.
    boost::asio::post(core_->context(), [self = shared_from_this()] { self->next(); });
  }
}

void GuestConnection::next() {
  if (phase_ == Phase::kReading) {
    const std::string bytes = std::exchange(unread_, {});
    consume(bytes);
  }
}

// Closing with bytes unread would reset the connection, and the guest might lose the answer.
void GuestConnection::linger() {
  phase_ = Phase::kLingering;
  unread_ = {};
  ::shutdown(socket_.native_handle(), SHUT_WR);
  setDeadline(inMs(GatewayClock::now(), limits::kGatewayLingerMs));
  waitForBytes();
}

void GuestConnection::discardBytes() {
  std::array<char, kReadAtOnce> buffer;
  const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
  if (got > 0) {
    discarded_ += static_cast<std::size_t>(got);
  }
  if (got == 0 || discarded_ > limits::kGatewayLingerBytes || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    end();
  } else {
    waitForBytes();
  }
}

void GuestConnection::giveBack() {
  if (std::exchange(hasSlot_, false)) {
    core_->giveSlotBack();
  }
  waitsForBudget_ = false;
  core_->bodies().giveBack(this, std::exchange(heldBytes_, 0));
}

void GuestConnection::end() {
  if (phase_ == Phase::kEnded) {
    return;
  }
  const bool calling = signal_ != nullptr;
  phase_ = Phase::kEnded;
  if (calling) {
    signal_->cancel();  // its slot is free when the call has ended
  } else {
    giveBack();
  }
  boost::system::error_code ignored;
  timer_.cancel();
  socket_.close(ignored);
  core_->remove(shared_from_this());
}

void GuestConnection::setDeadline(GatewayClock::time_point deadline) {
  deadline_ = deadline;
  // A timer that comes too early looks again, which is cheaper than a timer for each request.
  if (!armed_ || armedFor_ > deadline_) {
    arm();
  }
}

void GuestConnection::arm() {
  armed_ = true;
  armedFor_ = deadline_;
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
    if (!ec && self->phase_ != Phase::kEnded) {
      self->armed_ = false;
      self->onTimer();
    }
  });
}

void GuestConnection::onTimer() {
  if (GatewayClock::now() < deadline_) {
    arm();
  } else if (phase_ == Phase::kReading && !fence_->untouched()) {
    refuse(framingRefusal(408), false);
  } else if (phase_ == Phase::kCalling) {
    // The call has the same deadline and ends by itself.
    setDeadline(inMs(GatewayClock::now(), limits::kGatewayLingerMs));
  } else {
    end();
  }
}

}  // namespace stitchkit
