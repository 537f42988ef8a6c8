#include "conformance/certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <map>

namespace conformance {
namespace {

template <auto function>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    function(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using MemoryBio = std::unique_ptr<BIO, Free<BIO_free>>;

constexpr long kDay = 86400;

struct Pair {
  Key key;
  Certificate certificate;
};

struct Wanted {
  const char* commonName = "localhost";
  const char* names = "";  ///< subject alternative names; "" for none
  long begins = -kDay;     ///< seconds from now
  long ends = kDay;
  bool authority = false;
};

bool addExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(::X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension && ::X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// @param issuer  null for one that signs itself
Pair makePair(const Wanted& wanted, const Pair* issuer) {
  static std::atomic<long> serial = 1;
  Pair made{Key(EVP_EC_gen("P-256")), Certificate(::X509_new())};
  X509* certificate = made.certificate.get();
  if (!made.key || certificate == nullptr) {
    return {};
  }
  X509* signer = issuer != nullptr ? issuer->certificate.get() : certificate;
  ::X509_set_version(certificate, X509_VERSION_3);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate), serial++);
  ::X509_gmtime_adj(::X509_getm_notBefore(certificate), wanted.begins);
  ::X509_gmtime_adj(::X509_getm_notAfter(certificate), wanted.ends);
  ::X509_set_pubkey(certificate, made.key.get());
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(wanted.commonName), -1, -1, 0);
  ::X509_set_issuer_name(certificate, ::X509_get_subject_name(signer));
  const bool extended =
      addExtension(certificate, signer, NID_basic_constraints,
                   wanted.authority ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
      addExtension(certificate, signer, NID_key_usage,
                   wanted.authority ? "critical,keyCertSign" : "critical,digitalSignature") &&
      (*wanted.names == '\0' || addExtension(certificate, signer, NID_subject_alt_name, wanted.names));
  const EVP_PKEY* key = issuer != nullptr ? issuer->key.get() : made.key.get();
  const bool isSigned = ::X509_sign(certificate, const_cast<EVP_PKEY*>(key), ::EVP_sha256()) > 0;
  return extended && isSigned ? std::move(made) : Pair{};
}

const Pair& authority() {
  static const Pair pair = makePair({"Conformance test authority", "", -kDay, kDay, true}, nullptr);
  return pair;
}

const Pair& untrusted() {
  static const Pair pair = makePair({"Another authority", "", -kDay, kDay, true}, nullptr);
  return pair;
}

Pair makeKind(const std::string& kind) {
  constexpr const char* kNames = "DNS:localhost,IP:127.0.0.1,IP:::1";
  const std::map<std::string, Wanted> byAuthority = {
      {"good", {"localhost", kNames}},
      {"wrongName", {"other.example", "DNS:other.example"}},
      {"commonNameBesideName", {"127.0.0.1", "DNS:other.example"}},
      {"commonNameOnly", {"localhost", ""}},
      {"expired", {"localhost", kNames, -2 * kDay, -kDay}},
      {"notYet", {"localhost", kNames, kDay, 2 * kDay}},
  };
  const auto found = byAuthority.find(kind);
  if (found != byAuthority.end()) {
    return makePair(found->second, &authority());
  }
  return kind == "selfSigned"       ? makePair({"localhost", kNames}, nullptr)
         : kind == "otherAuthority" ? makePair({"localhost", kNames}, &untrusted())
                                    : Pair{};
}

}  // namespace

const std::string& authorityPem() {
  static const std::string pem = [] {
    const MemoryBio memory(::BIO_new(::BIO_s_mem()));
    if (!authority().certificate || ::PEM_write_bio_X509(memory.get(), authority().certificate.get()) != 1) {
      return std::string();
    }
    char* text = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &text);
    return std::string(text, static_cast<std::size_t>(size));
  }();
  return pem;
}

SslContext makeServerContext(const std::string& kind) {
  const Pair pair = makeKind(kind);
  SslContext context(::SSL_CTX_new(::TLS_server_method()));
  const bool usable = pair.certificate && context &&
                      ::SSL_CTX_use_certificate(context.get(), pair.certificate.get()) == 1 &&
                      ::SSL_CTX_use_PrivateKey(context.get(), pair.key.get()) == 1;
  return usable ? std::move(context) : nullptr;
}

}  // namespace conformance
