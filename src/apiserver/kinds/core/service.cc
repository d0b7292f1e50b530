// Services: addresses from one range, ports, a selector. Nothing here forwards traffic.
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/core/core_tables.h"
#include "apiserver/kinds/core/service_spec.h"
#include "apiserver/kinds/core/service_validation.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

constexpr std::int64_t kClientAffinitySeconds = 10800;

void default_affinity(Json& spec) {
  set_default(spec, "sessionAffinity", "None");
  if (text(spec, "sessionAffinity") == "None") spec.erase({"sessionAffinityConfig"});
  if (text(spec, "sessionAffinity") != "ClientIP") return;
  const Json* seconds = std::as_const(spec).at({"sessionAffinityConfig", "clientIP", "timeoutSeconds"});
  if (seconds != nullptr && !seconds->is_null()) return;
  spec["sessionAffinityConfig"] =
      Json::object({{"clientIP", Json::object({{"timeoutSeconds", kClientAffinitySeconds}})}});
}

void default_ports(Json& spec) {
  Json::Array* ports = elements(spec, "ports");
  if (ports == nullptr) return;
  for (Json& port : *ports) {
    set_default(port, "protocol", "TCP");
    const Json& target = value_of(std::as_const(port), "targetPort");
    if (target.is_null() || target.if_int64() == 0 || (target.is_string() && target.if_string()->empty()))
      port["targetPort"] = Json(value_of(port, "port"));
  }
}

/// The default of an address of a load balancer is the mode VIP.
void default_ingress(Json& service) {
  if (service.string_at({"spec", "type"}) != kLoadBalancer) return;
  Json* ingress = service.at({"status", "loadBalancer", "ingress"});
  if (ingress == nullptr || ingress->if_array() == nullptr) return;
  for (Json& entry : *ingress->if_array()) {
    if (!text(entry, "ip").empty() && !has(entry, "ipMode")) entry["ipMode"] = "VIP";
  }
}

void default_service(Json& service) {
  Json& spec = service.make({"spec"});
  if (!spec.is_object()) spec = Json::object();
  default_affinity(spec);
  set_default(spec, "type", kClusterIp);
  default_ports(spec);
  if (is_external(spec)) set_default(spec, "externalTrafficPolicy", "Cluster");
  const bool is_known = text(spec, "type") == kClusterIp || needs_node_ports(spec);
  if (is_known && !has(spec, "internalTrafficPolicy")) spec["internalTrafficPolicy"] = "Cluster";
  if (text(spec, "type") == kLoadBalancer && !has(spec, "allocateLoadBalancerNodePorts")) {
    spec["allocateLoadBalancerNodePorts"] = true;
  }
  default_ingress(service);
}

void begin_service(Json& service) {
  join_addresses(service["spec"]);
}

api::StatusResult<void> admit_service(Json& service, const AdmissionContext& context) {
  return allocate(service, nullptr, context);
}

/// Keeps the node ports of ports for which an update states none.
void keep_node_ports(Json& spec, const Json& old_spec) {
  Json::Array* ports = elements(spec, "ports");
  if (ports == nullptr || !needs_node_ports(spec) || !needs_node_ports(old_spec)) return;
  for (Json& port : *ports) {
    if (integer(port, "nodePort").value_or(0) != 0) continue;
    for (const Json& before : elements(old_spec, "ports")) {
      const bool same =
          text(before, "protocol") == text(port, "protocol") && integer(before, "port") == integer(port, "port");
      if (same && has(before, "nodePort")) port["nodePort"] = value_of(before, "nodePort");
    }
  }
}

void keep_allocated(Json& service, const Json& old, Endpoint endpoint) {
  if (endpoint != Endpoint::kMain) return;
  Json& spec = service["spec"];
  const Json& old_spec = value_of(old, "spec");
  join_addresses(spec, old_spec);
  keep_node_ports(spec, old_spec);
  const bool keeps_check = needs_health_check_port(spec) && needs_health_check_port(old_spec);
  if (keeps_check && integer(spec, "healthCheckNodePort").value_or(0) == 0) {
    spec["healthCheckNodePort"] = Json(value_of(old_spec, "healthCheckNodePort"));
  }
}

