#include "wire/tls/tls.h"

#include "base/check.h"
#include "wire/tls/openssl_handles.h"
#include "wire/tls/tls_stream.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <utility>

namespace spillway::wire {

namespace {

/// The ciphers of TLS 1.2: forward secrecy and authenticated encryption. (TLS 1.3 has nothing else.)
constexpr const char* kTls12Ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

using ContextPtr = std::shared_ptr<SSL_CTX>;

Result<ContextPtr> make_context(const SSL_METHOD* method) {
  ContextPtr context(SSL_CTX_new(method), SSL_CTX_free);
  if (!context) return make_error(ErrorCode::kInternalError, "TLS: {}", take_openssl_problem());
  SSL_CTX* raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(raw, kTls12Ciphers);
  // No resumption: a resumed session would carry a client's certificate past the date at which it ends.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_options(raw, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                               SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  return context;
}

/// The suites of TLS 1.2 among these, as the library writes a list of them.
std::string tls12_suites(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    const std::string_view known = OPENSSL_cipher_name(name.c_str());
    if (known == "(NONE)" || known.starts_with("TLS_")) continue;  // suites of TLS 1.3 keep their registered names
    if (!list.empty()) list += ':';
    list += known;
  }
  return list;
}

void set_bounds(SSL_CTX* context, const TlsBounds& bounds) {
  const std::string suites = tls12_suites(bounds.cipher_suites);
  const bool has_tls12 =
      bounds.cipher_suites.empty() || (!suites.empty() && SSL_CTX_set_cipher_list(context, suites.c_str()) == 1);
  if (!has_tls12) ERR_clear_error();  // a library may lack every suite of the list
  if (!has_tls12 || bounds.version_min == TlsBounds::Version::k13)
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
}

Outcome use_identity(SSL_CTX* context, const KeyPair& identity) {
  SPILLWAY_TRY(certificate, parse_certificate(identity.certificate_pem, "certificate"));
  SPILLWAY_TRY(key, parse_key(identity.key_pem, "private key"));
  if (SSL_CTX_use_certificate(context, certificate.get()) != 1) {
    return invalid("certificate", "{}", take_openssl_problem());
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return invalid("private key", "does not belong to the certificate ({})", take_openssl_problem());
  }
  // The rest of the chain.
  const BioPtr bio(BIO_new_mem_buf(identity.certificate_pem.data(), static_cast<int>(identity.certificate_pem.size())));
  CertificatePtr leaf(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) != 1) X509_free(next);
  }
  ERR_clear_error();  // the end of the text is reported as an error
  return {};
}

Outcome trust(SSL_CTX* context, std::string_view pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  int count = 0;
  while (true) {
    const CertificatePtr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!certificate) break;
    if (X509_STORE_add_cert(store, certificate.get()) != 1) {
      return invalid("certificate authority", "{}", take_openssl_problem());
    }
    ++count;
  }
  if (count == 0) return invalid("certificate authority", "not a PEM certificate ({})", take_openssl_problem());
  ERR_clear_error();
  return {};
}

/// A list of protocols as the handshake carries it: each with its length before it, the preferred one first.
constexpr std::string_view kSpoken = "\x02h2\x08http/1.1";
constexpr std::string_view kSpokenHttp11 = "\x08http/1.1";

