#include "wire/tls/certificate_authority.h"

#include "wire/tls/private_file.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::string_view kAuthorityName = "spillway-ca";
constexpr Duration kClockSkew = hours(1);  // certificates are valid a little before they are issued

struct ExtensionFree {
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};

struct StackFree {
  void operator()(STACK_OF(X509_EXTENSION) * extensions) const { sk_X509_EXTENSION_free(extensions); }
};

time_t seconds_of(WallTime time) {
  return static_cast<time_t>(std::chrono::floor<seconds>(time.time_since_epoch()).count());
}

WallTime plus(WallTime time, Duration duration) {
  return time + std::chrono::duration_cast<microseconds>(duration);
}

/// Calls one of OpenSSL's PEM writers with a memory buffer.
template <typename Write>
Result<std::string> to_pem(Write write) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || write(bio.get()) != 1) return openssl_error("writing PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

Result<std::string> certificate_pem_of(X509* certificate) {
  return to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

Result<std::string> key_pem_of(EVP_PKEY* key) {
  return to_pem(
      [&](BIO* bio) { return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

Result<KeyPtr> make_key() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl_error("making a key");
  return key;
}

bool add_name(X509_NAME* name, const char* field, const std::string& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(value.data());
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, bytes, static_cast<int>(value.size()), -1, 0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, ExtensionFree> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_random_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return false;
  bytes[0] &= 0x7f;  // positive
  BIGNUM* number = BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr);
  const bool set = number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set;
}

struct Draft {
  std::string common_name;
  std::vector<std::string> organizations;
  Duration life{};
  std::vector<std::pair<int, std::string>> extensions;
};

/// Signs a certificate for `key`; without an issuer it is its own.
Result<CertificatePtr> sign(const Draft& draft, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key, WallTime now) {
  CertificatePtr certificate(X509_new());
  X509* raw = certificate.get();
  const time_t from = seconds_of(plus(now, -kClockSkew));
  const time_t until = seconds_of(plus(now, draft.life));
  bool ok = raw != nullptr && X509_set_version(raw, X509_VERSION_3) == 1 && set_random_serial(raw) &&
            ASN1_TIME_set(X509_getm_notBefore(raw), from) != nullptr &&
            ASN1_TIME_set(X509_getm_notAfter(raw), until) != nullptr && X509_set_pubkey(raw, key) == 1;
  if (!ok) return openssl_error("making a certificate");
  X509_NAME* subject = X509_get_subject_name(raw);
  for (const std::string& organization : draft.organizations) ok = ok && add_name(subject, "O", organization);
  ok = ok && add_name(subject, "CN", draft.common_name);
  if (issuer == nullptr) issuer = raw;
  ok = ok && X509_set_issuer_name(raw, X509_get_subject_name(issuer)) == 1;
  for (const auto& [kind, value] : draft.extensions) ok = ok && add_extension(raw, issuer, kind, value);
  ok = ok && X509_sign(raw, issuer_key, EVP_sha256()) > 0;
  if (!ok) return openssl_error("making a certificate for " + draft.common_name);
  return certificate;
}

/// "DNS:localhost,IP:127.0.0.1". Hosts are checked before: commas would add names.
std::string alternative_names(const std::vector<std::string>& hosts) {
  std::string text;
  for (const std::string& host : hosts) {
    if (!text.empty()) text += ',';
    text += (is_numeric_address(host) ? "IP:" : "DNS:") + host;
  }
  return text;
}

Draft draft_of(const CertificateRequest& request) {
  Draft draft{request.common_name, request.organizations, CertificateAuthority::kCertificateLife, {}};
  draft.extensions = {
      {NID_basic_constraints, "critical,CA:FALSE"},
      {NID_key_usage, "critical,digitalSignature"},
      {NID_ext_key_usage, request.use == CertificateRequest::Use::kServer ? "serverAuth" : "clientAuth"},
      {NID_authority_key_identifier, "keyid"}};
  if (!request.hosts.empty()) draft.extensions.emplace_back(NID_subject_alt_name, alternative_names(request.hosts));
  return draft;
}

bool expires_before(const X509* certificate, WallTime time) {
  time_t limit = seconds_of(time);
  return X509_cmp_time(X509_get0_notAfter(certificate), &limit) <= 0;
}

/// The parts of a certificate that a request determines, as one text.
std::string contents_of(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  for (const int kind : {NID_ext_key_usage, NID_subject_alt_name}) {
    BIO_puts(bio.get(), "\n");
    const int index = X509_get_ext_by_NID(certificate, kind, -1);
    if (index >= 0) X509V3_EXT_print(bio.get(), X509_get_ext(certificate, index), 0, 0);
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace

Outcome check_hosts(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    const bool name = !host.empty() && host.find_first_not_of(
                                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789.-*") == std::string::npos;
    if (!name && !is_numeric_address(host)) return invalid("hosts", "\"{}\" is neither a name nor an address", host);
  }
  return {};
}

Result<SigningRequestPair> make_signing_request(const CertificateRequest& request) {
  SPILLWAY_TRY_VOID(check_hosts(request.hosts));
  SPILLWAY_TRY(key, make_key());
  const RequestPtr made(X509_REQ_new());
  if (!made || X509_REQ_set_pubkey(made.get(), key.get()) != 1) return openssl_error("making a certificate request");
  X509_NAME* subject = X509_REQ_get_subject_name(made.get());
  bool ok = true;
  for (const std::string& organization : request.organizations) ok = ok && add_name(subject, "O", organization);
  ok = ok && add_name(subject, "CN", request.common_name);
  if (ok && !request.hosts.empty()) {
    const std::unique_ptr<X509_EXTENSION, ExtensionFree> names(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternative_names(request.hosts).c_str()));
    const std::unique_ptr<STACK_OF(X509_EXTENSION), StackFree> extensions(sk_X509_EXTENSION_new_null());
    ok = names && extensions && sk_X509_EXTENSION_push(extensions.get(), names.get()) > 0 &&
         X509_REQ_add_extensions(made.get(), extensions.get()) == 1;
  }
  if (!ok || X509_REQ_sign(made.get(), key.get(), EVP_sha256()) <= 0) {
    return openssl_error("making a certificate request for " + request.common_name);
  }
  SPILLWAY_TRY(request_pem, to_pem([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, made.get()); }));
  SPILLWAY_TRY(key_pem, key_pem_of(key.get()));
  return SigningRequestPair{std::move(request_pem), std::move(key_pem)};
}

Result<WallTime> end_of(const KeyPair& pair) {
  SPILLWAY_TRY(certificate, parse_certificate(pair.certificate_pem, "certificate"));
  SPILLWAY_TRY(key, parse_key(pair.key_pem, "private key"));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return invalid("private key", "does not belong to the certificate ({})", take_openssl_problem());
  }
  return end_of_certificate(certificate.get());
}

Result<WallTime> end_of_certificate_pem(const std::string& pem) {
  SPILLWAY_TRY(certificate, parse_certificate(pem, "certificate"));
  return end_of_certificate(certificate.get());
}

Result<WallTime> CertificateAuthority::end() const {
  return end_of_certificate(certificate_.get());
}

CertificateAuthority::CertificateAuthority(std::string folder, CertificatePtr certificate, KeyPtr key,
                                           std::string certificate_pem)
    : folder_(std::move(folder)),
      certificate_(std::move(certificate)),
      key_(std::move(key)),
      certificate_pem_(std::move(certificate_pem)) {}

Result<CertificateAuthority> CertificateAuthority::open(const std::string& folder, WallTime now) {
  SPILLWAY_TRY_VOID(make_private_folder(folder));
  const std::string certificate_path = folder + "/ca.crt";
  const std::string key_path = folder + "/ca.key";
  auto certificate_pem = read_file(certificate_path);
  auto key_pem = read_private_file(key_path);
  const bool no_certificate = !certificate_pem && certificate_pem.error().code == ErrorCode::kNotFound;
  const bool no_key = !key_pem && key_pem.error().code == ErrorCode::kNotFound;
  if (no_certificate && no_key) {
    SPILLWAY_TRY(key, make_key());
    SPILLWAY_TRY(text, key_pem_of(key.get()));
    SPILLWAY_TRY_VOID(replace_file(key_path, text));
    return certify_itself(folder, std::move(key), now);
  }
  // A new key would silently lock out all clients that trust the old one.
  if (no_key) return invalid(key_path, "missing beside ca.crt");
  if (!key_pem) return key_pem.error();
  SPILLWAY_TRY(key, parse_key(*key_pem, key_path));
  // an earlier process was interrupted before it wrote the certificate
  if (no_certificate) return certify_itself(folder, std::move(key), now);
  if (!certificate_pem) return certificate_pem.error();
  SPILLWAY_TRY(certificate, parse_certificate(*certificate_pem, certificate_path));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return invalid(key_path, "does not belong to ca.crt ({})", take_openssl_problem());
  }
  if (expires_before(certificate.get(), plus(now, kRenewBefore))) return certify_itself(folder, std::move(key), now);
  return CertificateAuthority(folder, std::move(certificate), std::move(key), *std::move(certificate_pem));
}

/// A new certificate for the authority's key. Certificates signed with that key stay valid under it.
Result<CertificateAuthority> CertificateAuthority::certify_itself(const std::string& folder, KeyPtr key, WallTime now) {
  Draft draft{std::string(kAuthorityName), {}, kAuthorityLife, {}};
  draft.extensions = {{NID_basic_constraints, "critical,CA:TRUE"},
                      {NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature"},
                      {NID_subject_key_identifier, "hash"}};
  SPILLWAY_TRY(certificate, sign(draft, key.get(), nullptr, key.get(), now));
  SPILLWAY_TRY(certificate_pem, certificate_pem_of(certificate.get()));
  SPILLWAY_TRY_VOID(replace_file(folder + "/ca.crt", certificate_pem));
  return CertificateAuthority(folder, std::move(certificate), std::move(key), std::move(certificate_pem));
}

Result<std::string> CertificateAuthority::certify(const KeyPtr& key, const CertificateRequest& request, Duration life,
                                                  WallTime now) const {
  SPILLWAY_TRY_VOID(check_hosts(request.hosts));
  Draft draft = draft_of(request);
  draft.life = life;
  SPILLWAY_TRY(certificate, sign(draft, key.get(), certificate_.get(), key_.get(), now));
  return certificate_pem_of(certificate.get());
}

Result<KeyPair> CertificateAuthority::issue(const CertificateRequest& request, WallTime now) const {
  SPILLWAY_TRY_VOID(check_hosts(request.hosts));
  SPILLWAY_TRY(key, make_key());
  SPILLWAY_TRY(certificate, sign(draft_of(request), key.get(), certificate_.get(), key_.get(), now));
  KeyPair pair;
  SPILLWAY_TRY(certificate_pem, certificate_pem_of(certificate.get()));
  SPILLWAY_TRY(key_pem, key_pem_of(key.get()));
  pair.certificate_pem = std::move(certificate_pem);
  pair.key_pem = std::move(key_pem);
  return pair;
}

bool CertificateAuthority::still_good(const KeyPair& pair, const CertificateRequest& request, WallTime now) const {
  const auto certificate = parse_certificate(pair.certificate_pem, "certificate");
  const auto key = parse_key(pair.key_pem, "key");
  if (!certificate || !key || X509_check_private_key(certificate->get(), key->get()) != 1 ||
      X509_verify(certificate->get(), X509_get0_pubkey(certificate_.get())) != 1) {
    take_openssl_problem();
    return false;
  }
  if (expires_before(certificate->get(), plus(now, kRenewBefore))) return false;
  const auto wanted = sign(draft_of(request), key->get(), certificate_.get(), key_.get(), now);
  return wanted && contents_of(wanted->get()) == contents_of(certificate->get());
}

Result<KeyPair> CertificateAuthority::keep(std::string_view name, const CertificateRequest& request,
                                           WallTime now) const {
  SPILLWAY_TRY_VOID(check_hosts(request.hosts));
  const std::string base = fmt::format("{}/{}", folder_, name);
  auto certificate_pem = read_file(base + ".crt");
  auto key_pem = read_private_file(base + ".key");
  if (certificate_pem && key_pem) {
    KeyPair kept{*std::move(certificate_pem), *std::move(key_pem)};
    if (still_good(kept, request, now)) return kept;
  }
  SPILLWAY_TRY(pair, issue(request, now));
  SPILLWAY_TRY_VOID(replace_file(base + ".key", pair.key_pem));
  SPILLWAY_TRY_VOID(replace_file(base + ".crt", pair.certificate_pem));
  return pair;
}

}  // namespace spillway::wire
