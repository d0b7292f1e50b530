// Signs the certificates that nodes request: serving certificates by an authority that only the gateway to agents
// trusts, and client certificates for the API server by the cluster's own. Thread: any. Source:
// spec "API server contract", 19.8.
#pragma once

#include "apiserver/ports/request_authority.h"
#include "base/error.h"
#include "base/time.h"
#include "wire/tls/certificate_authority.h"

#include <string>
#include <string_view>
#include <utility>

namespace spillway::wire {

class OpensslRequestAuthority final : public apiserver::RequestAuthority {
 public:
  OpensslRequestAuthority(CertificateAuthority authority, CertificateRequest::Use use)
      : authority_(std::move(authority)), use_(use) {}

  const std::string& certificate_pem() const { return authority_.certificate_pem(); }

  /// The end of the authority's certificate.
  Result<WallTime> end() const { return authority_.end(); }

  Result<std::string> sign(const signing::RequestedCertificate& wanted, std::string_view request_pem, Duration life,
                           WallTime now) const override;

 private:
  CertificateAuthority authority_;
  CertificateRequest::Use use_;  // the use of certificates that it signs
};

}  // namespace spillway::wire
