#include "gateway/tls.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace stitchkit {
namespace {

// The folder of hashed names is read a certificate at a time, as they are needed; the bundle all at once, which costs
// megabytes. So the bundle only where somebody asked for one, or no folder is there.
bool addSystemRoots(SSL_CTX* context) {
  const bool wantsFile = std::getenv(::X509_get_default_cert_file_env()) != nullptr;
  const bool folder = ::SSL_CTX_set_default_verify_dir(context) == 1;
  return wantsFile || !folder ? ::SSL_CTX_set_default_verify_file(context) == 1 || folder : true;
}

Error tlsError(std::string detail) {
  return Error(ErrorKind::kInternal, "TLS to the upstream could not be set up").withPrivate(std::move(detail));
}

}  // namespace

std::string tlsErrorText() {
  std::array<char, 256> text{};
  const unsigned long code = ::ERR_get_error();
  ::ERR_error_string_n(code, text.data(), text.size());
  ::ERR_clear_error();
  return code == 0 ? "no error of OpenSSL" : text.data();
}

Result<void> checkCaFile(const std::string& caFile) {
  std::unique_ptr<SSL_CTX, SslFree> context(::SSL_CTX_new(::TLS_client_method()));
  if (!context || ::SSL_CTX_load_verify_file(context.get(), caFile.c_str()) != 1) {
    return Error(ErrorKind::kInternal, "The file of --ca-file holds no certificate that can be read")
        .withHint("Give it a PEM file of certificate authorities.")
        .withPrivate(tlsErrorText());
  }
  return {};
}

Result<SSL_CTX*> TlsContext::context() {
  const std::lock_guard lock(mutex_);
  if (context_) {
    return context_.get();
  }
  std::unique_ptr<SSL_CTX, SslFree> made(::SSL_CTX_new(::TLS_client_method()));
  if (!made || ::SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION) != 1 || !addSystemRoots(made.get())) {
    return tlsError(tlsErrorText());
  }
  if (!caFile_.empty() && ::SSL_CTX_load_verify_file(made.get(), caFile_.c_str()) != 1) {
    return tlsError("--ca-file: " + tlsErrorText());
  }
  ::SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_mode(made.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_session_cache_mode(made.get(), SSL_SESS_CACHE_OFF);
  context_ = std::move(made);
  return context_.get();
}

Result<SslPtr> TlsContext::connect(const Origin& origin, int socket) {
  Result<SSL_CTX*> made = context();
  if (!made) {
    return std::move(made).error();
  }
  constexpr std::array<unsigned char, 9> kHttp11{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  SslPtr ssl(::SSL_new(*made));
  bool ready = ssl && ::SSL_set_fd(ssl.get(), socket) == 1 &&
               ::SSL_set_alpn_protos(ssl.get(), kHttp11.data(), kHttp11.size()) == 0;
  if (ready && origin.isAddress) {
    ready = ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl.get()), origin.host.c_str()) == 1;
  } else if (ready) {
    ::SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    ready = ::SSL_set1_host(ssl.get(), origin.host.c_str()) == 1 &&
            ::SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                       const_cast<char*>(origin.host.c_str())) == 1;
  }
  if (!ready) {
    return tlsError(tlsErrorText());
  }
  ::SSL_set_connect_state(ssl.get());
  return ssl;
}

}  // namespace stitchkit
