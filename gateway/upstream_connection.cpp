#include "gateway/upstream_connection.h"

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <poll.h>

#include <cerrno>
#include <string>
#include <utility>

namespace stitchkit {
namespace {

Error connectError(int number) {
  return internalError("The upstream could not be reached", "connect", number);
}

Result<UniqueFd> dial(const SocketAddress& address, const CancelSignal& signal, GatewayClock::time_point deadline) {
  UniqueFd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return connectError(errno);
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), address.get(), address.length) == 0) {
    return socket;
  }
  if (errno != EINPROGRESS) {
    return connectError(errno);
  }
  if (Result<void> connected = signal.wait(socket.get(), POLLOUT, deadline); !connected) {
    return std::move(connected).error();
  }
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure != 0) {
    return connectError(failure);
  }
  return socket;
}

Result<UniqueFd> dialAny(const std::vector<SocketAddress>& addresses, const CancelSignal& signal,
                         GatewayClock::time_point deadline) {
  Result<UniqueFd> last = connectError(EADDRNOTAVAIL);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // An address that does not answer leaves time for those after it.
    const auto now = GatewayClock::now();
    const auto share = now + (deadline - now) / static_cast<int>(addresses.size() - i);
    last = dial(addresses[i], signal, share);
    if (last || last.error().kind == ErrorKind::kCancelled) {
      break;
    }
  }
  return last;
}

}  // namespace

Result<std::unique_ptr<UpstreamConnection>> UpstreamConnection::open(const Origin& origin,
                                                                     const UpstreamSettings& settings,
                                                                     const CancelSignal& signal,
                                                                     GatewayClock::time_point deadline) {
  const Result<std::vector<SocketAddress>> addresses =
      addressesOf(origin, settings.lookup, settings.privateNames, signal, deadline);
  if (!addresses) {
    return addresses.error();
  }
  Result<UniqueFd> socket = dialAny(*addresses, signal, deadline);
  if (!socket) {
    return std::move(socket).error();
  }
  SslPtr ssl;
  if (origin.secure) {
    Result<SslPtr> made = settings.tls.connect(origin, socket->get());
    if (!made) {
      return std::move(made).error();
    }
    ssl = std::move(*made);
  }
  auto connection = std::make_unique<UpstreamConnection>(std::move(*socket), std::move(ssl));
  if (Result<void> shaken = connection->shakeHands(signal, deadline); !shaken) {
    return std::move(shaken).error();
  }
  return connection;
}

Result<void> UpstreamConnection::shakeHands(const CancelSignal& signal, GatewayClock::time_point deadline) {
  while (ssl_) {
    ::ERR_clear_error();
    const int result = ::SSL_do_handshake(ssl_.get());
    if (result == 1) {
      break;
    }
    if (Result<void> ready = waitForTls(result, "handshake", signal, deadline); !ready) {
      return ready;
    }
  }
  return {};
}

// After an operation that did not succeed: waits for what it wants, or says why it failed.
Result<void> UpstreamConnection::waitForTls(int result, const char* what, const CancelSignal& signal,
                                            GatewayClock::time_point deadline) {
  const int why = ::SSL_get_error(ssl_.get(), result);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
    return signal.wait(socket_.get(), why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline);
  }
  const long verified = ::SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK) {
    return Error(ErrorKind::kInternal, "The upstream's certificate is not trusted")
        .withHint("An authority of your own is added with --ca-file.")
        .withPrivate(::X509_verify_cert_error_string(verified));
  }
  return Error(ErrorKind::kInternal, "TLS to the upstream failed").withPrivate(std::string(what) + ": " + tlsErrorText());
}

Result<void> UpstreamConnection::write(std::string_view bytes, const CancelSignal& signal,
                                       GatewayClock::time_point deadline) {
  while (!bytes.empty()) {
    if (ssl_) {
      std::size_t written = 0;
      ::ERR_clear_error();
      const int result = ::SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
      if (result == 1) {
        bytes.remove_prefix(written);
      } else if (Result<void> ready = waitForTls(result, "write", signal, deadline); !ready) {
        return ready;
      }
      continue;
    }
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return internalError("The upstream could not be written to", "send", errno);
    } else if (Result<void> ready = signal.wait(socket_.get(), POLLOUT, deadline); !ready) {
      return ready;
    }
  }
  return {};
}

Result<std::size_t> UpstreamConnection::read(char* buffer, std::size_t size, const CancelSignal& signal,
                                             GatewayClock::time_point deadline) {
  while (true) {
    if (ssl_) {
      std::size_t got = 0;
      ::ERR_clear_error();
      const int result = ::SSL_read_ex(ssl_.get(), buffer, size, &got);
      if (result == 1) {
        return got;
      }
      if (::SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN) {
        return std::size_t{0};
      }
      if (Result<void> ready = waitForTls(result, "read", signal, deadline); !ready) {
        return std::move(ready).error();
      }
      continue;
    }
    const ssize_t got = ::recv(socket_.get(), buffer, size, 0);
    if (got >= 0) {
      return static_cast<std::size_t>(got);
    }
    if (errno != EAGAIN && errno != EINTR) {
      return internalError("The upstream ended the connection", "recv", errno);
    }
    if (Result<void> ready = signal.wait(socket_.get(), POLLIN, deadline); !ready) {
      return std::move(ready).error();
    }
  }
}

bool UpstreamConnection::quiet() const {
  pollfd polled{socket_.get(), POLLIN | POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) == 0 && (!ssl_ || ::SSL_has_pending(ssl_.get()) == 0);
}

}  // namespace stitchkit
