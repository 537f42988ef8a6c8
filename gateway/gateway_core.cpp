#include "gateway/gateway_core.h"

#include <sys/socket.h>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

#include "gateway/guest_connection.h"
#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

using Guests = boost::asio::local::stream_protocol;

constexpr std::chrono::milliseconds kFailureStep{100};

}  // namespace

GatewayCore::GatewayCore(const UpstreamSettings& settings, const ConnectionPlaces& places,
                         std::shared_ptr<RequestSlots> slots, std::shared_ptr<GatewayWatch> watch, std::size_t share,
                         NetworkPolicy policy, OnFailure onFailure)
    : settings_(settings),
      places_(places),
      slots_(std::move(slots)),
      watch_(std::move(watch)),
      share_(share),
      policy_(std::make_shared<const ServedPolicy>(std::move(policy))),
      onFailure_(std::move(onFailure)),
      acceptor_(settings.context),
      acceptAgain_(settings.context),
      poolTimer_(settings.context),
      failureTimer_(settings.context),
      roomTimer_(settings.context),
      names_(std::make_shared<NameLookups>(settings.context, settings.lookup, settings.privateNames)),
      bodies_(limits::kGatewayHeldBodyBytes / share),
      failuresLeft_(failureBurst()) {}

void GatewayCore::listen(UniqueFd listening, std::vector<std::weak_ptr<GatewayCore>> parts) {
  parts_ = std::move(parts);
  boost::system::error_code ec;
  acceptor_.assign(Guests(), listening.get(), ec);
  if (!ec) {
    [[maybe_unused]] const int owned = listening.release();
    accept();
  }
}

void GatewayCore::accept() {
  acceptor_.async_accept([self = shared_from_this()](boost::system::error_code ec, Guests::socket socket) {
    self->onAccept(ec, std::move(socket));
  });
}

void GatewayCore::onAccept(boost::system::error_code ec, Guests::socket socket) {
  if (!acceptor_.is_open()) {
    return;
  }
  if (ec) {
    // No descriptors, perhaps: the connection stays in the queue, so that a try at once would spin.
    acceptAgain_.expires_after(std::chrono::milliseconds(100));
    acceptAgain_.async_wait([self = shared_from_this()](boost::system::error_code cancelled) {
      if (!cancelled && self->acceptor_.is_open()) {
        self->accept();
      }
    });
    return;
  }
  dealOut(UniqueFd(socket.release(ec)));
  accept();
}

void GatewayCore::dealOut(UniqueFd guest) {
  const auto part = parts_[nextPart_++ % parts_.size()].lock();
  if (part.get() == this) {
    serve(std::move(guest));
  } else if (part) {
    auto given = std::make_shared<UniqueFd>(std::move(guest));
    boost::asio::post(part->context(), [part, given] { part->serve(std::move(*given)); });
  }
}

