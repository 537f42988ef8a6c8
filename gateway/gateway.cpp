#include "gateway/gateway.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace stitchkit {
namespace {

Error noGateway(const char* operation, int number) {
  Error error = internalError("The network gateway could not be opened", operation, number);
  error.kind = ErrorKind::kNetworkDenied;
  return error;
}

std::size_t descriptorLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

}  // namespace

GatewayThreads::GatewayThreads(GatewayOptions options) : tls_(std::move(options.caFile)), places_(descriptorLimit()) {
  // More than a few would only wait for each other's memory; one alone is what a busy handle is limited by.
  const std::size_t count = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4);
  for (std::size_t i = 0; i < count; ++i) {
    auto thread = std::make_unique<Thread>(tls_, options.privateNames);
    try {
      thread->thread = std::thread([&context = thread->context] { context.run(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) {
        throw;
      }
      return;
    }
    threads_.push_back(std::move(thread));
  }
}

GatewayThreads::~GatewayThreads() {
  for (const auto& thread : threads_) {
    thread->context.stop();
    thread->thread.join();
  }
}

Result<UniqueFd> listenInDirectory(const std::string& directory, const std::string& name) {
  const UniqueFd folder(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    return noGateway("open", errno);
  }
  if (::unlinkat(folder.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return noGateway("unlink", errno);
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return noGateway("socket", errno);
  }
  // A socket's path has 108 bytes at most; the one through the descriptor is always short.
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/" + name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return noGateway("bind", errno);
  }
  if (::fchmodat(folder.get(), name.c_str(), 0600, 0) != 0) {
    return noGateway("chmod", errno);
  }
  constexpr int kBacklog = 128;
  if (::listen(socket.get(), kBacklog) != 0) {
    return noGateway("listen", errno);
  }
  return socket;
}

Gateway::Gateway(Loop& loop, GatewayThreads& threads, UniqueFd listening, NetworkPolicy policy,
                 std::shared_ptr<GatewayWatch> watch, OnFailure onFailure)
    : loop_(loop), places_(threads.places()) {
  places_.handleOpened();
  const auto slots = std::make_shared<RequestSlots>();
  const auto tell = [&loop, onFailure = std::move(onFailure)](GatewayFailure failure) {
    loop.post([onFailure, failure = std::move(failure)] { onFailure(failure); });
  };
  for (std::size_t i = 0; i < threads.count(); ++i) {
    parts_.push_back(
        std::make_shared<GatewayCore>(threads.settings(i), places_, slots, watch, threads.count(), policy, tell));
  }
  auto socket = std::make_shared<UniqueFd>(std::move(listening));
  std::vector<std::weak_ptr<GatewayCore>> parts(parts_.begin(), parts_.end());
  boost::asio::post(parts_.front()->context(), [core = parts_.front(), parts = std::move(parts), socket] {
    core->listen(std::move(*socket), parts);
  });
}

// `done` comes on the loop when all parts have done it. The parts given away for good end on their own threads.
void Gateway::onAll(std::vector<std::shared_ptr<GatewayCore>> parts, const std::function<void(GatewayCore&)>& action,
                    std::function<void()> done) {
  if (parts.empty()) {
    loop_.post(std::move(done));
    return;
  }
  const auto left = std::make_shared<std::atomic<std::size_t>>(parts.size());
  const auto shared = std::make_shared<std::function<void()>>(std::move(done));
  for (std::shared_ptr<GatewayCore>& part : parts) {
    boost::asio::io_context& context = part->context();
    boost::asio::post(context, [part = std::move(part), action, left, shared, &loop = loop_]() mutable {
      action(*part);
      part.reset();
      if (--*left == 0) {
        loop.post(std::move(*shared));
      }
    });
  }
}

void Gateway::setPolicy(NetworkPolicy policy, std::function<void()> done) {
  onAll(
      parts_, [policy = std::move(policy)](GatewayCore& core) { core.setPolicy(policy); }, std::move(done));
}

// Whoever keeps this object longer than the threads live keeps nothing of theirs.
void Gateway::close(std::function<void()> done) {
  onAll(
      std::exchange(parts_, {}), [](GatewayCore& core) { core.close(); },
      [&places = places_, done = std::move(done)] {
        places.handleClosed();
        done();
      });
}

void Gateway::setPaused(bool paused) {
  onAll(
      parts_, [paused](GatewayCore& core) { core.setPaused(paused); }, [] {});
}

}  // namespace stitchkit
