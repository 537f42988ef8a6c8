#include "gateway/guest_connection.h"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

// A call that takes longer watches whether its guest is still there; most are over by then.
constexpr std::chrono::milliseconds kWatchAfter{50};

GatewayClock::time_point inMs(GatewayClock::time_point from, std::int64_t milliseconds) {
  return from + std::chrono::milliseconds(milliseconds);
}

GatewayOutcome outcomeOf(const Refusal& refusal) {
  switch (refusal.status) {
    case 403:
    case 502:
      return GatewayOutcome::kDenied;
    case 503:
      return GatewayOutcome::kBusy;
    default:
      return GatewayOutcome::kMalformed;
  }
}

}  // namespace

GuestConnection::GuestConnection(std::shared_ptr<GatewayCore> core, GuestSocket::Socket socket)
    : core_(std::move(core)),
      socket_(std::move(socket), *this),
      timer_(core_->context()),
      began_(GatewayClock::now()),
      deadline_(began_) {}

void GuestConnection::start() {
  setDeadline(inMs(began_, limits::kGatewayIdleMs));
  socket_.waitForBytes();
}

std::optional<GatewayClock::time_point> GuestConnection::idleSince() {
  if (phase_ != Phase::kReading || !fence_->untouched() || socket_.hasBytes()) {
    return {};
  }
  return began_;
}

void GuestConnection::onReadable() {
  const auto self = shared_from_this();
  if (phase_ == Phase::kReading) {
    read();
  } else if (phase_ == Phase::kLingering) {
    drop();
  }
}

void GuestConnection::read() {
  std::array<char, GuestSocket::kLookAtOnce> buffer;
  std::string_view bytes;
  switch (socket_.look(buffer.data(), bytes)) {
    case GuestSocket::Look::kEnd:
      end(GatewayOutcome::kGuestGone);
      break;
    case GuestSocket::Look::kNothing:
      socket_.waitForBytes();
      break;
    case GuestSocket::Look::kBytes:
      if (consume(bytes)) {
        socket_.takeUsed();
        socket_.waitForBytes();
      }
      break;
  }
}

// @return whether the request needs more bytes.
bool GuestConnection::consume(std::string_view bytes) {
  if (fence_->untouched()) {
    began_ = GatewayClock::now();
    setDeadline(inMs(began_, limits::kGatewayHeaderMs));
  }
  while (true) {
    const std::size_t taken = fence_->feed(bytes);
    bytes.remove_prefix(taken);
    socket_.used(taken);
    switch (fence_->state()) {
      case RequestFence::State::kRefused:
        refuse(framingRefusal(fence_->status()), false);
        return false;
      case RequestFence::State::kComplete:
        beginCall();
        return false;
      case RequestFence::State::kHeaderDone:
        if (!onHeader()) {
          return false;
        }
        break;
      case RequestFence::State::kBody:
        if (!bodyMayGrow()) {
          return false;
        }
        [[fallthrough]];
      case RequestFence::State::kHeader:
        if (bytes.empty()) {
          return true;
        }
        break;
    }
  }
}

// @return whether the request goes on now.
bool GuestConnection::onHeader() {
  GuestRequest& request = fence_->request();
  asked_ = true;
  method_ = request.method;
  setDeadline(inMs(began_, limits::kGatewayRequestMs));
  auto judged = admit(request, core_->policy()->policy());
  const auto* refusal = std::get_if<Refusal>(&judged);
  const bool concernsHost = refusal == nullptr || !refusal->reason.empty();
  if (concernsHost && !core_->mayCall(shared_from_this())) {
    hold();
    return false;
  }
  if (refusal != nullptr) {
    if (concernsHost) {
      core_->tell({Error(ErrorKind::kNetworkDenied, refusal->reason), refusal->origin});
    }
    refuse(*refusal,
           request.keepAlive && !request.hasBody() && !isTunnelMethod(request.method) && refusal->status != 400);
    return false;
  }
  admission_ = std::get<Admission>(judged);
  if (request.contentLength.value_or(0) <= admission_->rule->maxRequestBytes) {
    hasSlot_ = core_->slots().take();
    if (!hasSlot_) {
      refuse(busyRefusal(), request.keepAlive && !request.hasBody());
      return false;
    }
    core_->watch().requests.add(1);
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
      readOn();
    }
  }
}

void GuestConnection::sendContinue() {
  phase_ = Phase::kWriting;
  write("HTTP/1.1 100 Continue\r\n\r\n", &GuestConnection::readOn);
}

void GuestConnection::readOn() {
  phase_ = Phase::kReading;
  if (fence_->state() == RequestFence::State::kBody || consume({})) {
    socket_.takeUsed();
    socket_.waitForBytes();
  }
}

// A large body needs its share of the memory before more of it is read.
bool GuestConnection::bodyMayGrow() {
  if (heldBytes_ != 0 || fence_->bodyBytes() <= limits::kGatewaySmallBodyBytes) {
    return true;
  }
  const std::uint64_t share = fence_->request().contentLength.value_or(admission_->rule->maxRequestBytes);
  const auto granted = [weak = weak_from_this(), share] {
    const auto self = weak.lock();
    self->takeBytes(share);
    boost::asio::post(self->core_->context(), [self] {
      if (self->phase_ == Phase::kHeld) {
        self->readOn();
      }
    });
  };
  if (core_->bodies().take(this, share, granted)) {
    takeBytes(share);
    return true;
  }
  hold();
  return false;
}

// Nothing is read meanwhile, so that leaving has to be looked for.
void GuestConnection::hold() {
  socket_.takeUsed();
  phase_ = Phase::kHeld;
  socket_.waitForGuestGone();
}