void GatewayCore::serve(UniqueFd guest) {
  if (closed_) {
    return;
  }
  if (waiting_.empty() && makeRoom()) {
    begin(std::move(guest));
  } else if (waiting_.size() < places_.perHandle() / share_) {
    waiting_.push_back(std::move(guest));
    watch_->waitingConnections.add(1);
    lookForRoom();
  } else {
    const std::string busy = guestResponse(busyRefusal(), false, false);
    ::send(guest.get(), busy.data(), busy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    watch_->ended(
        {.status = busyRefusal().status, .began = std::chrono::steady_clock::now(), .outcome = GatewayOutcome::kBusy});
  }
}

void GatewayCore::begin(UniqueFd guest) {
  GuestSocket::Socket socket(settings_.context);
  boost::system::error_code ec;
  socket.assign(Guests(), guest.get(), ec);
  if (ec) {
    return;
  }
  [[maybe_unused]] const int owned = guest.release();
  auto connection = std::make_shared<GuestConnection>(shared_from_this(), std::move(socket));
  connections_.insert(connection);
  watch_->connections.add(1);
  connection->start();
}

// Places become free when a connection ends, and when one has been idle for long enough to go.
void GatewayCore::lookForRoom() {
  if (std::exchange(lookingForRoom_, true)) {
    return;
  }
  roomTimer_.expires_after(std::chrono::milliseconds(limits::kGatewayIdleGraceMs));
  roomTimer_.async_wait([self = shared_from_this()](boost::system::error_code) {
    self->lookingForRoom_ = false;
    while (!self->waiting_.empty() && self->makeRoom()) {
      UniqueFd guest = std::move(self->waiting_.front());
      self->waiting_.pop_front();
      self->watch_->waitingConnections.subtract(1);
      self->begin(std::move(guest));
    }
    if (!self->waiting_.empty()) {
      self->lookForRoom();
    }
  });
}

// With all places taken the connection that has been idle for longest goes; but not one that has only just been made or
// answered, since its next request is perhaps on its way.
bool GatewayCore::makeRoom() {
  if (connections_.size() < places_.perHandle() / share_) {
    return true;
  }
  std::shared_ptr<GuestConnection> oldest;
  GatewayClock::time_point idleSince = GatewayClock::now() - std::chrono::milliseconds(limits::kGatewayIdleGraceMs);
  for (const auto& connection : connections_) {
    const auto since = connection->idleSince();
    if (since && *since <= idleSince) {
      oldest = connection;
      idleSince = *since;
    }
  }
  if (oldest) {
    oldest->end();
  }
  return oldest != nullptr;
}

bool GatewayCore::mayCall(const std::shared_ptr<GuestConnection>& owner) {
  if (!paused_ && failuresLeft_ > 0) {
    return true;
  }
  held_.push_back(owner);
  return false;
}

void GatewayCore::setPaused(bool paused) {
  paused_ = paused;
  resumeHeld();
}

// As many as may fail, in the order in which they came.
void GatewayCore::resumeHeld() {
  auto held = std::exchange(held_, {});
  std::int64_t room = paused_ ? 0 : failuresLeft_;
  for (const auto& weak : held) {
    if (const auto connection = weak.lock()) {
      if (room-- > 0) {
        connection->resume();
      } else {
        held_.push_back(weak);
      }
    }
  }
}

void GatewayCore::tell(GatewayFailure failure) {
  --failuresLeft_;
  onFailure_(std::move(failure));
  if (!std::exchange(failuresCounted_, true)) {
    allowFailures();
  }
}

void GatewayCore::allowFailures() {
  failureTimer_.expires_after(kFailureStep);
  failureTimer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
    if (ec) {
      return;
    }
    const std::int64_t most = self->failureBurst();
    const auto step =
        static_cast<std::int64_t>(limits::kGatewayFailuresPerSecond * kFailureStep.count() / 1000 / self->share_);
    self->failuresLeft_ = std::min(most, self->failuresLeft_ + std::max<std::int64_t>(step, 1));
    self->failuresCounted_ = self->failuresLeft_ < most;
    self->resumeHeld();
    if (self->failuresCounted_) {
      self->allowFailures();
    }
  });
}

std::int64_t GatewayCore::failureBurst() const {
  return static_cast<std::int64_t>(limits::kGatewayFailureBurst / share_);
}

std::shared_ptr<UpstreamCall> GatewayCore::makeCall(UpstreamCall::Parts parts) {
  return std::make_shared<UpstreamCall>(settings_, names_, pool_, std::move(parts));
}

// Kept connections that the upstream closes meanwhile would lie about, half closed.
void GatewayCore::watchPool() {
  if (std::exchange(poolWatched_, true)) {
    return;
  }
  poolTimer_.expires_after(std::chrono::milliseconds(limits::kUpstreamIdleMs));
  poolTimer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
    self->poolWatched_ = false;
    if (!ec && self->pool_->dropStale()) {
      self->watchPool();
    }
  });
}

void GatewayCore::remove(const std::shared_ptr<GuestConnection>& connection) {
  watch_->connections.subtract(connections_.erase(connection));
  if (lookingForRoom_) {
    roomTimer_.cancel();  // now
  }
}

void GatewayCore::setPolicy(NetworkPolicy policy) {
  endAll();
  policy_ = std::make_shared<const ServedPolicy>(std::move(policy));
}

void GatewayCore::close() {
  closed_ = true;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  acceptAgain_.cancel();
  endAll();
  poolTimer_.cancel();
  failureTimer_.cancel();
  policy_ = std::make_shared<const ServedPolicy>(NetworkPolicy());
}

void GatewayCore::endAll() {
  watch_->waitingConnections.subtract(waiting_.size());
  waiting_.clear();
  const auto connections = connections_;
  for (const auto& connection : connections) {
    connection->end();
  }
  pool_->clear();
}

}  // namespace stitchkit
