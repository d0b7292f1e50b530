// vectors/node-agent: node_status_setters.
#include "agent/node/node_addresses.h"
#include "agent/node/node_conditions.h"
#include "agent/node/node_machine.h"
#include "agent/node/node_software.h"
#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::string text_at(const Json& in, std::string_view key) {
  return std::string(in.string_at({key}));
}

std::int64_t integer_at(const Json& in, std::string_view key) {
  return in.find(key)->if_int64().value();
}

bool flag_at(const Json& in, std::string_view key) {
  return in.find(key)->if_bool().value();
}

/// nullopt: null.
std::optional<std::string> optional_text(const Json& in, std::string_view key) {
  const Json* value = in.find(key);
  return value == nullptr || !value->is_string() ? std::nullopt : std::optional(*value->if_string());
}

std::vector<std::string> texts_at(const Json& in, std::string_view key) {
  std::vector<std::string> texts;
  const Json* list = in.find(key);
  if (list == nullptr || list->if_array() == nullptr) return texts;
  for (const Json& each : *list->if_array()) texts.push_back(*each.if_string());
  return texts;
}

api::ResourceList resources(const Json* list) {
  api::ResourceList result;
  if (list == nullptr || !list->is_object()) return result;
  for (const auto& [name, amount] : *list->if_object()) {
    result.emplace(name, api::parse_quantity(*amount.if_string()).value());
  }
  return result;
}

/// One call of a setter: the node before and after it.
struct Run {
  api::Node node;
  std::vector<NodeEvent> events;
  Outcome outcome;
};

/// A node whose status has these members of the input.
api::Node node_with(const Json& in, std::initializer_list<std::string_view> members) {
  Json document = Json::object({{"apiVersion", "v1"}, {"kind", "Node"}});
  for (const std::string_view member : members) {
    if (in.find(member) != nullptr) document.make({"status", member}) = *in.find(member);
  }
  return api::decode<api::Node>(document).value();
}

Run run_condition(std::string_view setter, const Json& in) {
  Run run{node_with(in, {"conditions", "capacity"}), {}, {}};
  const WallTime now = api::parse_time(in.string_at({"now"})).value();
  if (setter == "Ready") {
    Readiness readiness;
    for (const std::string_view key : {"runtimeError", "networkError", "storageError", "shutdownError"}) {
      const Json* error = in.find(key);
      if (error == nullptr || error->is_null()) continue;
      if (error->is_string()) readiness.errors.push_back(*error->if_string());
      for (std::string& each : texts_at(in, key)) readiness.errors.push_back(std::move(each));
    }
    readiness.soft_requirements = optional_text(in, "softRequirements");
    if (!flag_at(in, "localStorageCapacityIsolation")) readiness.local_storage = LocalStorageIsolation::kOff;
    set_ready(run.node, readiness, now, run.events);
    return run;
  }
  for (const eviction::Condition condition : eviction::kConditions) {
    if (to_string(condition) != setter) continue;
    const auto wanted = flag_at(in, "pressure") ? eviction::ConditionStatus::kTrue : eviction::ConditionStatus::kFalse;
    set_pressure(run.node, condition, wanted, now, run.events);
  }
  return run;
}

Run run_machine_info(const Json& in) {
  const Json& before = *in.find("before");
  Run run{node_with(before, {"capacity", "allocatable"}), {}, {}};
  run.node.metadata.name = text_at(in, "nodeName");
  run.node.status.node_info.boot_id = text_at(before, "bootID");
  MachineFacts facts{.pods_max = integer_at(in, "maxPods"),
                     .pods_per_core = integer_at(in, "podsPerCore"),
                     .devices = {.capacity = resources(in.at({"devicePlugins", "capacity"})),
                                 .allocatable = resources(in.at({"devicePlugins", "allocatable"})),
                                 .removed = texts_at(*in.find("devicePlugins"), "removed")},
                     .reservation = resources(in.find("reservation"))};
  const std::string storage = text_at(in, "ephemeralStorageCapacity");
  if (!storage.empty()) facts.ephemeral_storage = api::parse_quantity(storage).value();
  if (!optional_text(in, "machineInfoError")) {
    const Json& machine = *in.find("machineInfo");
    MachineReading reading{.cpu_milli = integer_at(machine, "numCores") * 1000,
                           .memory = Bytes{integer_at(machine, "memoryCapacity")},
                           .machine_id = text_at(machine, "machineID"),
                           .system_uuid = text_at(machine, "systemUUID"),
                           .boot_id = text_at(machine, "bootID"),
                           .huge_pages = {}};
    for (const Json& each : *machine.find("hugePages")->if_array()) {
      reading.huge_pages.push_back({integer_at(each, "pageSizeKiB"), integer_at(each, "numPages")});
    }
    facts.reading = std::move(reading);
  }
  set_machine_info(run.node, facts, run.events);
  return run;
}

Run run_addresses(const Json& in) {
  Run run{node_with(in, {"addresses"}), {}, {}};
  run.node.metadata.name = text_at(in, "nodeName");
  for (const auto& [key, value] : *in.find("annotations")->if_object()) {
    run.node.metadata.annotations[key] = *value.if_string();
  }
  AddressFacts facts{
      .hostname = text_at(in, "hostname"),
      .node_ips = texts_at(in, "nodeIPs"),
      .cloud_provider = flag_at(in, "externalCloudProvider") ? CloudProvider::kExternal : CloudProvider::kNone,
      .dns_answers = texts_at(in, "dnsAnswers"),
      .default_route_ip = text_at(in, "defaultRouteIP"),
      .on_host = [absent = texts_at(in, "ipsNotOnHost")](const std::string& ip) {
        return std::ranges::find(absent, ip) == absent.end();
      }};
  if (facts.default_route_ip->empty()) {
    facts.default_route_ip =
        Error{ErrorCode::kNotFound, "no default routes found in \"/proc/net/route\" or \"/proc/net/ipv6_route\"", {}};
  }
  run.outcome = set_addresses(run.node, facts);
  return run;
}

