#include "apiserver/kinds/core/service_validation.h"

#include "api/text/ip_address.h"
#include "api/text/names.h"
#include "apiserver/kinds/core/service_spec.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 4> kServiceTypes{kClusterIp, kExternalName, kLoadBalancer, kNodePort};
constexpr std::array<std::string_view, 3> kServicePortProtocols{"SCTP", "TCP", "UDP"};
constexpr std::array<std::string_view, 2> kAffinities{"ClientIP", "None"};
constexpr std::array<std::string_view, 2> kTrafficPolicies{"Cluster", "Local"};
constexpr std::array<std::string_view, 3> kDistributions{"PreferClose", "PreferSameZone", "PreferSameNode"};
constexpr std::array<std::string_view, 2> kIngressModes{"Proxy", "VIP"};
constexpr std::int64_t kAffinitySecondsMax = 86400;
constexpr std::string_view kPortRule = "must be between 1 and 65535, inclusive";
constexpr std::string_view kOnlyForBalancers = "may only be used when `type` is 'LoadBalancer'";

bool is_of_type(const Json& spec, std::string_view type) {
  return text(spec, "type") == type;
}

bool is_port(std::int64_t number) {
  return number >= 1 && number <= 65535;
}

void validate_target(const Json& port, const std::string& path, FieldErrors& errors) {
  const Json& target = value_of(port, "targetPort");
  require_valid(port_reference_errors(target), target, path, errors);
}

void validate_port(const Json& port, bool requires_name, std::set<std::string_view>& names, const std::string& path,
                   FieldErrors& errors) {
  const std::string_view name = text(port, "name");
  if (requires_name && name.empty()) errors.required(path + ".name");
  if (!name.empty()) {
    require_valid(api::dns1123_label_errors(name), value_of(port, "name"), path + ".name", errors);
    if (!names.insert(name).second) errors.duplicate(path + ".name", name);
  }
  const std::int64_t number = integer(port, "port").value_or(0);
  if (!is_port(number)) errors.invalid(path + ".port", number, kPortRule);
  require_listed(port, "protocol", path + ".protocol", kServicePortProtocols, errors);
  validate_target(port, path + ".targetPort", errors);
  if (has(port, "appProtocol")) {
    require_valid(api::qualified_name_errors(text(port, "appProtocol")), value_of(port, "appProtocol"),
                  path + ".appProtocol", errors);
  }
}

void validate_ports(const Json& spec, FieldErrors& errors) {
  const Json::Array& ports = elements(spec, "ports");
  if (ports.empty() && !is_headless(spec) && !is_of_type(spec, kExternalName)) errors.required("spec.ports");
  std::set<std::string_view> names;
  std::set<std::pair<std::string_view, std::int64_t>> seen;
  std::set<std::pair<std::string_view, std::int64_t>> seen_of_nodes;
  for (std::size_t i = 0; i < ports.size() && !errors.full(); ++i) {
    const Json& port = ports[i];
    const std::string path = api::index_path("spec.ports", i);
    validate_port(port, ports.size() > 1, names, path, errors);
    const std::int64_t number = integer(port, "port").value_or(0);
    const std::int64_t of_node = integer(port, "nodePort").value_or(0);
    if (is_of_type(spec, kClusterIp) && of_node != 0) {
      errors.forbidden(path + ".nodePort", "may not be used when `type` is 'ClusterIP'");
    }
    if (of_node != 0 && !seen_of_nodes.emplace(text(port, "protocol"), of_node).second) {
      errors.duplicate(path + ".nodePort", of_node);
    }
    if (!seen.emplace(text(port, "protocol"), number).second) errors.duplicate(path, port);
  }
}

