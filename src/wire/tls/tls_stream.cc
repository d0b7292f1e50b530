#include "wire/tls/tls_stream.h"

#include "base/check.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace spillway::wire {

namespace {

int descriptor_of(BIO* bio) {
  return static_cast<const Socket*>(BIO_get_data(bio))->fd();
}

int socket_write(BIO* bio, const char* data, std::size_t size, std::size_t* moved) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(descriptor_of(bio), data, size, MSG_NOSIGNAL);
  *moved = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return sent > 0 ? 1 : 0;
}

int socket_read(BIO* bio, char* data, std::size_t size, std::size_t* moved) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(descriptor_of(bio), data, size, 0);
  *moved = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return got > 0 ? 1 : 0;
}

long socket_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

/// OpenSSL's own socket BIO raises SIGPIPE when the peer has gone; this one does not. Never freed: the process has one.
BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "spillway socket");
    SPILLWAY_CHECK(made != nullptr);
    BIO_meth_set_write_ex(made, socket_write);
    BIO_meth_set_read_ex(made, socket_read);
    BIO_meth_set_ctrl(made, socket_control);
    return made;
  }();
  return method;
}

std::string name_text(const ASN1_STRING* value) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, value);
  if (size < 0) return {};
  std::string text(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  return text;
}

class TlsStream final : public ByteStream {
 public:
  TlsStream(Socket socket, SslPtr ssl) : ByteStream(std::move(socket)), ssl_(std::move(ssl)) {
    BIO* bio = BIO_new(socket_method());
    SPILLWAY_CHECK(bio != nullptr);
    BIO_set_data(bio, const_cast<Socket*>(&this->socket()));  // only read; outlives ssl_
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
  }

  Step handshake() override {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) return Step::kDone;
    const Step step = step_of(result);
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (step == Step::kFailed && SSL_is_server(ssl_.get()) == 0 && verdict != X509_V_OK) {
      return fail(fmt::format("certificate not trusted: {}", X509_verify_cert_error_string(verdict)));
    }
    return step;
  }

  Moved read(std::span<char> into) override {
    ERR_clear_error();
    Moved moved;
    const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &moved.bytes);
    if (result != 1) moved = {step_of(result)};
    return moved;
  }

  Moved write(std::string_view from) override {
    ERR_clear_error();
    Moved moved;
    const int result = SSL_write_ex(ssl_.get(), from.data(), from.size(), &moved.bytes);
    if (result != 1) moved = {step_of(result)};
    return moved;
  }

  void end_writing() override {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
    ::shutdown(socket().fd(), SHUT_WR);
  }

  bool has_buffered() const override { return SSL_has_pending(ssl_.get()) == 1; }

  std::optional<PeerCertificate> peer_certificate() const override {
    const CertificatePtr certificate(SSL_get1_peer_certificate(ssl_.get()));
    if (!certificate) return std::nullopt;
    PeerCertificate peer;
    X509_NAME* subject = X509_get_subject_name(certificate.get());
    for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
      X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
      const int kind = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
      std::string text = name_text(X509_NAME_ENTRY_get_data(entry));
      if (kind == NID_commonName)
        peer.common_name = std::move(text);
      else if (kind == NID_organizationName)
        peer.organizations.push_back(std::move(text));
    }
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (verdict != X509_V_OK) peer.problem = X509_verify_cert_error_string(verdict);
    if (const auto end = end_of_certificate(certificate.get())) peer.end = *end;
    return peer;
  }

  std::string_view protocol() const override {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }

 private:
  Step step_of(int result) {
    const int system_error = errno;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return Step::kWaitRead;
      case SSL_ERROR_WANT_WRITE:
        return Step::kWaitWrite;
      case SSL_ERROR_ZERO_RETURN:
        return Step::kEnd;
      case SSL_ERROR_SYSCALL:
        if (system_error == 0) return Step::kEnd;
        return fail(std::generic_category().message(system_error));
      default:
        return fail(take_openssl_problem());
    }
  }

  SslPtr ssl_;
};

}  // namespace

std::unique_ptr<ByteStream> make_tls_stream(Socket socket, SslPtr ssl) {
  return std::make_unique<TlsStream>(std::move(socket), std::move(ssl));
}

}  // namespace spillway::wire
