// The effective security of a container in the process runtime: user, groups and capabilities, or the reason why it
// cannot start. A setting that the runtime cannot enforce is refused, in upstream's words where upstream has any.
// Thread: any (pure). Source: Kubernetes docs, "Configure a Security Context for a Pod or Container"; spec "Pod
// lifecycle", 5.13, 6.11.
#pragma once

#include "agent/contract/ports.h"
#include "api/object/pod.h"

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// The reason why a container is not started, for its status and an event.
struct StartRefusal {
  std::string reason;  // "CreateContainerConfigError", "CreateContainerError"
  std::string message;

  friend bool operator==(const StartRefusal&, const StartRefusal&) = default;
};

/// The seccomp profile of containers that name none.
enum class SeccompDefault { kUnconfined, kRuntimeDefault };

std::expected<ContainerSecurity, StartRefusal> security_of(const api::Pod& pod, const api::Container& container,
                                                           SeccompDefault seccomp);

/// A field of a pod that the process runtime ignores instead of refusing the pod: refusing it would refuse every pod,
/// or every pod of a real cluster.
struct LeftOut {
  enum class Weight { kNormal, kWarning };

  Weight weight = Weight::kNormal;
  std::string reason;
  std::string message;

  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

/// `shared_network_because`: AgentOptions.
std::vector<LeftOut> left_out_of(const api::Pod& pod, const std::string& shared_network_because);

/// The refusal of every container of a pod that requests a user namespace, on a node that does not confine pods;
/// nullopt: the pod requests none. Unconfined pods have the users of the machine.
std::optional<StartRefusal> refusal_without_confinement(const api::Pod& pod);

}  // namespace spillway::agent
