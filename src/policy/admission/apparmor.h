// Rejects a pod that requests an AppArmor profile on a node that cannot enforce it. The runtime checks that a profile
// is loaded.
// Thread: any (pure). Source: Kubernetes docs, "Restrict a Container's Access to Resources with AppArmor"; spec "Pod
// admission", 7; vectors admission/apparmor.
#pragma once

#include "api/object/pod.h"
#include "policy/admission/answer.h"

#include <string_view>

namespace spillway::admission {

/// `host_error`: why the host cannot enforce profiles; empty: it can. Only pods in phase Pending are checked.
Answer admit_app_armor(const api::Pod& pod, std::string_view host_error);

/// As above, for a container that is added to an admitted pod.
Answer admit_app_armor_of(const api::Pod& pod, const api::Container& container, std::string_view host_error);

}  // namespace spillway::admission
