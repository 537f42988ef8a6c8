#include "gateway/gateway.h"

#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace stitchkit {
namespace {

Error noGateway(const char* operation, int number) {
  Error error = internalError("The network gateway could not be opened", operation, number);
  error.kind = ErrorKind::kNetworkDenied;
  return error;
}

}  // namespace

GatewayThread::GatewayThread(GatewayOptions options)
    : tls_(std::move(options.caFile)), settings_{systemLookup, options.privateNames, tls_}, thread_([this] {
        context_.run();
      }) {}

GatewayThread::~GatewayThread() {
  context_.stop();
  thread_.join();
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

Gateway::Gateway(Loop& loop, GatewayThread& thread, UniqueFd listening, NetworkPolicy policy, OnFailure onFailure)
    : loop_(loop),
      core_(std::make_shared<GatewayCore>(thread.context(), thread.calls(), thread.settings(), std::move(policy),
                                          [&loop, onFailure = std::move(onFailure)](GatewayFailure failure) {
                                            loop.post([onFailure, failure = std::move(failure)] { onFailure(failure); });
                                          })) {
  auto socket = std::make_shared<UniqueFd>(std::move(listening));
  boost::asio::post(core_->context(), [core = core_, socket] { core->start(std::move(*socket)); });
}

void Gateway::setPolicy(NetworkPolicy policy, std::function<void()> done) {
  boost::asio::post(core_->context(), [core = core_, policy = std::move(policy), &loop = loop_, done = std::move(done)] {
    core->setPolicy(policy, [&loop, done] { loop.post(done); });
  });
}

void Gateway::close(std::function<void()> done) {
  boost::asio::post(core_->context(), [core = core_, &loop = loop_, done = std::move(done)] {
    core->close([&loop, done] { loop.post(done); });
  });
}

void Gateway::setPaused(bool paused) {
  boost::asio::post(core_->context(), [core = core_, paused] { core->setPaused(paused); });
}

}  // namespace stitchkit