void validate_external_name(const Json& spec, FieldErrors& errors) {
  for (const std::string_view key : {"clusterIPs", "ipFamilies"}) {
    if (!elements(spec, key).empty()) {
      errors.forbidden(fmt::format("spec.{}", key), "may not be set for ExternalName services");
    }
  }
  if (has(spec, "ipFamilyPolicy")) {
    errors.forbidden("spec.ipFamilyPolicy", "may not be set for ExternalName services");
  }
  std::string_view name = text(spec, "externalName");
  if (name.ends_with('.')) name.remove_suffix(1);  // the dot of a fully qualified name
  if (name.empty()) return errors.required("spec.externalName");
  require_valid(api::dns1123_subdomain_errors(name), name, "spec.externalName", errors);
}

void validate_type(const Json& spec, FieldErrors& errors) {
  require_listed(spec, "type", "spec.type", kServiceTypes, errors);
  if (is_of_type(spec, kExternalName)) return validate_external_name(spec, errors);
  if (!is_headless(spec) || !needs_node_ports(spec)) return;
  errors.invalid("spec.clusterIPs[0]", kNoAddress,
                 fmt::format("may not be set to 'None' for {} services", text(spec, "type")));
}

void validate_affinity(const Json& spec, FieldErrors& errors) {
  constexpr std::string_view kPath = "spec.sessionAffinityConfig";
  require_listed(spec, "sessionAffinity", "spec.sessionAffinity", kAffinities, errors);
  const Json& config = value_of(spec, "sessionAffinityConfig");
  if (text(spec, "sessionAffinity") == "None" && !config.is_null()) {
    errors.forbidden(kPath, "must not be set when session affinity is None");
  }
  if (text(spec, "sessionAffinity") != "ClientIP") return;
  const std::int64_t seconds = integer(value_of(config, "clientIP"), "timeoutSeconds").value_or(0);
  if (seconds >= 1 && seconds <= kAffinitySecondsMax) return;
  errors.invalid(fmt::format("{}.clientIP.timeoutSeconds", kPath), seconds,
                 fmt::format("must be greater than 0 and less than {}", kAffinitySecondsMax));
}

bool contains(const Json::Array& list, const Json& value) {
  return std::ranges::find(list, value) != list.end();
}

/// `before`, here and below: the spec that an update replaces. Its values may stay in the form in which they were
/// written.
void validate_external_addresses(const Json& spec, const Json& before, FieldErrors& errors) {
  const Json::Array& addresses = elements(spec, "externalIPs");
  const Json::Array& kept = elements(before, "externalIPs");
  for (std::size_t i = 0; i < addresses.size() && !errors.full(); ++i) {
    const std::string_view text = addresses[i].string_at({});
    const std::string path = api::index_path("spec.externalIPs", i);
    require_valid(contains(kept, addresses[i]) ? kept_ip_errors(text) : ip_errors(text), addresses[i], path, errors);
    const auto address = api::parse_ip(text);
    const std::string_view problem = address ? special_address_problem(*address) : std::string_view();
    if (!problem.empty()) errors.invalid(path, addresses[i], problem);
  }
}

std::string_view trimmed_range(std::string_view value) {
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  return value;
}