void GuestConnection::beginCall() {
  phase_ = Phase::kCalling;
  const bool keepAlive = fence_->request().keepAlive;
  bodyBytes_ = fence_->request().body.size();
  call_ = core_->makeCall(
      {std::move(fence_->request()), *admission_, core_->policy(), inMs(began_, limits::kGatewayRequestMs), keepAlive});
  watched_ = false;
  setDeadline(GatewayClock::now() + kWatchAfter);
  call_->start(
      [self = shared_from_this(), keepAlive](CallResult result) { self->onAnswer(std::move(result), keepAlive); });
}

void GuestConnection::onAnswer(CallResult result, bool keepAlive) {
  call_.reset();
  core_->watchPool();
  answer_ = {.status = result.status,
             .responseBytes = result.bodyBytes,
             .outcome = result.failure ? GatewayOutcome::kUpstreamFailed : GatewayOutcome::kAnswered};
  if (result.failure) {
    core_->tell(std::move(*result.failure));
  }
  if (phase_ == Phase::kEnded) {
    giveBack();
    return;
  }
  phase_ = Phase::kWriting;
  keepAlive_ = keepAlive;
  const auto now = GatewayClock::now();
  setDeadline(std::max(inMs(began_, limits::kGatewayRequestMs), inMs(now, limits::kGatewayLingerMs)));
  write(std::move(result.response), &GuestConnection::requestDone);
}

void GuestConnection::refuse(const Refusal& refusal, bool keepAlive) {
  phase_ = Phase::kWriting;
  keepAlive_ = keepAlive;
  asked_ = true;
  answer_ = {.status = refusal.status, .responseBytes = refusal.body.size(), .outcome = outcomeOf(refusal)};
  setDeadline(inMs(GatewayClock::now(), limits::kGatewayLingerMs));
  write(guestResponse(refusal, fence_->request().method == "HEAD", keepAlive), &GuestConnection::requestDone);
}

void GuestConnection::write(std::string bytes, void (GuestConnection::*then)()) {
  afterWrite_ = then;
  switch (socket_.write(std::move(bytes))) {
    case GuestSocket::Sent::kAll:
      (this->*then)();
      break;
    case GuestSocket::Sent::kGuestGone:
      end(GatewayOutcome::kGuestGone);
      break;
    case GuestSocket::Sent::kLater:
      break;
  }
}

void GuestConnection::onWritten() {
  const auto self = shared_from_this();
  (this->*afterWrite_)();
}

// While the rule that it fell under is there.
void GuestConnection::report(GatewayOutcome outcome) {
  if (!std::exchange(asked_, false)) {
    return;
  }
  answer_.outcome = outcome;
  answer_.method = method_;
  answer_.rule = admission_ ? admission_->rule : nullptr;
  answer_.host = admission_ ? std::string_view() : fence_->request().first("host");
  answer_.requestBytes = bodyBytes_;
  answer_.began = began_;
  core_->watch().ended(answer_);
  answer_ = {};
  method_.clear();
  bodyBytes_ = 0;
}

void GuestConnection::requestDone() {
  report(answer_.outcome);
  giveBack();
  admission_.reset();
  if (!keepAlive_) {
    linger();
    return;
  }
  fence_ = std::make_unique<RequestFence>();
  began_ = GatewayClock::now();
  phase_ = Phase::kReading;
  setDeadline(inMs(began_, limits::kGatewayIdleMs));
  socket_.waitForBytes();
}

// Closing with bytes unread would reset the connection, and the guest might lose the answer.
void GuestConnection::linger() {
  phase_ = Phase::kLingering;
  socket_.finishWriting();
  setDeadline(inMs(GatewayClock::now(), limits::kGatewayLingerMs));
  socket_.waitForBytes();
}

void GuestConnection::drop() {
  bool ended = false;
  dropped_ += socket_.dropBytes(ended);
  if (ended || dropped_ > limits::kGatewayLingerBytes) {
    end(GatewayOutcome::kGuestGone);
  } else {
    socket_.waitForBytes();
  }
}

void GuestConnection::takeBytes(std::uint64_t bytes) {
  heldBytes_ = bytes;
  core_->watch().heldBodyBytes.add(bytes);
}

void GuestConnection::giveBack() {
  if (std::exchange(hasSlot_, false)) {
    core_->slots().giveBack();
    core_->watch().requests.subtract(1);
  }
  core_->watch().heldBodyBytes.subtract(heldBytes_);
  core_->bodies().giveBack(this, std::exchange(heldBytes_, 0));
}

void GuestConnection::end(GatewayOutcome how) {
  if (phase_ == Phase::kEnded) {
    return;
  }
  phase_ = Phase::kEnded;
  answer_ = {};  // that it did not get, or not whole
  report(how);
  const auto self = shared_from_this();
  timer_.cancel();
  socket_.close();
  core_->remove(self);
  if (const auto call = call_) {
    call->cancel(Error(ErrorKind::kCancelled, "The request ended before the upstream had answered"));
  } else {
    giveBack();
  }
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
  } else if (phase_ == Phase::kCalling && !watched_) {
    watched_ = true;
    setDeadline(inMs(began_, limits::kGatewayRequestMs));
    socket_.waitForGuestGone();
  } else if (phase_ == Phase::kCalling) {
    const auto call = call_;
    call->cancel(Error(ErrorKind::kLimit, "The upstream took too long").withReason("deadline"));
  } else if ((phase_ == Phase::kReading || phase_ == Phase::kHeld) && !fence_->untouched()) {
    refuse(framingRefusal(408), false);
  } else {
    end(GatewayOutcome::kGuestGone);
  }
}

}  // namespace stitchkit
