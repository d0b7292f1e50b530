#include "wire/tls/openssl_handles.h"

#include "api/text/base64.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <ctime>

namespace spillway::wire {

namespace {

/// Keeps OpenSSL from reading a pass phrase for an encrypted key from the terminal.
int no_pass_phrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

void OpensslFree::operator()(bio_st* bio) const {
  BIO_free(bio);
}

void OpensslFree::operator()(evp_pkey_st* key) const {
  EVP_PKEY_free(key);
}

void OpensslFree::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

void OpensslFree::operator()(x509_st* certificate) const {
  X509_free(certificate);
}

void OpensslFree::operator()(X509_req_st* request) const {
  X509_REQ_free(request);
}

std::string take_openssl_problem() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown TLS error";
  if (const char* reason = ERR_reason_error_string(code)) return reason;
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

Error openssl_error(std::string_view doing) {
  return make_error(ErrorCode::kInternalError, "{}: {}", doing, take_openssl_problem());
}

BioPtr read_from(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<CertificatePtr> parse_certificate(std::string_view pem, std::string_view what) {
  CertificatePtr certificate(PEM_read_bio_X509(read_from(pem).get(), nullptr, no_pass_phrase, nullptr));
  if (!certificate) return invalid(what, "not a PEM certificate ({})", take_openssl_problem());
  return certificate;
}

Result<std::string> key_id(evp_pkey_st* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned digest_size = 0;
  const bool hashed = size > 0 && EVP_Digest(der, static_cast<std::size_t>(size), digest.data(), &digest_size,
                                             EVP_sha256(), nullptr) == 1;
  OPENSSL_free(der);
  if (!hashed) return make_error(ErrorCode::kInternalError, "reading a key: {}", take_openssl_problem());
  return api::encode_base64_url({reinterpret_cast<const char*>(digest.data()), digest_size});
}

Result<std::string> certificate_key_id(std::string_view pem, std::string_view what) {
  SPILLWAY_TRY(certificate, parse_certificate(pem, what));
  return key_id(X509_get0_pubkey(certificate.get()));
}

Result<KeyPtr> parse_key(std::string_view pem, std::string_view what) {
  KeyPtr key(PEM_read_bio_PrivateKey(read_from(pem).get(), nullptr, no_pass_phrase, nullptr));
  if (!key) return invalid(what, "not a PEM private key without pass phrase ({})", take_openssl_problem());
  return key;
}

Result<WallTime> end_of_certificate(const X509* certificate) {
  std::tm until{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until) != 1) {
    return invalid("certificate", "has no end ({})", take_openssl_problem());
  }
  return WallTime(seconds(timegm(&until)));
}

}  // namespace spillway::wire
