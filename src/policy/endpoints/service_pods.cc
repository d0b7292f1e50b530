#include "policy/endpoints/service_pods.h"

#include "api/text/ip_address.h"

#include <algorithm>
#include <span>

namespace spillway::endpoints {
namespace {

/// True for addresses that lead to another host. The server refuses a slice with a loopback, link-local or unspecified
/// address as a whole.
bool leads_to_others(const std::string& address) {
  const auto ip = api::parse_ip(address);
  return ip && !ip->is_unspecified() && !ip->is_loopback() && !ip->is_link_local() && !ip->is_link_local_multicast();
}

std::optional<std::int32_t> port_named(std::span<const api::Container> containers, std::string_view name,
                                       std::string_view protocol, bool sidecars_only) {
  for (const api::Container& container : containers) {
    if (sidecars_only && !api::is_sidecar(container)) continue;
    for (const api::ContainerPort& port : container.ports) {
      if (port.name == name && port.protocol == protocol) return port.container_port;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Family family) {
  return family == Family::kIpv6 ? "IPv6" : "IPv4";
}

Family family_of(std::string_view address) {
  return address.find(':') != std::string_view::npos ? Family::kIpv6 : Family::kIpv4;
}

bool has_selected_pods(const api::Service& service) {
  return !service.selector.empty() && service.type != "ExternalName";
}

bool selects(const api::Service& service, const api::StringMap& labels) {
  return has_selected_pods(service) && std::ranges::all_of(service.selector, [&labels](const auto& wanted) {
           const auto found = labels.find(wanted.first);
           return found != labels.end() && found->second == wanted.second;
         });
}

bool is_headless(const api::Service& service) {
  return service.cluster_ip.empty() || service.cluster_ip == "None";
}

bool belongs_to_endpoints(const api::Pod& pod, bool terminating_too) {
  if (api::is_terminal(pod) || pod.status.pod_ip.empty()) return false;
  return terminating_too || !is_terminating(pod);
}

bool is_terminating(const api::Pod& pod) {
  return pod.metadata.deletion_timestamp.has_value();
}

std::vector<std::string> addresses_of(const api::Pod& pod, Family family) {
  std::vector<std::string> addresses;
  const auto add = [&](const std::string& address) {
    if (family_of(address) == family && leads_to_others(address)) addresses.push_back(address);
  };
  add(pod.status.pod_ip);
  for (const std::string& address : pod.status.further_ips) add(address);
  return addresses;
}

std::optional<std::string> hostname_of(const api::Pod& pod, const api::Service& service) {
  const bool in_its_domain = pod.spec.subdomain == service.metadata.name && pod.metadata.ns == service.metadata.ns;
  if (pod.spec.hostname.empty() || !in_its_domain) return std::nullopt;
  return pod.spec.hostname;
}

std::optional<std::int32_t> target_port(const api::ServicePort& port, const api::Pod& pod) {
  if (const auto number = port.target_port.if_int64()) return static_cast<std::int32_t>(*number);
  const std::string* name = port.target_port.if_string();
  if (name == nullptr) return port.port;
  if (const auto found = port_named(pod.spec.containers, *name, port.protocol, false)) return found;
  return port_named(pod.spec.init_containers, *name, port.protocol, true);
}

PodChange change_of(const api::Pod& before, const api::Pod& after) {
  const bool same_state = api::is_terminal(before) == api::is_terminal(after) &&
                          is_terminating(before) == is_terminating(after) &&
                          workloads::is_ready(before) == workloads::is_ready(after);
  const bool same_address =
      before.status.pod_ip == after.status.pod_ip && before.status.further_ips == after.status.further_ips;
  const bool same_place = before.metadata.uid == after.metadata.uid && before.spec.node_name == after.spec.node_name &&
                          before.spec.hostname == after.spec.hostname && before.spec.subdomain == after.spec.subdomain;
  return {.endpoint = !same_state || !same_address || !same_place,
          .labels = before.metadata.labels != after.metadata.labels};
}

}  // namespace spillway::endpoints
