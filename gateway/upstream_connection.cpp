#include "gateway/upstream_connection.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

namespace stitchkit {
namespace {

bool issuerIsUnknown(long verified) {
  return verified == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT || verified == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
         verified == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT || verified == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
         verified == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}

}  // namespace
// After an operation of OpenSSL that did not succeed: what it waits for, or why it failed.
Result<Progress> UpstreamConnection::afterTls(int result, const char* what) {
  switch (::SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Progress{0, false, TcpSocket::wait_read};
    case SSL_ERROR_WANT_WRITE:
      return Progress{0, false, TcpSocket::wait_write};
    case SSL_ERROR_ZERO_RETURN:
      return Progress{0, true, {}};
    default:
      break;
  }
  const long verified = ::SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK) {
    Error untrusted(ErrorKind::kInternal,
                    std::string("The upstream's certificate is refused: ") + ::X509_verify_cert_error_string(verified));
    return issuerIsUnknown(verified) ? std::move(untrusted).withHint("An authority of your own is added with --ca-file")
                                     : untrusted;
  }
  return Error(ErrorKind::kInternal, "TLS to the upstream failed")
      .withPrivate(std::string(what) + ": " + tlsErrorText());
}

Result<Progress> UpstreamConnection::shakeHands() {
  if (!ssl_) {
    return Progress{};
  }
  ::ERR_clear_error();
  const int result = ::SSL_do_handshake(ssl_.get());
  return result == 1 ? Progress{} : afterTls(result, "handshake");
}

Result<Progress> UpstreamConnection::write(std::string_view bytes) {
  if (ssl_) {
    std::size_t written = 0;
    ::ERR_clear_error();
    const int result = ::SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
    return result == 1 ? Progress{written, false, {}} : afterTls(result, "write");
  }
  const ssize_t sent = ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    return Progress{static_cast<std::size_t>(sent), false, {}};
  }
  if (errno == EAGAIN || errno == EINTR) {
    return Progress{0, false, TcpSocket::wait_write};
  }
  return internalError("The upstream could not be written to", "send", errno);
}

Result<Progress> UpstreamConnection::read(char* buffer, std::size_t size) {
  if (ssl_) {
    std::size_t got = 0;
    ::ERR_clear_error();
    const int result = ::SSL_read_ex(ssl_.get(), buffer, size, &got);
    return result == 1 ? Progress{got, false, {}} : afterTls(result, "read");
  }
  const ssize_t got = ::recv(socket_.native_handle(), buffer, size, MSG_DONTWAIT);
  if (got >= 0) {
    return Progress{static_cast<std::size_t>(got), got == 0, {}};
  }
  if (errno == EAGAIN || errno == EINTR) {
    return Progress{0, false, TcpSocket::wait_read};
  }
  return internalError("The upstream ended the connection", "recv", errno);
}

bool UpstreamConnection::quiet() {
  pollfd polled{socket_.native_handle(), POLLIN | POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) == 0 && (!ssl_ || ::SSL_has_pending(ssl_.get()) == 0);
}

}  // namespace stitchkit
