// Port: parses the PEM texts of certificate requests and of certificates. Thread: any. Implemented by wire/.
#pragma once

#include "base/error.h"
#include "policy/signing/signers.h"

#include <string_view>

namespace spillway::apiserver {

class CertificateReader {
 public:
  virtual ~CertificateReader() = default;
  /// Errors: it is no PEM block "CERTIFICATE REQUEST", what it holds is malformed or too large, it is not signed with
  /// the key that it names, or the key is of a kind that cannot be verified.
  virtual Result<signing::RequestedCertificate> read_request(std::string_view pem) const = 0;
  /// Errors: there is anything but PEM blocks "CERTIFICATE" without headers, or no block at all, or what one holds is
  /// malformed or too large.
  virtual Outcome check_certificates(std::string_view pem) const = 0;
};

}  // namespace spillway::apiserver
