// Certificate requests (PKCS #10) and certificates, read with OpenSSL into values; nothing else of their bytes is
// trusted. Thread: any. Source: RFC 2986, RFC 5280 4.2.1.6, RFC 7468.
#pragma once

#include "apiserver/ports/certificate_reader.h"
#include "base/error.h"
#include "policy/signing/signers.h"
#include "wire/tls/openssl_handles.h"

#include <cstddef>
#include <string_view>

namespace spillway::wire {

/// A request that is signed with the key it names.
struct SigningRequest {
  signing::RequestedCertificate wanted;
  KeyPtr key;  // public
};

/// Reads the first PEM block of the text. Alternative names of kinds that no member holds are left out; a name with
/// bytes other than printable ASCII, a repeated extension, and keys other than RSA up to 8,192 bits, ECDSA on a named
/// curve and Ed25519 are errors.
Result<SigningRequest> parse_signing_request(std::string_view pem);

class OpensslCertificateReader final : public apiserver::CertificateReader {
 public:
  static constexpr std::size_t kRequestBytesMax = std::size_t{64} * 1024;
  static constexpr std::size_t kCertificatesBytesMax = std::size_t{256} * 1024;

  Result<signing::RequestedCertificate> read_request(std::string_view pem) const override;
  Outcome check_certificates(std::string_view pem) const override;
};

}  // namespace spillway::wire
