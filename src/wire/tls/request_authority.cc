#include "wire/tls/request_authority.h"

#include "wire/tls/certificate_reader.h"

#include <algorithm>

namespace spillway::wire {

Result<std::string> OpensslRequestAuthority::sign(const signing::RequestedCertificate& wanted,
                                                  std::string_view request_pem, Duration life, WallTime now) const {
  SPILLWAY_TRY(request, parse_signing_request(request_pem));
  CertificateRequest certificate{
      .use = use_, .common_name = wanted.common_name, .organizations = wanted.organizations, .hosts = wanted.dns_names};
  certificate.hosts.insert(certificate.hosts.end(), wanted.ip_addresses.begin(), wanted.ip_addresses.end());
  return authority_.certify(request.key, certificate, std::min(life, CertificateAuthority::kCertificateLife), now);
}

}  // namespace spillway::wire
