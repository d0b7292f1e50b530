// The part of `spillway explain` about a pod whose containers do not work: an image that is missing, a command that
// cannot be started, a container that ends again and again or was out of memory.
// Thread: any (pure). Source: Kubernetes docs, "Pod Lifecycle", container states; "Debug Pods".
#pragma once

#include "api/object/event.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "policy/outlook/outlook.h"

#include <optional>
#include <span>

namespace spillway::outlook {

/// nullopt: no container is in trouble, or the pod as a whole was ended by its node (status.reason), which decisions
/// explain. The container that is worst off gives the answer: init containers first, then in the pod's order.
/// `neighbours`: pods of its node; one that uses the same network and has a port of a container that failed is named.
std::optional<Outlook> explain_containers(const api::Pod& pod, WallTime now, std::span<const api::Pod> neighbours = {});

/// A pod whose node cannot begin to start it: a volume, or its network, is missing; `event` is the last warning about
/// it. nullopt: the pod does not wait on its node, or the event reports another problem.
std::optional<Outlook> explain_start(const api::Pod& pod, const api::Event& event, WallTime now);

}  // namespace spillway::outlook
