// Certificates of a test authority, made in memory when they are needed: no key lies in the tree, and none expires.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>

namespace conformance {

struct FreeSslContext {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, FreeSslContext>;

/// The authority's own certificate, the same for the whole run. "" when OpenSSL fails. Thread-safe.
const std::string& authorityPem();

/// A server's context with a certificate of this kind:
///   good                 of the authority, for 127.0.0.1, ::1 and localhost
///   wrongName            for other.example only
///   commonNameBesideName its common name is 127.0.0.1, its alternative name other.example
///   commonNameOnly       its common name is localhost, and there is no alternative name
///   expired, notYet      outside of its time
///   selfSigned           by itself
///   otherAuthority       by an authority that nobody trusts
/// nullptr for any other kind, or when OpenSSL fails.
SslContext makeServerContext(const std::string& kind);

}  // namespace conformance
