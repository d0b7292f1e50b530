// vectors/pod-lifecycle: container_env.
#include "agent/containers/container_env.h"
#include "api/codec/codec.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::vector<Json> items_of(const Json& in, std::string_view member) {
  const Json* found = in.find(member);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? std::vector<Json>() : std::vector<Json>(list->begin(), list->end());
}

/// Bytes that are no text cannot be in an environment.
void add_sources(EnvSources& sources, const Json& in, std::string_view member, DataReference::Kind kind) {
  for (const Json& each : items_of(in, member))
    sources[{kind, std::string(each.string_at({"metadata", "name"}))}] = env_source_of(kind, each).value();
}

KnownServices services_of(const Json& in) {
  KnownServices known;
  known.read = in.find("servicesSynced")->if_bool().value();
  for (const Json& each : items_of(in, "services")) {
    api::Service service;
    service.metadata.name = each.string_at({"metadata", "name"});
    service.metadata.ns = each.string_at({"metadata", "namespace"});
    service.cluster_ip = each.string_at({"spec", "clusterIP"});
    for (const Json& port : items_of(*each.find("spec"), "ports"))
      service.ports.push_back({.name = std::string(port.string_at({"name"})),
                               .protocol = std::string(port.string_at({"protocol"})),
                               .port = static_cast<std::int32_t>(port.find("port")->if_int64().value())});
    known.all.push_back(std::make_shared<const api::Service>(std::move(service)));
  }
  return known;
}

EnvInputs inputs_of(const Json& in) {
  EnvInputs inputs;
  for (const Json& address : items_of(*in.find("node"), "addresses"))
    if (address.string_at({"type"}) == "InternalIP")
      inputs.addresses.host_ips.emplace_back(address.string_at({"address"}));
  if (!inputs.addresses.host_ips.empty()) inputs.addresses.host_ip = inputs.addresses.host_ips.front();
  std::vector<std::string> pod_ips;
  for (const Json& ip : items_of(in, "podIPs")) pod_ips.emplace_back(ip.string_at({}));
  const std::string_view node_ip = in.string_at({"nodeIP"});
  inputs.addresses.pod_ips = in_order_of_family(pod_ips, node_ip.empty() ? inputs.addresses.host_ip : node_ip);
  if (!inputs.addresses.pod_ips.empty()) inputs.addresses.pod_ip = inputs.addresses.pod_ips.front();
  add_sources(inputs.sources, in, "configMaps", DataReference::Kind::kConfigMap);
  add_sources(inputs.sources, in, "secrets", DataReference::Kind::kSecret);
  inputs.services = services_of(in);
  for (const auto& [name, amount] : *in.at({"node", "allocatable"})->if_object())
    inputs.allocatable[name] = api::parse_quantity(amount.string_at({})).value();
  return inputs;
}

std::optional<Mismatch> container_env(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = api::decode<api::Pod>(*in.find("pod")).value();
  const auto made = environment_of(pod, pod.spec.containers.front(), inputs_of(in));
  if (!made) return support::compare(*row.find("want"), Json::object({{"error", made.error().text()}}));
  Json env = Json::object();
  for (const auto& [name, value] : *made) env[name] = value;
  return support::compare(*row.find("want"), Json::object({{"env", std::move(env)}}));
}

const bool kContainerEnv = support::add_vector_check("pod-lifecycle/container_env", container_env);

}  // namespace
}  // namespace spillway::agent