bool same(const Json& spec, const Json& old_spec, std::string_view key) {
  return value_of(spec, key) == value_of(old_spec, key);
}

std::vector<std::int64_t> node_ports(const Json& spec) {
  std::vector<std::int64_t> ports;
  for (const Json& port : elements(spec, "ports")) {
    if (const auto number = integer(port, "nodePort"); number && *number != 0) ports.push_back(*number);
  }
  std::ranges::sort(ports);
  return ports;
}

/// Drops members that no longer apply to the type, unless the client changed them as well: then validation refuses
/// them.
void drop_what_no_longer_applies(Json& service, const Json& old) {
  Json& spec = service["spec"];
  const Json& before = value_of(old, "spec");
  const auto drop_unchanged = [&](std::string_view key) {
    if (same(std::as_const(spec), before, key)) spec.erase({key});
  };
  if (needs_cluster_ip(before) && !needs_cluster_ip(spec)) {
    if (same(std::as_const(spec), before, "clusterIPs")) {
      spec.erase({"clusterIP"});
      spec.erase({"clusterIPs"});
    }
    drop_unchanged("ipFamilies");
    drop_unchanged("ipFamilyPolicy");
    drop_unchanged("internalTrafficPolicy");
  }
  if (needs_node_ports(before) && !needs_node_ports(spec) && node_ports(before) == node_ports(spec)) {
    if (Json::Array* ports = elements(spec, "ports")) {
      for (Json& port : *ports) port.erase({"nodePort"});
    }
  }
  if (needs_health_check_port(before) && !needs_health_check_port(spec)) drop_unchanged("healthCheckNodePort");
  if (is_external(before) && !is_external(spec)) drop_unchanged("externalTrafficPolicy");
  if (text(before, "type") == kLoadBalancer && text(spec, "type") != kLoadBalancer) {
    drop_unchanged("allocateLoadBalancerNodePorts");
    drop_unchanged("loadBalancerClass");
  }
  if (text(spec, "type") != kLoadBalancer && has(value_of(std::as_const(service), "status"), "loadBalancer")) {
    service["status"]["loadBalancer"] = Json::object();
  }
}

api::StatusResult<void> admit_service_update(Json& service, const Json& old, Endpoint endpoint,
                                             const AdmissionContext& context) {
  if (endpoint != Endpoint::kMain) return {};
  SPILLWAY_TRY_VOID(allocate(service, &old, context));
  drop_what_no_longer_applies(service, old);
  return {};
}

}  // namespace

Resource service_kind() {
  static constexpr std::array kFields{SelectableField{"spec.clusterIP"}, SelectableField{"spec.type"}};
  static constexpr std::array<std::string_view, 1> kShortNames{"svc"};
  static constexpr std::array kSubresources{
      Subresource{SubresourceId::kProxy, "proxy", kProxied, "", "v1", "ServiceProxyOptions"}, kStatusSubresource};
  const TableDefinition table = service_table();
  static const KindHooks kHooks{.set_defaults = default_service,
                                .prepare_create = begin_service,
                                .admit_create = admit_service,
                                .validate_create = validate_service,
                                .reserves = reserved_by,
                                .prepare_update = keep_allocated,
                                .admit_update = admit_service_update,
                                .validate_update = validate_service_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.version = "v1",
          .plural = "services",
          .singular = "service",
          .kind = "Service",
          .verbs = kAllVerbs,
          .storage = below("services/specs"),
          .short_names = kShortNames,
          .categories = kAllCategory,
          .subresources = kSubresources,
          .fields = kFields,
          .names = NameRule::kDnsLabel,
          .status_subresource = true,
          .put_creates = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
