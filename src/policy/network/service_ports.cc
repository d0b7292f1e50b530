#include "policy/network/service_ports.h"

#include <algorithm>
#include <optional>

namespace spillway::network {
namespace {

constexpr std::int32_t kDefaultAffinitySeconds = 10800;
constexpr std::int32_t kPortMax = 65535;

std::optional<api::IpAddress> cluster_ip_of(const api::ProxiedService& service, Family family) {
  std::string text;
  if (service.ip_families.empty()) {
    text = service.cluster_ip;
  } else {
    for (std::size_t i = 0; i < service.ip_families.size() && i < service.cluster_ips.size(); ++i) {
      if (service.ip_families[i] == name_of(family)) text = service.cluster_ips[i];
    }
  }
  const auto address = api::parse_ip(text);
  if (!address || family_of(*address) != family) return std::nullopt;
  return address;
}

std::vector<api::IpAddress> vips_of(const api::ProxiedService& service, Family family) {
  std::vector<std::string> texts;
  for (const api::IngressAddress& each : service.ingress) {
    if (!each.ip_mode || *each.ip_mode == "VIP") texts.push_back(each.ip);
  }
  return addresses_in(texts, family);
}

bool external_policy_counts(const api::ProxiedService& service) {
  return service.type == "LoadBalancer" || service.type == "NodePort" ||
         (service.type == "ClusterIP" && !service.external_ips.empty());
}

}  // namespace

bool is_proxied(const api::StringMap& labels) {
  return !labels.contains("service.kubernetes.io/service-proxy-name") &&
         !labels.contains("service.kubernetes.io/headless");
}

std::string PortKey::text() const {
  return ns + "/" + service + (port.empty() ? "" : ":" + port);
}

bool ServicePort::is_externally_accessible() const {
  return node_port != 0 || !load_balancer_vips.empty() || !external_ips.empty();
}

bool ServicePort::uses_cluster_endpoints() const {
  return !internal_policy_local || is_externally_accessible();
}

bool ServicePort::uses_local_endpoints() const {
  return internal_policy_local || (external_policy_local && is_externally_accessible());
}

std::vector<ServicePort> service_ports(const api::ProxiedService& service, Family family) {
  if (service.cluster_ip.empty() || service.cluster_ip == "None" || service.type == "ExternalName") return {};
  const auto cluster_ip = cluster_ip_of(service, family);
  if (!cluster_ip) return {};
  ServicePort common;
  common.key = {service.metadata.ns, service.metadata.name, {}, {}};
  common.cluster_ip = *cluster_ip;
  common.external_ips = addresses_in(service.external_ips, family);
  common.load_balancer_vips = vips_of(service, family);
  common.source_ranges = ranges_in(service.source_ranges, family);
  if (service.session_affinity == "ClientIP") {
    common.affinity_seconds = service.affinity_seconds.value_or(kDefaultAffinitySeconds);
  }
  common.external_policy_local = service.external_traffic_policy == "Local" && external_policy_counts(service);
  common.internal_policy_local = service.internal_traffic_policy == "Local";
  if (service.type == "LoadBalancer" && common.external_policy_local) {
    common.health_check_node_port = service.health_check_node_port;
  }
  std::vector<ServicePort> out;
  for (const api::ProxiedPort& port : service.ports) {
    if (port.port <= 0 || port.port > kPortMax || port.node_port < 0 || port.node_port > kPortMax) continue;
    ServicePort each = common;
    each.key.port = port.name;
    each.key.protocol = port.protocol.empty() ? "TCP" : port.protocol;
    if (each.key.protocol != "TCP" && each.key.protocol != "UDP" && each.key.protocol != "SCTP") continue;
    each.port = port.port;
    each.node_port = port.node_port;
    out.push_back(std::move(each));
  }
  std::ranges::stable_sort(out, {}, &ServicePort::key);
  return out;
}

NodePortAddresses node_port_addresses(std::span<const std::string> ranges, std::span<const std::string> of_interfaces,
                                      Family family) {
  std::vector<api::IpRange> inside = ranges_in(ranges, family);
  const auto is_whole = [](const api::IpRange& range) { return range.prefix_bits == 0; };
  if (inside.empty() || std::ranges::any_of(inside, is_whole)) return {.matches_all = true, .addresses = {}};
  NodePortAddresses out;
  for (const std::string& text : of_interfaces) {
    const auto address = api::parse_ip(std::string_view(text).substr(0, text.find('/')));
    if (address && family_of(*address) == family && any_contains(inside, *address)) out.addresses.push_back(*address);
  }
  std::ranges::sort(out.addresses);
  const auto repeated = std::ranges::unique(out.addresses);
  out.addresses.erase(repeated.begin(), repeated.end());
  return out;
}

}  // namespace spillway::network
