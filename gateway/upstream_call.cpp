#include "gateway/upstream_call.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace stitchkit {
namespace {

using Tcp = boost::asio::ip::tcp;

bool isIdempotent(std::string_view method) {
  constexpr std::array<std::string_view, 5> kIdempotent{"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
  return std::find(kIdempotent.begin(), kIdempotent.end(), method) != kIdempotent.end();
}

// The guest has something already, and asks for what is newer; such fields travel only when the rule names them.
bool isConditional(const UpstreamRequest& request) {
  return std::any_of(request.fields.begin(), request.fields.end(), [](const HeaderField& field) {
    return field.name == "if-none-match" || field.name == "if-modified-since";
  });
}

// A value that came back, by the rule's word on it. @return false when that ends the request.
bool withoutReflections(UpstreamResponse& response, const Rule& rule, const Redactor& redactor) {
  if (rule.reflection == Reflection::kAllow) {
    return true;
  }
  bool found = redactor.redact(response.body);
  for (HeaderField& field : response.fields) {
    // A length is what it is, even where a rule injects a number.
    found = (field.name != "content-length" && redactor.redact(field.value)) || found;
  }
  return !found || rule.reflection == Reflection::kRedact;
}

}  // namespace

UpstreamCall::UpstreamCall(const UpstreamSettings& settings, std::shared_ptr<NameLookups> names,
                           std::shared_ptr<UpstreamPool> pool, Parts parts)
    : settings_(settings),
      names_(std::move(names)),
      pool_(std::move(pool)),
      parts_(std::move(parts)),
      rule_(*parts_.admission.rule),
      request_(upstreamRequest(parts_.request, parts_.admission)),
      bytes_(writeRequest(request_)),
      fence_(request_.method == "HEAD", isConditional(request_), rule_.maxResponseBytes) {
  request_.body = {};
  parts_.request.body = {};
}

void UpstreamCall::start(std::function<void(CallResult)> done) {
  done_ = std::move(done);
  connection_ = pool_->take(rule_.origin);
  kept_ = connection_ != nullptr;
  if (kept_) {
    send();
  } else {
    dial();
  }
}

void UpstreamCall::cancel(Error why) {
  failed(std::move(why));
}

void UpstreamCall::dial() {
  // A lookup may outlast everybody who waits for it, and nobody needs the call by then.
  names_->find(rule_.origin, [weak = weak_from_this()](Result<Endpoints> found) {
    const auto self = weak.lock();
    if (!self || !self->done_) {
      return;
    }
    if (!found || found->empty()) {
      self->failed(found ? internalError("The upstream could not be reached", "lookup", ENOENT)
                         : std::move(found).error());
      return;
    }
    self->endpoints_ = std::move(*found);
    self->dialNext();
  });
}

void UpstreamCall::dialNext() {
  const Tcp::endpoint endpoint = endpoints_[nextEndpoint_++];
  dialling_ = std::make_shared<TcpSocket>(settings_.context);
  dialling_->async_connect(endpoint, [self = shared_from_this(), socket = dialling_](boost::system::error_code ec) {
    if (self->done_ && self->dialling_ == socket) {
      self->onConnected(std::move(*socket), ec);
    }
  });
  if (nextEndpoint_ == endpoints_.size()) {
    return;
  }
  // An address that does not answer leaves time for those behind it.
  const auto left = parts_.deadline - GatewayClock::now();
  dialTimer_.emplace(settings_.context);
  dialTimer_->expires_after(left / static_cast<int>(endpoints_.size() - nextEndpoint_ + 1));
  dialTimer_->async_wait([self = shared_from_this(), socket = dialling_](boost::system::error_code ec) {
    if (!ec && self->done_ && self->dialling_ == socket) {
      self->stopDialling();
      self->dialNext();
    }
  });
}

void UpstreamCall::stopDialling() {
  if (dialling_) {
    boost::system::error_code ignored;
    dialling_->close(ignored);
    dialling_.reset();
  }
}

void UpstreamCall::onConnected(TcpSocket socket, boost::system::error_code ec) {
  dialTimer_.reset();
  if (ec) {
    if (nextEndpoint_ < endpoints_.size()) {
      dialNext();
    } else {
      failed(internalError("The upstream could not be reached", "connect", ec.value()));
    }
    return;
  }
  dialling_.reset();
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(Tcp::no_delay(true), ignored);
  SslPtr ssl;
  if (rule_.origin.secure) {
    Result<SslPtr> made = settings_.tls.connect(rule_.origin, socket.native_handle());
    if (!made) {
      failed(std::move(made).error());
      return;
    }
    ssl = std::move(*made);
  }
  connection_ = std::make_unique<UpstreamConnection>(std::move(socket), std::move(ssl));
  shakeHands();
}

void UpstreamCall::shakeHands() {
  Result<Progress> shaken = connection_->shakeHands();
  if (!shaken) {
    failed(std::move(shaken).error());
  } else if (shaken->ended) {
    failed(Error(ErrorKind::kInternal, "TLS to the upstream failed"));
  } else if (shaken->waitFor) {
    wait(*shaken->waitFor, &UpstreamCall::shakeHands);
  } else {
    send();
  }
}

void UpstreamCall::send() {
  while (sent_ < bytes_.size()) {
    Result<Progress> sent = connection_->write(std::string_view(bytes_).substr(sent_));
    if (!sent) {
      sendFailure_ = std::move(sent).error();
      receive();
      return;
    }
    if (sent->waitFor) {
      waitForEither();
      return;
    }
    sent_ += sent->bytes;
  }
  wait(TcpSocket::wait_read, &UpstreamCall::receive);
}

void UpstreamCall::receive() {
  std::array<char, 16UL * 1024> buffer;
  // So many reads at a time that a fast upstream does not keep the thread from others.
  for (int turns = 4; turns > 0; --turns) {
    Result<Progress> got = connection_->read(buffer.data(), buffer.size());
    if (!got) {
      failed(sendFailure_ && !fence_.begun() ? std::move(*sendFailure_) : std::move(got).error());
      return;
    }
    if (got->waitFor) {
      // On with the request, if some of it is left: an upstream may begin to answer before it has read all.
      if (sent_ < bytes_.size() && !sendFailure_) {
        send();
      } else {
        wait(*got->waitFor, &UpstreamCall::receive);
      }
      return;
    }
    if (Result<void> fed = got->ended ? fence_.end() : fence_.feed({buffer.data(), got->bytes}); !fed) {
      failed(sendFailure_ && !fence_.begun() ? std::move(*sendFailure_) : std::move(fed).error());
      return;
    }
    if (fence_.complete()) {
      answered();
      return;
    }
  }
  boost::asio::post(settings_.context, [self = shared_from_this()] {
    if (self->done_) {
      self->receive();
    }
  });
}

void UpstreamCall::wait(TcpSocket::wait_type event, void (UpstreamCall::*next)()) {
  listen(event, next, ++round_);
}

// While a request is sent, its answer may come: a server need not read all of what it refuses.
void UpstreamCall::waitForEither() {
  const std::uint64_t round = ++round_;
  listen(TcpSocket::wait_write, &UpstreamCall::send, round);
  listen(TcpSocket::wait_read, &UpstreamCall::receive, round);
}

void UpstreamCall::listen(TcpSocket::wait_type event, void (UpstreamCall::*next)(), std::uint64_t round) {
  connection_->socket().async_wait(event, [self = shared_from_this(), next, round](boost::system::error_code ec) {
    if (!ec && self->done_ && self->round_ == round) {
      ++self->round_;
      ((*self).*next)();
    }
  });
}

void UpstreamCall::answered() {
  UpstreamResponse response = fence_.take();
  if (response.keepAlive && sent_ == bytes_.size()) {
    pool_->put(rule_.origin, std::move(connection_));
  }
  if (!withoutReflections(response, rule_, parts_.policy->redactor())) {
    failed(Error(ErrorKind::kNetworkDenied, "The upstream sent an injected header back"));
  } else {
    const bool toHead = request_.method == "HEAD";
    finish({guestResponse(response, rule_, toHead, parts_.keepAlive),
            response.status,
            toHead ? 0 : response.body.size(),
            {}});
  }
}

void UpstreamCall::failed(Error error) {
  if (kept_ && !fence_.begun() && error.kind == ErrorKind::kInternal && isIdempotent(request_.method)) {
    kept_ = false;
    connection_.reset();
    sent_ = 0;
    sendFailure_.reset();
    dial();
    return;
  }
  const Refusal refusal = upstreamRefusal();
  finish({guestResponse(refusal, request_.method == "HEAD", parts_.keepAlive), refusal.status, refusal.body.size(),
          GatewayFailure{std::move(error), rule_.origin.text()}});
}

void UpstreamCall::finish(CallResult result) {
  if (done_) {
    connection_.reset();
    stopDialling();
    dialTimer_.reset();
    bytes_ = {};
    std::exchange(done_, nullptr)(std::move(result));
  }
}

}  // namespace stitchkit
