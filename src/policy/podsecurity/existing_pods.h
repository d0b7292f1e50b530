// The pods of a namespace against a standard that is about to be enforced there: what whoever asks for it is told.
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

/// How much of a namespace is looked at: pods, and bytes of documents that have to be parsed for it. The second stands
/// for the time that upstream gives itself (a second): a rule has no clock, and the loop of a server less time.
struct CheckBounds {
  std::size_t pods = 3'000;
  std::size_t bytes = 2U << 20U;
};

/// A pod as it is known before its document is looked at.
struct ExistingPod {
  std::string_view name;
  std::string_view controller;  // uid of the owner that controls it; empty: none does
  std::size_t bytes = 0;        // of its document; 0: it is at hand
};

/// True if pods that stand under the old policy may violate the new one: its level is stricter, or its version another.
bool may_violate(const LevelVersion& wanted, const LevelVersion& before);

/// Warnings about pods that violate `enforce`, one line for all pods with the same violations; empty if none does. Of
/// the pods of one controller the first comes before the others. `document_of` is asked for
/// the pods that are looked at, by their index in `pods`.
std::vector<std::string> warnings_about(std::span<const ExistingPod> pods,
                                        const std::function<api::Json(std::size_t)>& document_of, std::string_view ns,
                                        const LevelVersion& enforce, const Configuration& configuration,
                                        const CheckBounds& bounds = {});

/// True if pods of this runtime class are not judged.
bool is_exempt_runtime(const Configuration& configuration, const api::Json& spec);

/// That labels of an exempt namespace are ignored; empty if they ask for nothing beyond the defaults.
std::string exempt_namespace_warning(std::string_view ns, const Policy& policy, const api::Json& labels,
                                     const Policy& defaults);

}  // namespace spillway::podsecurity
