// The certificates that a process keeps of an authority of its own, in one folder: made when they are missing, renewed
// before they end, for as long as the process runs. It has no clock: a caller with a clock asks when a certificate is
// due.
// Thread: one at a time that may block on the disk. Source: spec "API server contract", 19.1.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "wire/tls/certificate_authority.h"
#include "wire/tls/tls.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::wire {

class KeptCertificates {
 public:
  static constexpr std::string_view kAuthority = "authority";

  struct Wanted {
    std::string role;  // "serving"
    std::string file;  // NAME of NAME.crt and NAME.key
    CertificateRequest request;
  };

  KeptCertificates(std::string folder, std::vector<Wanted> wanted)
      : folder_(std::move(folder)), wanted_(std::move(wanted)) {}

  /// Makes missing certificates, renews those that have less than CertificateAuthority::kRenewBefore left. True:
  /// something is new. After an error everything is as it was, and still due. Errors name the file.
  Result<bool> refresh(WallTime now);

  /// The time of the next renewal; the beginning of time before the first refresh().
  WallTime due() const;

  /// The ends of the certificates by role, and that of the authority's own.
  const std::map<std::string, WallTime, std::less<>>& ends() const { return ends_; }

  /// The pair of a wanted role, after the first refresh().
  const KeyPair& pair(std::string_view role) const;

  const std::string& authority_pem() const { return authority_pem_; }

 private:
  std::string folder_;
  std::vector<Wanted> wanted_;
  std::map<std::string, KeyPair, std::less<>> pairs_;
  std::map<std::string, WallTime, std::less<>> ends_;
  std::string authority_pem_;
};

}  // namespace spillway::wire
