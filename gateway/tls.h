// TLS towards upstreams, verified by OpenSSL.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <string>

#include "gateway/origin.h"
#include "rpc/base/error.h"

namespace stitchkit {

struct SslFree {
  void operator()(SSL* ssl) const noexcept { ::SSL_free(ssl); }
  void operator()(SSL_CTX* context) const noexcept { ::SSL_CTX_free(context); }
};
using SslPtr = std::unique_ptr<SSL, SslFree>;

/// Made with the first connection that needs it, since the roots cost megabytes. Thread-safe.
class TlsContext {
 public:
  /// @param caFile a PEM file of authorities beside the system's; "" for none.
  explicit TlsContext(std::string caFile) : caFile_(std::move(caFile)) {}

  /// A client's end on a connected socket: verifies the chain, and that the certificate names the origin's host (in a
  /// subject alternative name; RFC 9525 knows no common name any more). At least TLS 1.2.
  Result<SslPtr> connect(const Origin& origin, int socket);

 private:
  Result<SSL_CTX*> context();

  std::string caFile_;
  std::mutex mutex_;
  std::unique_ptr<SSL_CTX, SslFree> context_;  // guarded by mutex_ until it is there
};

/// kInternal when the file cannot be read or holds no certificate: asked at start, so that an operator learns of it
/// then.
Result<void> checkCaFile(const std::string& caFile);

/// What OpenSSL has to say of the last failure on this thread; for the log.
std::string tlsErrorText();

}  // namespace stitchkit
