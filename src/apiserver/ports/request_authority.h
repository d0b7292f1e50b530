// Port: signs the certificates that nodes request. Thread: any. Source: spec "API server contract", 19.8.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "policy/signing/signers.h"

#include <string>
#include <string_view>

namespace spillway::apiserver {

/// Port: signs certificates of servers, or of clients. Implemented by wire/.
class RequestAuthority {
 public:
  virtual ~RequestAuthority() = default;
  /// A PEM certificate for the key in `request_pem` with exactly the content of `wanted`. Valid for `life`, or for the
  /// authority's own longest time if that is shorter.
  virtual Result<std::string> sign(const signing::RequestedCertificate& wanted, std::string_view request_pem,
                                   Duration life, WallTime now) const = 0;
};

}  // namespace spillway::apiserver
