// Signs the certificates that agents serve with, by an authority that only the way to agents believes. Thread: any.
// Source: spec "API server contract", 19.8.
#pragma once

#include "apiserver/ports/serving_authority.h"
#include "base/error.h"
#include "base/time.h"
#include "wire/tls/certificate_authority.h"

#include <string>
#include <string_view>
#include <utility>

namespace spillway::wire {

class OpensslServingAuthority final : public apiserver::ServingAuthority {
 public:
  explicit OpensslServingAuthority(CertificateAuthority authority) : authority_(std::move(authority)) {}

  const std::string& certificate_pem() const { return authority_.certificate_pem(); }

  Result<std::string> sign(const signing::RequestedCertificate& wanted, std::string_view request_pem, Duration life,
                           WallTime now) const override;

 private:
  CertificateAuthority authority_;
};

}  // namespace spillway::wire
