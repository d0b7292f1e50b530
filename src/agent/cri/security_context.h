// The security context of a container in the form for the runtime, and the errors that keep a container from starting.
// Thread: any (pure). The result is a document with the field names of the CRI. Source: Kubernetes docs, "Configure a
// Security Context for a Pod or Container"; spec "Pod lifecycle", 6.11; vectors pod-lifecycle/security_context.
#pragma once

#include "agent/cri/namespace_options.h"
#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// The user that an image names. Neither member: root.
struct ImageUser {
  std::optional<std::int64_t> uid;
  std::string name;
};

struct SecurityWish {
  ImageUser image_user;
  bool seccomp_default = false;  // RuntimeDefault where the pod sets nothing
  std::string state_dir;         // profiles of type Localhost are below its "seccomp"
  std::vector<std::int64_t> extra_groups;
  NamespaceWish namespaces;
};

/// kInvalid, in upstream's words: a reason not to create the container.
Result<api::Json> security_context(const api::Pod& pod, const api::Container& container, const SecurityWish& wish);

/// selinux_options; null without any.
api::Json selinux_options(const api::Json& options);

/// fsGroup, `extra` and supplementalGroups into `context`, with the policy. `extra_first`: before supplementalGroups.
enum class ExtraGroups { kBeforeSupplemental, kLast };
Outcome add_groups(const api::PodSecurityContext& pod, const std::vector<std::int64_t>& extra, ExtraGroups order,
                   api::Json& context);

}  // namespace spillway::agent