void validate_annotated_ranges(const Json& service, std::string_view list, FieldErrors& errors) {
  const std::string path =
      api::key_path("metadata.annotations", "service.beta.kubernetes.io/load-balancer-source-ranges");
  if (service.string_at({"spec", "type"}) != kLoadBalancer) errors.forbidden(path, kOnlyForBalancers);
  list = trimmed_range(list);
  while (!list.empty() && !errors.full()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view range = trimmed_range(list.substr(0, comma));
    require_valid(kept_ip_range_errors(range), range, path, errors);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

void validate_source_ranges(const Json& service, const Json& before, FieldErrors& errors) {
  constexpr std::string_view kPath = "spec.LoadBalancerSourceRanges";  // as upstream writes it
  const Json& spec = value_of(service, "spec");
  const Json::Array& ranges = elements(spec, "loadBalancerSourceRanges");
  if (ranges.empty()) {
    const Json* annotated =
        service.at({"metadata", "annotations", "service.beta.kubernetes.io/load-balancer-source-ranges"});
    if (annotated != nullptr) validate_annotated_ranges(service, annotated->string_at({}), errors);
    return;
  }
  if (!is_of_type(spec, kLoadBalancer)) errors.forbidden(kPath, kOnlyForBalancers);
  for (std::size_t i = 0; i < ranges.size() && !errors.full(); ++i) {
    const std::string_view range = trimmed_range(ranges[i].string_at({}));
    const bool stays = contains(elements(before, "loadBalancerSourceRanges"), ranges[i]);
    require_valid(stays ? kept_ip_range_errors(range) : ip_range_errors(range), ranges[i], api::index_path(kPath, i),
                  errors);
  }
}

void validate_balancer_class(const Json& spec, FieldErrors& errors) {
  constexpr std::string_view kPath = "spec.loadBalancerClass";
  const Json& balancer = value_of(spec, "loadBalancerClass");
  if (balancer.is_null()) return;
  if (!is_of_type(spec, kLoadBalancer)) return errors.forbidden(kPath, kOnlyForBalancers);
  require_valid(api::qualified_name_errors(balancer.string_at({})), balancer, kPath, errors);
}

void validate_external_traffic(const Json& spec, FieldErrors& errors) {
  const Json& policy = value_of(spec, "externalTrafficPolicy");
  if (!is_external(spec)) {
    if (!policy.string_at({}).empty()) {
      errors.invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services");
    }
  } else if (policy.string_at({}).empty()) {
    errors.required("spec.externalTrafficPolicy");
  } else {
    require_listed(spec, "externalTrafficPolicy", "spec.externalTrafficPolicy", kTrafficPolicies, errors);
  }
  const std::int64_t check = integer(spec, "healthCheckNodePort").value_or(0);
  if (!needs_health_check_port(spec)) {
    if (check == 0) return;
    errors.invalid("spec.healthCheckNodePort", check,
                   "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
  } else if (check == 0) {
    errors.required("spec.healthCheckNodePort");
  } else if (!is_port(check)) {
    errors.invalid("spec.healthCheckNodePort", check, kPortRule);
  }
}

void validate_traffic(const Json& spec, FieldErrors& errors) {
  if (has(spec, "allocateLoadBalancerNodePorts") && !is_of_type(spec, kLoadBalancer)) {
    errors.forbidden("spec.allocateLoadBalancerNodePorts", kOnlyForBalancers);
  }
  validate_balancer_class(spec, errors);
  validate_external_traffic(spec, errors);
  require_listed(spec, "internalTrafficPolicy", "spec.internalTrafficPolicy", kTrafficPolicies, errors);
  require_listed(spec, "trafficDistribution", "spec.trafficDistribution", kDistributions, errors);
}

void validate_topology(const Json& service, FieldErrors& errors) {
  const Json& annotations = value_of(value_of(service, "metadata"), "annotations");
  constexpr std::string_view kMode = "service.kubernetes.io/topology-mode";
  constexpr std::string_view kHints = "service.kubernetes.io/topology-aware-hints";
  if (!has(annotations, kMode) || !has(annotations, kHints) || text(annotations, kMode) == text(annotations, kHints))
    return;
  errors.invalid(api::key_path("metadata.annotations", kMode), value_of(annotations, kMode),
                 fmt::format("must match annotations[{}] when both are specified", kHints));
}

// Updates.

/// Checks that the first address and the first family stay; the second may be added or removed.
void require_same_first(const Json& spec, const Json& before, std::string_view key, FieldErrors& errors) {
  const Json::Array& now = elements(spec, key);
  const Json::Array& old = elements(before, key);
  const std::string path = fmt::format("spec.{}", key);
  if (old.size() > now.size() && now.empty()) {
    errors.invalid(path + "[0]", Json(now), fmt::format("primary {} can not be unset", key));
  }
  const std::size_t compared =
      now.size() == old.size() ? now.size() : std::min<std::size_t>(1, std::min(now.size(), old.size()));
  for (std::size_t i = 0; i < compared; ++i) {
    if (now[i] != old[i]) errors.invalid(api::index_path(path, i), Json(now), "may not change once set");
  }
  if (old.size() > now.size() && now.size() == 1 && text(spec, "ipFamilyPolicy") != "SingleStack") {
    errors.invalid("spec.ipFamilyPolicy", value_of(spec, "ipFamilyPolicy"),
                   fmt::format("must be set to 'SingleStack' when releasing the secondary {}", key));
  }
}

void validate_change(const Json& spec, const Json& before, FieldErrors& errors) {
  const bool by_name = is_of_type(spec, kExternalName) || is_of_type(before, kExternalName);
  if (!by_name && !(is_headless(spec) && is_headless(before))) {
    require_same_first(spec, before, "clusterIPs", errors);
    require_same_first(spec, before, "ipFamilies", errors);
  }
  const bool balances = is_of_type(spec, kLoadBalancer) && is_of_type(before, kLoadBalancer);
  if (balances && value_of(spec, "loadBalancerClass") != value_of(before, "loadBalancerClass")) {
    errors.invalid("spec.loadBalancerClass", value_of(spec, "loadBalancerClass"), "may not change once set");
  }
  validate_balancer_class(spec, errors);
}

void validate_ingress(const Json& ingress, const Json::Array& before, const std::string& path, FieldErrors& errors) {
  const std::string_view ip = text(ingress, "ip");
  const bool stays = std::ranges::any_of(before, [ip](const Json& old) { return text(old, "ip") == ip; });
  if (!ip.empty()) require_valid(stays ? kept_ip_errors(ip) : ip_errors(ip), ip, path + ".ip", errors);
  if (!has(ingress, "ipMode")) {
    if (!ip.empty()) errors.required(path + ".ipMode", "must be specified when `ip` is set");
  } else if (ip.empty()) {
    errors.forbidden(path + ".ipMode", "may not be specified when `ip` is not set");
  } else {
    require_listed(ingress, "ipMode", path + ".ipMode", kIngressModes, errors);
  }
  const std::string_view host = text(ingress, "hostname");
  if (host.empty()) return;
  require_valid(api::dns1123_subdomain_errors(host), host, path + ".hostname", errors);
  if (api::parse_ip(host)) errors.invalid(path + ".hostname", host, "must be a DNS name, not an IP address");
}

void validate_service_status(const Json& service, const Json& old, FieldErrors& errors) {
  constexpr std::string_view kPath = "status.loadBalancer.ingress";
  const Json::Array& before = elements(value_of(value_of(old, "status"), "loadBalancer"), "ingress");
  const Json::Array& ingress = elements(value_of(value_of(service, "status"), "loadBalancer"), "ingress");
  if (!ingress.empty() && !is_of_type(value_of(service, "spec"), kLoadBalancer)) {
    return errors.forbidden(kPath, "may only be used when `spec.type` is LoadBalancer");
  }
  for (std::size_t i = 0; i < ingress.size() && !errors.full(); ++i) {
    validate_ingress(ingress[i], before, api::index_path(kPath, i), errors);
  }
}

void validate_whole_service(const Json& service, const Json& before, FieldErrors& errors) {
  const Json& spec = value_of(service, "spec");
  validate_topology(service, errors);
  validate_type(spec, errors);
  validate_ports(spec, errors);
  validate_labels(value_of(spec, "selector"), "spec.selector", errors);
  validate_affinity(spec, errors);
  validate_addresses(spec, before, errors);
  validate_external_addresses(spec, before, errors);
  validate_source_ranges(service, before, errors);
  validate_traffic(spec, errors);
}

}  // namespace

void validate_service(const Json& service, FieldErrors& errors) {
  validate_whole_service(service, Json(), errors);
}

void validate_service_update(const Json& service, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) return validate_service_status(service, old, errors);
  const Json& before = value_of(old, "spec");
  validate_change(value_of(service, "spec"), before, errors);
  validate_whole_service(service, before, errors);
}

}  // namespace spillway::apiserver::kinds
