// Checks the pods of a namespace against a standard that is about to be enforced there, and makes the warnings for the
// user who changes the namespace.
// Thread: any (pure). Source: Kubernetes docs, "Pod Security Admission"; KEP-2579, "Namespace policy update warnings".
#pragma once

#include "api/json/json.h"
#include "policy/podsecurity/configuration.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::podsecurity {

/// The extent of a check of a namespace: pods, and bytes of documents that have to be parsed. The bytes replace
/// upstream's limit of one second: a rule has no clock, and the server's loop has less time.
struct CheckBounds {
  std::size_t pods = 3'000;
  std::size_t bytes = 2U << 20U;
};

/// A pod before its document is parsed.
struct ExistingPod {
  std::string_view name;
  std::string_view controller;  // uid of the owner that controls it; empty: none does
  std::size_t bytes = 0;        // the document's length; 0: it is parsed already
};

/// True if pods that the old policy allows may violate the new one: its level is stricter, or its version another.
bool may_violate(const LevelVersion& wanted, const LevelVersion& before);

/// Warnings about pods that violate `enforce`, one line for all pods with the same violations; empty if none does. The
/// first pod of each controller is checked before the others. `document_of` is called for the pods that are checked,
/// with their index in `pods`.
std::vector<std::string> warnings_about(std::span<const ExistingPod> pods,
                                        const std::function<api::Json(std::size_t)>& document_of, std::string_view ns,
                                        const LevelVersion& enforce, const Configuration& configuration,
                                        const CheckBounds& bounds = {});

/// True if pods of this runtime class are exempt.
bool is_exempt_runtime(const Configuration& configuration, const api::Json& spec);

/// The warning that labels of an exempt namespace are ignored; empty if they require nothing beyond the defaults.
std::string exempt_namespace_warning(std::string_view ns, const Policy& policy, const api::Json& labels,
                                     const Policy& defaults);

}  // namespace spillway::podsecurity
