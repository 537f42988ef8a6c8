#include "conformance/upstream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <set>

#include "conformance/interrupt.h"

namespace conformance {
namespace {

constexpr std::size_t kMostPeers = 128;
constexpr std::size_t kMostRequests = 1024;
constexpr auto kMostSettling = std::chrono::seconds(2);
constexpr auto kInterruptCheck = std::chrono::milliseconds(50);

/// Bound to a free port of 127.0.0.1.
Descriptor listenOnLoopback(int& port) {
  Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 128) != 0 ||
      ::getsockname(listener.get(), generic, &size) != 0) {
    return {};
  }
  port = ntohs(address.sin_port);
  return listener;
}

/// Names to lists of values, but for what is the sender's own affair.
Json fieldsOf(const HttpMessage& request) {
  static const std::set<std::string> own = {"connection", "user-agent", "accept-encoding"};
  Json fields = Json::object();
  for (const auto& [name, value] : request.fields) {
    if (!own.contains(name)) {
      fields[name].push_back(latin1(value));
    }
  }
  return fields;
}

}  // namespace

std::unique_ptr<Upstream> Upstream::start(const std::string& tls, Events& events, std::string& problem) {
  SslContext context = tls.empty() ? nullptr : makeServerContext(tls);
  if (!tls.empty() && !context) {
    problem = "no certificate of this kind: " + tls;
    return nullptr;
  }
  int port = 0;
  Descriptor listener = listenOnLoopback(port);
  if (!listener.open()) {
    problem = "no upstream can listen";
    return nullptr;
  }
  return std::unique_ptr<Upstream>(new Upstream(std::move(listener), port, std::move(context), events));
}

Upstream::Upstream(Descriptor listener, int port, SslContext context, Events& events)
    : listener_(std::move(listener)), port_(port), context_(std::move(context)), events_(events) {
  threads_.emplace_back([this] { acceptLoop(); });
}

Upstream::~Upstream() {
  stop_.raise();
  threads_.front().join();
  threads_.clear();
}

void Upstream::setScript(UpstreamScript script) {
  const std::scoped_lock lock(mutex_);
  script_ = std::move(script);
}

void Upstream::acceptLoop() {
  std::array<pollfd, 2> watched = {{{listener_.get(), POLLIN, 0}, {stop_.descriptor(), POLLIN, 0}}};
  while (::poll(watched.data(), watched.size(), -1) < 0 || watched[1].revents == 0) {
    acceptSome();
  }
}

void Upstream::acceptSome() {
  const std::scoped_lock accepting(accepting_);
  for (;;) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) {
      return;
    }
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::scoped_lock lock(mutex_);
    ++record_.connections;
    if (threads_.size() <= kMostPeers) {
      ++starting_;
      threads_.emplace_back([this, moved = std::move(socket)]() mutable { serve(std::move(moved)); });
    }
  }
}

void Upstream::serve(Descriptor socket) {
  UpstreamStream stream(std::move(socket), context_.get(), stop_);
  {
    const std::scoped_lock lock(mutex_);
    streams_.push_back(&stream);
    --starting_;
  }
  if (stream.open()) {
    if (context_) {
      const std::scoped_lock lock(mutex_);
      ++record_.handshakes;
    }
    converse(stream);
  }
  {
    const std::scoped_lock lock(mutex_);
    std::erase(streams_, &stream);
  }
  changed_.notify_all();
}

void Upstream::converse(UpstreamStream& stream) {
  std::string bytes;
  for (;;) {
    HttpParsed parsed = parseRequest(bytes);
    if (parsed.state == HttpParsed::State::kWrong) {
      record({{"wrong", parsed.problem}});
      return;
    }
    if (parsed.state == HttpParsed::State::kMore) {
      if (!stream.read(bytes)) {
        if (!bytes.empty()) {
          record({{"wrong", "a request that is cut: " + latin1(bytes.substr(0, 200))}});
        }
        return;
      }
      continue;
    }
    bytes.erase(0, parsed.consumed);
    const HttpMessage& request = parsed.message;
    record({{"method", request.method},
            {"target", latin1(request.target)},
            {"headers", describeFields(request)},
            {"fields", fieldsOf(request)},
            {"body", describeBody(request.body)}});
    if (!answer(stream, request)) {
      return;
    }
  }
}

void Upstream::record(Json request) {
  {
    const std::scoped_lock lock(mutex_);
    if (record_.requests.size() < kMostRequests) {
      record_.requests.push_back(std::move(request));
    }
  }
  changed_.notify_all();
}

bool Upstream::answer(UpstreamStream& stream, const HttpMessage& request) {
  AnswerPlan plan;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto problem = script_.next(request, plan)) {
      record_.requests.push_back({{"wrong", *problem}});
      return false;
    }
  }
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const auto& [kind, text] = plan.actions[i];
    if (kind == AnswerAction::Kind::kAwait) {
      if (!stream.awaitEvent(events_.named(text))) {
        return false;
      }
      continue;
    }
    if ((i > 0 && !stream.awaitTaken()) || !stream.write(text)) {
      return false;
    }
  }
  if (plan.after == AfterAnswer::kReset) {
    stream.reset();
  } else if (plan.after == AfterAnswer::kClose) {
    stream.close();
  }
  return plan.after == AfterAnswer::kKeep;
}

void Upstream::settle() {
  // The kernel tells no event for that.
  const Deadline most = std::chrono::steady_clock::now() + kMostSettling;
  for (;;) {
    acceptSome();
    std::unique_lock lock(mutex_);
    const bool idle = starting_ == 0 &&
                      std::all_of(streams_.begin(), streams_.end(), [](const auto* stream) { return stream->idle(); });
    if (idle || std::chrono::steady_clock::now() > most) {
      return;
    }
    changed_.wait_for(lock, std::chrono::milliseconds(1));
  }
}

Upstream::Record Upstream::takeRecord() {
  settle();
  const std::scoped_lock lock(mutex_);
  return std::exchange(record_, {});
}

bool Upstream::awaitChange(const std::function<bool()>& done, Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (!done()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline || interrupted()) {
      return false;
    }
    changed_.wait_until(lock, std::min(deadline, now + kInterruptCheck));
  }
  return true;
}

bool Upstream::awaitRequests(std::size_t count, Deadline deadline) {
  return awaitChange([&] { return record_.requests.size() >= count; }, deadline);
}

bool Upstream::awaitLeft(Deadline deadline) {
  return awaitChange([&] { return starting_ == 0 && streams_.empty(); }, deadline);
}

}  // namespace conformance