Run run_software(std::string_view setter, const Json& in) {
  Run run;
  if (setter == "VersionInfo") {
    run.node.status.node_info.kube_proxy_version = in.string_at({"before", "kubeProxyVersion"});
    const bool known = !optional_text(in, "runtimeVersionError");
    Result<VersionFacts> facts = VersionFacts{
        .kernel_version = text_at(in, "kernelVersion"),
        .os_image = text_at(in, "osImage"),
        .container_runtime_version = runtime_version_text(
            text_at(in, "runtimeType"), known ? std::optional(text_at(in, "runtimeVersion")) : std::nullopt),
        .agent_version = text_at(in, "agentVersion")};
    if (const auto error = optional_text(in, "versionInfoError")) facts = Error{ErrorCode::kInternalError, *error, {}};
    run.outcome = set_version_info(run.node, facts);
  } else if (setter == "Images") {
    Json holder = Json::object({{"images", *in.find("before")}});
    run.node = node_with(holder, {"images"});
    std::vector<NodeImage> list;
    for (const Json& each : *in.find("sortedImages")->if_array()) {
      list.push_back({texts_at(each, "repoDigests"), texts_at(each, "repoTags"), integer_at(each, "size")});
    }
    Result<std::vector<NodeImage>> images = std::move(list);
    if (const auto error = optional_text(in, "imageListError")) images = Error{ErrorCode::kInternalError, *error, {}};
    run.outcome = set_images(run.node, images, integer_at(in, "nodeStatusMaxImages"));
  } else if (setter == "GoRuntime") {
    set_platform(run.node, {.operating_system = text_at(in, "os"), .architecture = text_at(in, "arch")});
  } else if (setter == "RuntimeHandlers") {
    std::vector<RuntimeHandler> handlers;
    for (const Json& each : *in.find("handlers")->if_array()) {
      handlers.push_back(
          {text_at(each, "name"), flag_at(each, "recursiveReadOnlyMounts"), flag_at(each, "userNamespaces")});
    }
    set_runtime_handlers(run.node, handlers);
  } else if (setter == "VolumesInUse") {
    run.node.status.volumes_in_use = texts_at(in, "before");
    set_volumes_in_use(run.node, flag_at(in, "synced") ? std::optional(texts_at(in, "volumes")) : std::nullopt);
  } else if (setter == "DaemonEndpoints") {
    run.node.status.kubelet_port = static_cast<std::int32_t>(integer_at(in, "port"));
  }
  return run;
}

Run run_setter(std::string_view setter, const Json& in) {
  if (setter == "Ready" || setter.ends_with("Pressure")) return run_condition(setter, in);
  if (setter == "MachineInfo") return run_machine_info(in);
  if (setter == "NodeAddress") return run_addresses(in);
  return run_software(setter, in);  // NodeFeatures: nothing is set
}

/// The members the setter owns, as `want` names them; absent is null, as is empty.
Json members_of(const api::Node& node, const Json& want) {
  const Json document = api::encode(node);
  Json got = Json::object();
  for (const auto& [member, value] : *want.if_object()) {
    const Json* found = member == "annotations" ? document.at({"metadata", member}) : document.at({"status", member});
    got[member] = found == nullptr ? Json() : *found;
  }
  return got;
}

bool is_empty(const Json& value) {
  return (value.is_object() && value.if_object()->empty()) || (value.is_array() && value.if_array()->empty());
}

Json comparable(Json members) {
  for (auto& [member, value] : *members.if_object()) {
    if (member == "nodeInfo") {  // empty strings in it are absent members here
      Json filled = Json::object();
      if (value.is_object()) {
        for (const auto& [key, text] : *value.if_object()) {
          if (text != Json("")) filled[key] = text;
        }
      }
      value = filled;
    }
    if (is_empty(value)) value = nullptr;
    if (member == "daemonEndpoints" && value == Json::object({{"kubeletEndpoint", Json::object({{"Port", 0}})}})) {
      value = nullptr;
    }
  }
  return members;
}

std::optional<Mismatch> node_status_setters(const Json& row) {
  const Json& in = *row.find("input");
  const Run run = run_setter(row.string_at({"setter"}), in);
  Json want = Json::object({{"expect", comparable(*row.find("expect"))}, {"events", *row.find("events")}});
  Json got = Json::object({{"expect", comparable(members_of(run.node, *row.find("expect")))}});
  Json events = Json::array();
  for (std::size_t i = 0; i < run.events.size(); ++i) {
    Json event =
        Json::object({{"type", run.events[i].warning ? "Warning" : "Normal"}, {"reason", run.events[i].reason}});
    const Json::Array& wanted = *row.find("events")->if_array();
    if (i < wanted.size() && wanted[i].find("message") != nullptr) event["message"] = run.events[i].message;
    events.if_array()->push_back(std::move(event));
  }
  got["events"] = std::move(events);
  want["error"] = row.string_at({"error"});
  got["error"] = run.outcome ? std::string() : run.outcome.error().text();
  return support::compare(want, got);
}

const bool kSetters = support::add_vector_check("node-agent/node_status_setters", node_status_setters);

}  // namespace
}  // namespace spillway::agent
