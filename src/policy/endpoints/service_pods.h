// The relation of Services and pods: the pods behind a Service, their addresses and ports, and the changes of a pod
// that affect its Services. Thread: any (pure).
// Source: Kubernetes docs, "Service", "EndpointSlices"; spec "Scheduler and workloads", 16.
#pragma once

#include "api/object/pod.h"
#include "api/object/service.h"
#include "policy/workloads/pod_state.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::endpoints {

using workloads::PodPtr;

inline constexpr std::string_view kHeadlessLabel = "service.kubernetes.io/headless";
inline constexpr std::string_view kTriggerTime = "endpoints.kubernetes.io/last-change-trigger-time";

/// IPv4 or IPv6.
enum class Family : std::uint8_t { kIpv4, kIpv6 };

std::string_view to_string(Family family);
Family family_of(std::string_view address);

/// True if the Service has a selector, and is not of type ExternalName.
bool has_selected_pods(const api::Service& service);
bool selects(const api::Service& service, const api::StringMap& labels);
bool is_headless(const api::Service& service);

/// Pods that have ended or have no address are behind no Service; terminating ones only if `terminating_too`.
bool belongs_to_endpoints(const api::Pod& pod, bool terminating_too);
bool is_terminating(const api::Pod& pod);
/// The pod's addresses of one family, in the order of its status, without loopback and link-local addresses.
std::vector<std::string> addresses_of(const api::Pod& pod, Family family);
/// The pod's host name below the domain of the Service; nullopt: it has none of its own.
std::optional<std::string> hostname_of(const api::Pod& pod, const api::Service& service);
/// The port on which the pod accepts connections for that port of the Service; nullopt: it has no port of that name.
std::optional<std::int32_t> target_port(const api::ServicePort& port, const api::Pod& pod);

/// The parts of a pod that changed, as far as endpoints depend on them. `labels`: other Services may select it now.
struct PodChange {
  bool endpoint = false;
  bool labels = false;
};

PodChange change_of(const api::Pod& before, const api::Pod& after);

}  // namespace spillway::endpoints
