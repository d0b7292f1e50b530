// The bootstrap tokens of a cluster: with one, a machine that is no node yet requests the certificate of a node.
// Source: Kubernetes docs, "Authenticating with Bootstrap Tokens".
#pragma once

#include "base/time.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

struct BootstrapToken {
  std::string id;                   // six lower-case letters and digits
  std::string secret;               // sixteen
  std::vector<std::string> groups;  // besides system:bootstrappers
  std::optional<WallTime> expires;

  /// "abcdef.0123456789abcdef".
  static bool has_token_form(std::string_view token);

  friend bool operator==(const BootstrapToken&, const BootstrapToken&) = default;
};

/// Port: receives the present set of bootstrap tokens, for authentication. Implemented by wire/. Thread: loop.
class BootstrapTokens {
 public:
  virtual ~BootstrapTokens() = default;
  virtual void set(BootstrapToken token) = 0;
  virtual void erase(const std::string& id) = 0;
};

}  // namespace spillway::apiserver