/// Chooses HTTP/2 or HTTP/1.1 in the handshake. A client that offers neither gets an answer without a choice.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size, const unsigned char* offered,
                    unsigned offered_size, void* spoken) {
  const auto& ours = *static_cast<const std::string_view*>(spoken);
  unsigned char* match = nullptr;
  if (SSL_select_next_proto(&match, chosen_size, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned>(ours.size()), offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = match;
  return SSL_TLSEXT_ERR_OK;
}

/// Lets the handshake succeed with a certificate that does not verify: the request is then refused with 401, which a
/// client understands better than a broken connection. PeerCertificate::problem keeps the verdict.
int accept_any(int, X509_STORE_CTX*) {
  return 1;
}

}  // namespace

TlsContext::TlsContext(std::shared_ptr<ssl_ctx_st> context, bool verify_peer, Protocols protocols)
    : context_(std::move(context)), verify_peer_(verify_peer), protocols_(protocols) {}

Result<std::shared_ptr<const TlsContext>> TlsContext::make_server(const ServerOptions& options) {
  SPILLWAY_TRY(context, make_context(TLS_server_method()));
  SPILLWAY_TRY_VOID(use_identity(context.get(), options.identity));
  set_bounds(context.get(), options.bounds);
  const std::string_view& spoken = options.protocols == Protocols::kHttp11 ? kSpokenHttp11 : kSpoken;
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, const_cast<std::string_view*>(&spoken));  // only read
  const bool verify_peer = !options.client_authority_pem.empty();
  if (verify_peer) {
    SPILLWAY_TRY_VOID(trust(context.get(), options.client_authority_pem));
    SPILLWAY_TRY(authority, parse_certificate(options.client_authority_pem, "certificate authority"));
    SSL_CTX_add_client_CA(context.get(), authority.get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, accept_any);
  }
  return std::make_shared<const TlsContext>(std::move(context), verify_peer, options.protocols);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::make_client(const ClientOptions& options) {
  SPILLWAY_TRY(context, make_context(TLS_client_method()));
  if (options.identity) SPILLWAY_TRY_VOID(use_identity(context.get(), *options.identity));
  if (!options.authority_pem.empty()) {
    SPILLWAY_TRY_VOID(trust(context.get(), options.authority_pem));
  } else if (options.verify && SSL_CTX_set_default_verify_paths(context.get()) != 1) {
    return make_error(ErrorCode::kInternalError, "the system's certificate authorities: {}", take_openssl_problem());
  }
  if (options.protocols != Protocols::kHttp11) {
    const auto* offered = reinterpret_cast<const unsigned char*>(kSpoken.data());
    if (SSL_CTX_set_alpn_protos(context.get(), offered, static_cast<unsigned>(kSpoken.size())) != 0)
      return make_error(ErrorCode::kInternalError, "protocols: {}", take_openssl_problem());
  }
  SSL_CTX_set_verify(context.get(), options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return std::make_shared<const TlsContext>(std::move(context), options.verify, options.protocols);
}

std::unique_ptr<ByteStream> TlsContext::accept_stream(Socket socket) const {
  SslPtr ssl(SSL_new(context_.get()));
  SPILLWAY_CHECK(ssl != nullptr);
  SSL_set_accept_state(ssl.get());
  return make_tls_stream(std::move(socket), std::move(ssl));
}

std::unique_ptr<ByteStream> TlsContext::connect_stream(Socket socket, const std::string& host,
                                                       Protocols at_most) const {
  SslPtr ssl(SSL_new(context_.get()));
  SPILLWAY_CHECK(ssl != nullptr);
  SSL_set_connect_state(ssl.get());
  if (at_most == Protocols::kHttp11 && protocols_ != Protocols::kHttp11) {
    const auto* offered = reinterpret_cast<const unsigned char*>(kSpokenHttp11.data());
    SPILLWAY_CHECK(SSL_set_alpn_protos(ssl.get(), offered, static_cast<unsigned>(kSpokenHttp11.size())) == 0);
  }
  const bool numeric = is_numeric_address(host);
  if (!numeric && !host.empty()) SSL_set_tlsext_host_name(ssl.get(), host.c_str());
  if (verify_peer_ && !host.empty()) {
    X509_VERIFY_PARAM* expected = SSL_get0_param(ssl.get());
    const int set = numeric ? X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str())
                            : X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size());
    SPILLWAY_CHECK(set == 1);
  }
  return make_tls_stream(std::move(socket), std::move(ssl));
}

}  // namespace spillway::wire
