// Namespaces that a pod shares with the machine, and the mapping of its user ids to the machine's. Thread: any (pure).
// Values are documents with the field names of the CRI. Source: spec "Pod lifecycle", 6.2, 6.12.
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::agent {

/// kOff: the feature gate UserNamespacesSupport is; else whether the runtime, or the handler of the pod's
/// RuntimeClass, has user namespaces. This agent gives its container runtime no ranges of ids yet: kUnsupported.
enum class UserNamespaces { kOff, kUnsupported, kSupported };

struct NamespaceWish {
  UserNamespaces user_namespaces = UserNamespaces::kUnsupported;
  std::string runtime_handler;         // named in errors; empty: the default
  std::int64_t first_host_id = 65536;  // start of the pod's range of 65,536 ids, if it has one
};

/// kInvalid, in upstream's words.
Result<api::Json> namespace_options(const api::Pod& pod, const NamespaceWish& wish);

}  // namespace spillway::agent
