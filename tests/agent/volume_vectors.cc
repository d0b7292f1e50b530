// vectors/pod-lifecycle: expansion, volume_payload, empty_dir_memory, hosts_resolv. vectors/network: resolv_conf.
#include "agent/containers/container_env.h"
#include "agent/containers/dns_config.h"
#include "agent/containers/pod_hosts.h"
#include "agent/containers/pod_resources.h"
#include "agent/volumes/payload.h"
#include "agent/volumes/volume_plan.h"
#include "api/codec/codec.h"
#include "api/text/base64.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::vector<Json> list_at(const Json& in, std::string_view member) {
  const Json* found = in.find(member);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? std::vector<Json>() : std::vector<Json>(list->begin(), list->end());
}

api::ResourceList resources_of(const Json* object) {
  api::ResourceList made;
  if (object == nullptr || object->if_object() == nullptr) return made;
  for (const auto& [name, amount] : *object->if_object())
    made[name] = api::parse_quantity(amount.string_at({})).value();
  return made;
}

std::optional<Mismatch> expansion(const Json& row) {
  Environment variables;
  for (const auto& [name, value] : *row.at({"in", "env"})->if_object())
    variables.set(name, std::string(value.string_at({})));
  return support::compare(*row.at({"want", "output"}), Json(expand(row.string_at({"in", "input"}), variables).value()));
}

std::optional<Mismatch> empty_dir_memory(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = api::decode<api::Pod>(*in.find("pod")).value();
  api::EmptyDirVolume volume{.medium = "Memory", .size_limit = {}};
  if (const Json* limit = in.find("sizeLimit")) volume.size_limit = api::parse_quantity(limit->string_at({})).value();
  const auto size = memory_directory_size(volume, create_pod_command(pod).memory_limit,
                                          api::parse_quantity(in.string_at({"nodeAllocatableMemory"}))->bytes());
  return support::compare(*row.at({"want", "sizeBytes"}), size ? Json(size->count()) : Json());
}

DataObjects objects_of(const Json& in) {
  DataObjects objects;
  for (const Json& each : list_at(in, "configMaps"))
    objects[{DataReference::Kind::kConfigMap, std::string(each.string_at({"metadata", "name"}))}] = each;
  for (const Json& each : list_at(in, "secrets"))
    objects[{DataReference::Kind::kSecret, std::string(each.string_at({"metadata", "name"}))}] = each;
  return objects;
}

std::optional<Mismatch> volume_payload(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  api::Pod pod;
  if (const Json* given = in.find("pod")) pod = api::decode<api::Pod>(*given).value();
  const std::string kind(in.string_at({"kind"}));
  const api::Volume volume{.name = "v", .source = kind, .definition = *in.find(kind), .empty_dir = {}};
  const DataObjects objects = objects_of(in);
  const api::ResourceList allocatable = resources_of(in.find("nodeAllocatable"));
  Json requests = Json::array();
  const auto token = [&](const TokenWish& wish) -> Result<std::string> {
    const std::string& account = pod.spec.service_account_name;
    requests.if_array()->push_back(*token_request(pod, wish).find("spec"));
    if (account == "broken") return make_error(ErrorCode::kNotFound, "serviceaccounts \"broken\" not found");
    return "token-of-" + account;
  };
  PayloadSources sources{.objects = objects, .allocatable = allocatable, .token = token, .fs_user = {}};
  if (const Json* user = in.find("fsUser")) sources.fs_user = user->if_int64();
  sources.has_fs_group = in.find("fsGroup") != nullptr;
  const Result<Payload> made = payload_of(pod, volume, sources);
  const auto with_requests = [&](Json got) {
    if (want.find("tokenRequests") != nullptr) got["tokenRequests"] = requests;
    return support::compare(want, got);
  };
  if (!made) return with_requests(Json::object({{"error", made.error().message}}));
  Json files = Json::object();
  for (const auto& [path, file] : *made) {
    Json each =
        Json::object({{"mode", fmt::format("{:04o}", file.mode)}, {"dataBase64", api::encode_base64(file.content)}});
    if (file.owner) each["owner"] = *file.owner;
    files[path] = each;
  }
  return with_requests(Json::object({{"files", files}}));
}

std::vector<std::string> strings_at(const Json& in, std::string_view member) {
  std::vector<std::string> made;
  for (const Json& each : list_at(in, member)) made.emplace_back(each.string_at({}));
  return made;
}

Json strings_of(const std::vector<std::string>& list) {
  Json made = Json::array();
  for (const std::string& each : list) made.if_array()->emplace_back(each);
  return made;
}

