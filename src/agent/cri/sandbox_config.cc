#include "agent/cri/sandbox_config.h"

#include "agent/containers/pod_hosts.h"
#include "agent/cri/security_context.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr int kUdp = 1;
constexpr int kSctp = 2;

Json strings(const std::vector<std::string>& values) {
  Json list = Json::array();
  for (const std::string& each : values) list.if_array()->emplace_back(each);
  return list;
}

Json wrapped_id(std::int64_t value) {
  return value == 0 ? Json::object() : Json::object({{"value", value}});
}

Json dns_document(const DnsConfig& dns) {
  Json made = Json::object();
  if (!dns.servers.empty()) made["servers"] = strings(dns.servers);
  if (!dns.searches.empty()) made["searches"] = strings(dns.searches);
  if (!dns.options.empty()) made["options"] = strings(dns.options);
  return made;
}

/// Ports declared twice under one name count once.
Json port_mappings(const api::Pod& pod) {
  Json list = Json::array();
  for (const api::Container& container : pod.spec.containers) {
    std::set<std::string> seen;
    for (const api::ContainerPort& port : container.ports) {
      const std::string key = port.name.empty() ? fmt::format("-{}-{}:{}:{}", port.protocol, port.host_ip,
                                                              port.container_port, port.host_port)
                                                : port.name;
      if (!seen.insert(key).second) continue;
      Json mapping = Json::object({{"container_port", std::int64_t{port.container_port}}});
      if (port.host_port != 0) mapping["host_port"] = std::int64_t{port.host_port};
      if (!port.host_ip.empty()) mapping["host_ip"] = port.host_ip;
      if (port.protocol == "UDP") mapping["protocol"] = kUdp;
      if (port.protocol == "SCTP") mapping["protocol"] = kSctp;
      list.if_array()->push_back(std::move(mapping));
    }
  }
  return list;
}

bool has_privileged(const api::PodSpec& spec) {
  for (const auto* list : {&spec.init_containers, &spec.containers, &spec.ephemeral_containers}) {
    for (const api::Container& each : *list)
      if (each.security.privileged.value_or(false)) return true;
  }
  return false;
}

Outcome check_class(const SandboxWish& wish) {
  if (wish.unknown_class.empty()) return {};
  return invalid({}, "runtimeclass.node.k8s.io \"{}\" not found", wish.unknown_class);
}

Outcome add_security(const api::Pod& pod, const SandboxWish& wish, Json& context) {
  const api::PodSecurityContext& own = pod.spec.security;
  if (!own.given) return {};
  if (own.run_as_user) context["run_as_user"] = wrapped_id(*own.run_as_user);
  if (own.run_as_group) context["run_as_group"] = wrapped_id(*own.run_as_group);
  SPILLWAY_TRY_VOID(check_class(wish));
  SPILLWAY_TRY(namespaces, namespace_options(pod, wish.namespaces));
  context["namespace_options"] = std::move(namespaces);
  SPILLWAY_TRY_VOID(add_groups(own, wish.extra_groups, ExtraGroups::kBeforeSupplemental, context));
  if (Json selinux = selinux_options(own.selinux); !selinux.is_null()) context["selinux_options"] = std::move(selinux);
  return {};
}

Result<Json> linux_part(const api::Pod& pod, const SandboxWish& wish) {
  Json made = Json::object({{"cgroup_parent", wish.cgroup_parent},
                            {"overhead", sandbox_overhead(pod, wish.resources)},
                            {"resources", sandbox_resources(pod, wish.resources)}});
  for (const api::Sysctl& each : pod.spec.sysctls) {
    std::string name = each.name;
    std::ranges::replace(name, '/', '.');
    made.make({"sysctls", name}) = each.value;
  }
  Json context = Json::object({{"seccomp", Json::object()}});
  if (has_privileged(pod.spec)) context["privileged"] = true;
  SPILLWAY_TRY_VOID(add_security(pod, wish, context));
  made["security_context"] = std::move(context);
  return made;
}

}  // namespace

Result<SandboxConfig> sandbox_config(const api::Pod& pod, const SandboxWish& wish) {
  Json config = Json::object();
  Json& metadata = config["metadata"] =
      Json::object({{"name", pod.metadata.name}, {"namespace", pod.metadata.ns}, {"uid", pod.metadata.uid}});
  if (wish.attempt != 0) metadata["attempt"] = std::int64_t{wish.attempt};
  SPILLWAY_TRY(dns, pod_dns(pod, wish.dns));
  config["dns_config"] = dns_document(dns.config);
  if (!pod.spec.host_network) {
    SPILLWAY_TRY(names, names_of(pod, wish.dns.cluster_domain));
    SPILLWAY_TRY(host_name, kernel_host_name(pod, names));
    config["hostname"] = std::move(host_name);
  }
  config["log_directory"] = wish.log_directory;
  Json& labels = config["labels"] = Json::object();
  for (const auto& [name, value] : pod.metadata.labels) labels[name] = value;
  labels[kPodNameLabel] = pod.metadata.name;
  labels[kPodNamespaceLabel] = pod.metadata.ns;
  labels[kPodUidLabel] = pod.metadata.uid;
  for (const auto& [name, value] : pod.metadata.annotations) config.make({"annotations", name}) = value;
  if (Json ports = port_mappings(pod); !ports.if_array()->empty()) config["port_mappings"] = std::move(ports);
  SPILLWAY_TRY(linux, linux_part(pod, wish));
  config["linux"] = std::move(linux);
  return SandboxConfig{std::move(config), std::move(dns.warnings)};
}

}  // namespace spillway::agent
