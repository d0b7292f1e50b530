// Who signs the certificates with which agents serve. Thread: any.
// Source: spec "API server contract", 19.8.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "policy/signing/signers.h"

#include <string>
#include <string_view>

namespace spillway::apiserver {

/// Port: signs the certificates of servers. Implemented by wire/.
class ServingAuthority {
 public:
  virtual ~ServingAuthority() = default;
  /// A PEM certificate for the key in `request_pem` that says what `wanted` says, and no more. Good for `life`, or for
  /// the authority's own longest time if that is shorter.
  virtual Result<std::string> sign(const signing::RequestedCertificate& wanted, std::string_view request_pem,
                                   Duration life, WallTime now) const = 0;
};

}  // namespace spillway::apiserver
