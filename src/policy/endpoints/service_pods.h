// What a Service and a pod are to each other: which pods are behind a Service, by which addresses and ports, and which
// changes of a pod its Services have to know. Thread: any (pure).
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

/// It has a selector, and is no other name for something outside.
bool has_selected_pods(const api::Service& service);
bool selects(const api::Service& service, const api::StringMap& labels);
bool is_headless(const api::Service& service);

/// Pods that have ended or have no address are behind no Service; those on their way out only if asked for.
bool belongs_to_endpoints(const api::Pod& pod, bool terminating_too);
bool is_terminating(const api::Pod& pod);
/// Of one family, the first first; without those by which a pod reaches itself alone.
std::vector<std::string> addresses_of(const api::Pod& pod, Family family);
/// What the pod is called below the domain of the Service; nullopt: nothing of its own.
std::optional<std::string> hostname_of(const api::Pod& pod, const api::Service& service);
/// Where the pod takes what comes for that port; nullopt: it has no port of that name.
std::optional<std::int32_t> target_port(const api::ServicePort& port, const api::Pod& pod);

/// What changed of a pod, as far as endpoints show it. `labels`: Services that select it may be others.
struct PodChange {
  bool endpoint = false;
  bool labels = false;
};

PodChange change_of(const api::Pod& before, const api::Pod& after);

}  // namespace spillway::endpoints
