#include "bench/http_servers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace stitchkit::bench {

namespace {

constexpr int kListening = 256;

void must(bool done, const char* what) {
  if (!done) {
    throw std::system_error(errno, std::generic_category(), what);
  }
}

void watch(int events, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  must(epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
}

}  // namespace

CheapUpstream::CheapUpstream()
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      events_(epoll_create1(EPOLL_CLOEXEC)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  must(bind(listener_.get(), any, size) == 0 && listen(listener_.get(), kListening) == 0, "listen");
  must(getsockname(listener_.get(), any, &size) == 0, "getsockname");
  port_ = ntohs(address.sin_port);
  watch(events_.get(), listener_.get());
  watch(events_.get(), stop_.get());
  thread_ = std::thread([this] { serve(); });
}

CheapUpstream::~CheapUpstream() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void CheapUpstream::serve() {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n" + std::string(1024, 'x');
  std::array<epoll_event, 64> ready;
  std::array<char, 16384> request;
  for (;;) {
    const int count = epoll_wait(events_.get(), ready.data(), static_cast<int>(ready.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int descriptor = ready[static_cast<std::size_t>(i)].data.fd;
      if (descriptor == stop_.get()) {
        return;
      }
      if (descriptor == listener_.get()) {
        const int connection = accept4(descriptor, nullptr, nullptr, SOCK_CLOEXEC);
        const int noDelay = 1;
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &noDelay, sizeof noDelay);
        watch(events_.get(), connection);
      } else if (read(descriptor, request.data(), request.size()) <= 0 ||
                 write(descriptor, answer.data(), answer.size()) < 0) {
        close(descriptor);
      }
    }
  }
}

}  // namespace stitchkit::bench
