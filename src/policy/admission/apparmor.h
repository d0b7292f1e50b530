// Does the pod ask for an AppArmor profile that this node cannot enforce? Whether a profile is loaded is the runtime's
// business.
// Thread: any (pure). Source: Kubernetes docs, "Restrict a Container's Access to Resources with AppArmor"; spec "Pod
// admission", 7; vectors admission/apparmor.
#pragma once

#include "api/object/pod.h"
#include "policy/admission/answer.h"

#include <string_view>

namespace spillway::admission {

/// `host_error`: why the host cannot enforce profiles; empty: it can. Only pods in phase Pending are asked.
Answer admit_app_armor(const api::Pod& pod, std::string_view host_error);

/// The same for a container that comes to a pod that was admitted without it.
Answer admit_app_armor_of(const api::Pod& pod, const api::Container& container, std::string_view host_error);

}  // namespace spillway::admission
