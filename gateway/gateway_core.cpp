#include "gateway/gateway_core.h"

#include <boost/asio/post.hpp>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "gateway/guest_connection.h"
#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

using Guests = boost::asio::local::stream_protocol;

}  // namespace

GatewayCore::GatewayCore(boost::asio::io_context& context, CallThreads& threads, const UpstreamSettings& settings,
                         NetworkPolicy policy, OnFailure onFailure)
    : context_(context),
      threads_(threads),
      settings_(settings),
      policy_(std::move(policy)),
      onFailure_(std::move(onFailure)),
      acceptor_(context),
      acceptAgain_(context),
      poolTimer_(context),
      bodies_(limits::kGatewayHeldBodyBytes) {}

void GatewayCore::start(UniqueFd listening) {
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
  if (drained_.empty()) {
    if (makeRoom()) {
      auto connection = std::make_shared<GuestConnection>(shared_from_this(), std::move(socket));
      connections_.insert(connection);
      connection->start();
    } else {
      const std::string busy = guestResponse(busyRefusal(), false, false);
      ::send(socket.native_handle(), busy.data(), busy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }
  accept();
}

// With all places taken the connection that has been idle for longest goes.
bool GatewayCore::makeRoom() {
  if (connections_.size() < limits::kGatewayConnections) {
    return true;
  }
  std::shared_ptr<GuestConnection> oldest;
  for (const auto& connection : connections_) {
    const auto since = connection->idleSince();
    if (since && (!oldest || *since < *oldest->idleSince())) {
      oldest = connection;
    }
  }
  if (oldest) {
    oldest->end();
  }
  return oldest != nullptr;
}

std::shared_ptr<const Redactor> GatewayCore::redactorFor(const Rule& rule) {
  std::shared_ptr<const Redactor>& redactor = redactors_[&rule];
  if (!redactor) {
    redactor = std::make_shared<const Redactor>(rule.headers);
  }
  return redactor;
}

bool GatewayCore::takeSlot() {
  if (slots_ >= limits::kGatewayRequests) {
    return false;
  }
  ++slots_;
  return true;
}

void GatewayCore::giveSlotBack() {
  --slots_;
}

bool GatewayCore::mayCall(const std::shared_ptr<GuestConnection>& owner) {
  if (paused_) {
    held_.push_back(owner);
  }
  return !paused_;
}

void GatewayCore::setPaused(bool paused) {
  paused_ = paused;
  if (paused) {
    return;
  }
  for (const auto& weak : std::exchange(held_, {})) {
    if (const auto connection = weak.lock()) {
      connection->resume();
    }
  }
}

void GatewayCore::call(UpstreamCall call, std::function<void(CallResult)> done) {
  ++calls_;
  auto shared = std::make_shared<UpstreamCall>(std::move(call));
  std::function<void(CallResult)> finish = [self = shared_from_this(), done = std::move(done)](CallResult result) {
    done(std::move(result));
    --self->calls_;
    self->watchPool();
    self->finishDrain();
  };
  // What belongs to this thread goes back to it whole: nothing of a connection may be destroyed on the other one.
  const bool begun = threads_.run([&context = context_, &settings = settings_, shared, finish, pool = pool_]() mutable {
    auto result = std::make_shared<CallResult>(runUpstreamCall(*shared, *pool, settings));
    shared.reset();
    boost::asio::post(context, [finish = std::exchange(finish, nullptr), result] { finish(std::move(*result)); });
  });
  if (!begun) {
    boost::asio::post(context_, [finish, shared] {
      finish({guestResponse(upstreamRefusal(), false, false),
              GatewayFailure{Error(ErrorKind::kInternal, "The request could not be begun: there are no more threads"),
                             shared->admission.rule->origin.text()}});
    });
  }
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
  connections_.erase(connection);
}

void GatewayCore::setPolicy(NetworkPolicy policy, std::function<void()> done) {
  drain([self = shared_from_this(), policy = std::move(policy), done = std::move(done)] {
    self->redactors_.clear();
    self->policy_ = policy;
    done();
  });
}

void GatewayCore::close(std::function<void()> done) {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  acceptAgain_.cancel();
  drain([self = shared_from_this(), done = std::move(done)] {
    self->poolTimer_.cancel();
    self->policy_ = NetworkPolicy();
    self->redactors_.clear();
    done();
  });
}

void GatewayCore::drain(std::function<void()> drained) {
  drained_.push_back(std::move(drained));
  const auto connections = connections_;
  for (const auto& connection : connections) {
    connection->end();
  }
  pool_->clear();
  finishDrain();
}

void GatewayCore::finishDrain() {
  if (calls_ == 0) {
    for (const auto& drained : std::exchange(drained_, {})) {
      drained();
    }
  }
}

}  // namespace stitchkit
