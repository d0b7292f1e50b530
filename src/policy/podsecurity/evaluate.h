// A pod against one level and version of the Pod Security Standards.
// Thread: any (pure). Source: Kubernetes docs, "Pod Security Standards".
#pragma once

#include "api/json/json.h"
#include "policy/podsecurity/policy.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::podsecurity {

/// Bytes of the detail of one violation; a longer one is cut. There are fewer than twenty checks.
inline constexpr std::size_t kDetailBytesMax = 2U << 10U;

/// A violation by one check, with its name.
struct Violation {
  std::string_view check;  // "hostNamespaces"
  std::string reason;      // "host namespaces"
  std::string detail;      // "hostNetwork, hostPID"; may be empty

  friend bool operator==(const Violation&, const Violation&) = default;
};

/// All violations of a pod: first the checks of baseline, then those of restricted, each in the order of their ids. A
/// check of restricted that extends one of baseline replaces it. `metadata` and `spec` are those of a pod or of a
/// template.
std::vector<Violation> evaluate(const LevelVersion& standard, const api::Json& metadata, const api::Json& spec);

/// "host namespaces, privileged".
std::string reasons_text(const std::vector<Violation>& violations);
/// "host namespaces (hostNetwork), privileged (container "a" must not set securityContext.privileged=true)".
std::string details_text(const std::vector<Violation>& violations);

}  // namespace spillway::podsecurity