/// Rows of kind resolv.
std::optional<Mismatch> resolv(const api::Pod& pod, const Json& in, const Json& want) {
  DnsFacts facts{.cluster_dns = strings_at(in, "clusterDNS"),
                 .cluster_domain = std::string(in.string_at({"clusterDomain"})),
                 .resolv_conf = std::nullopt,
                 .resolver_path = {},
                 .node_ips = strings_at(in, "nodeIPs")};
  if (in.find("hostResolvConf") != nullptr) facts.resolv_conf = std::string(in.string_at({"hostResolvConf"}));
  auto made = pod_dns(pod, facts);
  if (!made) return support::compare(want, Json::object({{"error", made.error().message}}));
  std::ranges::sort(made->config.options);
  Json events = Json::array();
  for (const DnsWarning& each : made->warnings)
    events.if_array()->emplace_back(fmt::format("Warning {} {}", each.reason, each.message));
  return support::compare(want, Json::object({{"servers", strings_of(made->config.servers)},
                                              {"searches", strings_of(made->config.searches)},
                                              {"options", strings_of(made->config.options)},
                                              {"events", events}}));
}

Json dns_event(std::string_view object, std::string_view reason, const std::string& message) {
  return Json::object({{"message", message}, {"object", object}, {"reason", reason}, {"type", "Warning"}});
}

api::Pod dns_pod(const Json& in) {
  api::Pod pod;
  pod.metadata.ns = in.string_at({"namespace"});
  pod.metadata.name = in.string_at({"name"});
  pod.metadata.uid = in.string_at({"uid"});
  pod.spec.dns_policy = in.string_at({"dnsPolicy"});
  pod.spec.host_network = in.find("hostNetwork")->if_bool().value();
  if (const Json* own = in.find("dnsConfig")) pod.spec.dns_config = *own;
  return pod;
}

std::optional<Mismatch> resolv_conf_row(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  DnsFacts facts{.cluster_dns = strings_at(in, "clusterDNS"),
                 .cluster_domain = std::string(in.string_at({"clusterDomain"})),
                 .resolv_conf = std::nullopt,
                 .resolver_path = "/etc/resolv.conf",
                 .node_ips = strings_at(in, "nodeIPs")};
  if (!in.find("hostResolvConf")->is_null()) facts.resolv_conf = std::string(in.string_at({"hostResolvConf"}));
  Json file_events = Json::array();
  if (const auto problem = resolver_file_problem(facts))
    file_events.if_array()->push_back(dns_event("Node", "CheckLimitsForResolvConf", *problem));
  auto made = pod_dns(dns_pod(*in.find("pod")), facts);
  if (!made)
    return support::compare(want, Json::object({{"error", made.error().message},
                                                {"events", Json::array()},
                                                {"hostFileCheckEvents", std::move(file_events)}}));
  std::ranges::sort(made->config.options);
  Json events = Json::array();
  for (const DnsWarning& each : made->warnings)
    events.if_array()->push_back(dns_event(each.about_node ? "Node" : "Pod", each.reason, each.message));
  return support::compare(want, Json::object({{"events", std::move(events)},
                                              {"hostFileCheckEvents", std::move(file_events)},
                                              {"options", strings_of(made->config.options)},
                                              {"searches", strings_of(made->config.searches)},
                                              {"servers", strings_of(made->config.servers)}}));
}

std::optional<Mismatch> hosts(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const api::Pod pod = api::decode<api::Pod>(*in.find("pod")).value();
  if (in.string_at({"kind"}) == "resolv") return resolv(pod, in, want);
  const auto names = names_of(pod, std::string(in.string_at({"clusterDomain"})));
  if (!names) return support::compare(want, Json::object({{"error", names.error().message}}));
  if (in.string_at({"kind"}) == "hostname") {
    Json got = Json::object({{"hostname", names->host}, {"domain", names->domain}});
    const auto kernel = kernel_host_name(pod, *names);
    if (!kernel) got["sandboxError"] = kernel.error().message;
    if (kernel && !pod.spec.host_network) got["sandboxHostname"] = *kernel;
    return support::compare(want, got);
  }
  std::vector<std::string> ips;
  for (const Json& each : list_at(in, "podIPs")) ips.emplace_back(each.string_at({}));
  const auto file = hosts_file(pod, *names, ips);
  Json got = Json::object({{"mounted", file.has_value()}});
  if (file)
    got["content"] = fmt::format("{}{}{}", file->content,
                                 file->machine_file.empty() ? "" : in.string_at({"hostEtcHosts"}), file->more);
  return support::compare(want, got);
}

const bool kResolvConf = support::add_vector_check("network/resolv_conf", resolv_conf_row);
const bool kHosts = support::add_vector_check("pod-lifecycle/hosts_resolv", hosts);
const bool kExpansion = support::add_vector_check("pod-lifecycle/expansion", expansion);
const bool kEmptyDirMemory = support::add_vector_check("pod-lifecycle/empty_dir_memory", empty_dir_memory);
const bool kVolumePayload = support::add_vector_check("pod-lifecycle/volume_payload", volume_payload);

}  // namespace
}  // namespace spillway::agent
