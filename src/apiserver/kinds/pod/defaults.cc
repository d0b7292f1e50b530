// Defaults of a pod, for members that its author left out.
#include "api/codec/codec.h"
#include "api/object/pod_requests.h"
#include "api/text/quantity.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/image_reference.h"
#include "apiserver/kinds/pod/pod.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::int64_t kVolumeMode = 420;  // 0644
constexpr std::array<std::string_view, 3> kProbes{"livenessProbe", "readinessProbe", "startupProbe"};
constexpr std::array<std::string_view, 3> kContainerLists{"containers", "initContainers", "ephemeralContainers"};

void default_zero(api::Json& object, std::string_view key, std::int64_t value) {
  if (integer(object, key).value_or(0) == 0) object[key] = value;
}

void default_http_get(api::Json& action) {
  api::Json* get = action.find("httpGet");
  if (get == nullptr || !get->is_object()) return;
  set_default(*get, "path", "/");
  set_default(*get, "scheme", "HTTP");
}

void default_probe(api::Json& probe) {
  default_zero(probe, "timeoutSeconds", 1);
  default_zero(probe, "periodSeconds", 10);
  default_zero(probe, "successThreshold", 1);
  default_zero(probe, "failureThreshold", 3);
  default_http_get(probe);
  if (api::Json* grpc = probe.find("grpc"); grpc != nullptr && grpc->is_object() && !has(*grpc, "service")) {
    (*grpc)["service"] = "";
  }
}

void default_field_ref(api::Json& holder) {
  if (api::Json* reference = holder.find("fieldRef"); reference != nullptr && reference->is_object()) {
    set_default(*reference, "apiVersion", "v1");
  }
}

void default_value_source(api::Json& from) {
  default_field_ref(from);
  if (api::Json* file = from.find("fileKeyRef"); file != nullptr && file->is_object() && !has(*file, "optional")) {
    (*file)["optional"] = false;
  }
}

/// "Always" for the latest image, which is also what an image without tag or digest means.
std::string_view pull_policy(std::string_view image) {
  return image_tag(image) == "latest" ? "Always" : "IfNotPresent";
}

/// Amounts finer than a thousandth are rounded up to one.
void round_amounts(api::Json* amounts) {
  if (amounts == nullptr || amounts->if_object() == nullptr) return;
  for (auto& [resource, amount] : *amounts->if_object()) {
    if (amount.if_string() == nullptr) continue;
    const Result<api::Quantity> exact = api::parse_quantity(*amount.if_string());
    if (!exact) continue;
    const api::Quantity rounded = api::Quantity::of_milli(exact->milli_value(), exact->format());
    if (rounded > *exact) amount = rounded.to_string();
  }
}

/// Requests default to the limits.
void default_requests(api::Json& container) {
  const api::Json* limits = container.at({"resources", "limits"});
  if (limits == nullptr || limits->if_object() == nullptr) return;
  const api::Json copied = *limits;
  for (const auto& [resource, limit] : *copied.if_object()) {
    api::Json& request = container.make({"resources", "requests", resource});
    if (request.is_null()) request = limit;
  }
}

void write_missing(const api::ResourceList& amounts, api::Json& resources, std::string_view list) {
  for (const auto& [resource, amount] : amounts) {
    api::Json& at = resources.make({list, resource});
    if (at.is_null()) at = amount.to_string();
  }
}

/// The amounts of the whole pod that follow from its containers. An amount that cannot be read is left to validation.
void default_whole_pod(api::Json& spec) {
  if (!has(spec, "resources")) return;
  auto typed = api::decode<api::PodSpec>(spec);
  if (!typed || !typed->resources) return;
  api::default_pod_level(*typed);
  api::Json& resources = spec["resources"];
  write_missing(typed->resources->limits, resources, "limits");
  write_missing(typed->resources->requests, resources, "requests");
}

void round_resources(api::Json& holder) {
  round_amounts(holder.at({"resources", "limits"}));
  round_amounts(holder.at({"resources", "requests"}));
}

void default_mode(api::Json& source) {
  if (!has(source, "defaultMode")) source["defaultMode"] = kVolumeMode;
}

void default_downward_items(api::Json& source) {
  if (api::Json::Array* items = elements(source, "items")) {
    for (api::Json& item : *items) default_field_ref(item);
  }
}

void default_projected(api::Json& projected) {
  default_mode(projected);
  api::Json::Array* sources = elements(projected, "sources");
  if (sources == nullptr) return;
  if (sources->empty()) {  // stored as none
    projected["sources"] = nullptr;
    return;
  }
  for (api::Json& source : *sources) {
    if (api::Json* downward = source.find("downwardAPI")) default_downward_items(*downward);
    if (api::Json* token = source.find("serviceAccountToken"); token != nullptr && token->is_object()) {
      if (!has(*token, "expirationSeconds")) (*token)["expirationSeconds"] = 3600;
    }
  }
}

/// On the host's network a container port is a port of the host.
void default_host_ports(api::Json& spec) {
  for (const std::string_view list : {kContainerLists[0], kContainerLists[1]}) {
    api::Json::Array* containers = elements(spec, list);
    if (containers == nullptr) continue;
    for (api::Json& container : *containers) {
      api::Json::Array* ports = elements(container, "ports");
      if (ports == nullptr) continue;
      for (api::Json& port : *ports) {
        if (integer(port, "hostPort").value_or(0) == 0 && has(port, "containerPort")) {
          port["hostPort"] = api::Json(*port.find("containerPort"));
        }
      }
    }
  }
}

struct SourceDefault {
  std::string_view source;
  std::string_view member;
  api::Json value;
  /// True if an empty text is kept.
  bool keeps_empty = false;
};

/// Defaults of volume sources that are plain texts and flags.
const std::vector<SourceDefault>& source_defaults() {
  static const std::vector<SourceDefault> kDefaults{{"azureDisk", "cachingMode", "ReadWrite", true},
                                                    {"azureDisk", "fsType", "ext4", true},
                                                    {"azureDisk", "kind", "Shared", true},
                                                    {"azureDisk", "readOnly", false, true},
                                                    {"iscsi", "iscsiInterface", "default"},
                                                    {"rbd", "keyring", "/etc/ceph/keyring"},
                                                    {"rbd", "pool", "rbd"},
                                                    {"rbd", "user", "admin"},
                                                    {"scaleIO", "fsType", "xfs"},
                                                    {"scaleIO", "storageMode", "ThinProvisioned"}};
  return kDefaults;
}

void default_claim_template(api::Json& volume) {
  api::Json* claim = volume.at({"ephemeral", "volumeClaimTemplate", "spec"});
  if (claim == nullptr || !claim->is_object()) return;
  if (!has(*claim, "volumeMode")) (*claim)["volumeMode"] = "Filesystem";
  round_resources(*claim);
}

void default_container(api::Json& container) {
  set_default(container, "imagePullPolicy", pull_policy(text(container, "image")));
  set_default(container, "terminationMessagePath", "/dev/termination-log");
  set_default(container, "terminationMessagePolicy", "File");
  if (api::Json::Array* ports = elements(container, "ports")) {
    for (api::Json& port : *ports) set_default(port, "protocol", "TCP");
  }
  if (api::Json::Array* env = elements(container, "env")) {
    for (api::Json& variable : *env) {
      if (api::Json* from = variable.find("valueFrom")) default_value_source(*from);
    }
  }
  for (const std::string_view name : kProbes) {
    if (api::Json* probe = container.find(name); probe != nullptr && probe->is_object()) default_probe(*probe);
  }
  for (const std::string_view hook : {"postStart", "preStop"}) {
    if (api::Json* action = container.at({"lifecycle", hook})) default_http_get(*action);
  }
  round_resources(container);
}

bool has_source(const api::Json::Object& volume) {
  return std::ranges::any_of(volume,
                             [](const auto& member) { return member.key != "name" && !member.value.is_null(); });
}

void default_volume(api::Json& volume) {
  const api::Json::Object* members = volume.if_object();
  if (members == nullptr) return;
  if (!has_source(*members)) volume["emptyDir"] = api::Json::object();
  for (const std::string_view source : {"secret", "configMap", "downwardAPI"}) {
    if (api::Json* found = volume.find(source); found != nullptr && found->is_object()) default_mode(*found);
  }
  if (api::Json* downward = volume.find("downwardAPI")) default_downward_items(*downward);
  if (api::Json* projected = volume.find("projected"); projected != nullptr && projected->is_object()) {
    default_projected(*projected);
  }
  if (api::Json* path = volume.find("hostPath"); path != nullptr && path->is_object() && !has(*path, "type")) {
    (*path)["type"] = "";
  }
  if (api::Json* image = volume.find("image"); image != nullptr && image->is_object()) {
    set_default(*image, "pullPolicy", pull_policy(text(*image, "reference")));
  }
  for (const SourceDefault& row : source_defaults()) {
    api::Json* source = volume.find(row.source);
    if (source == nullptr || !source->is_object()) continue;
    if (!has(*source, row.member) || (!row.keeps_empty && text(*source, row.member).empty())) {
      (*source)[row.member] = row.value;
    }
  }
  default_claim_template(volume);
}

/// The old name of the account follows the new one.
void default_account(api::Json& spec) {
  if (text(spec, "serviceAccountName").empty() && !text(spec, "serviceAccount").empty()) {
    spec["serviceAccountName"] = api::Json(*spec.find("serviceAccount"));
  }
  if (text(spec, "serviceAccountName").empty()) return;
  spec["serviceAccount"] = api::Json(*spec.find("serviceAccountName"));
}

/// podIP is the first of podIPs, and wins where they differ.
void default_addresses(api::Json& pod) {
  api::Json* status = pod.find("status");
  if (status == nullptr || !status->is_object()) return;
  const api::Json::Array& all = elements(std::as_const(*status), "podIPs");
  const std::string first(all.empty() ? std::string_view() : text(all.front(), "ip"));
  const std::string only(text(*status, "podIP"));
  if (only.empty() && !first.empty()) {
    (*status)["podIP"] = first;
  } else if (!only.empty() && only != first) {
    (*status)["podIPs"] = api::Json::array({api::Json::object({{"ip", only}})});
  }
}

/// Defaults of a pod spec, in a pod or in a template.
void default_pod_spec(api::Json& spec) {
  drop_disabled_fields(spec);
  set_default(spec, "restartPolicy", "Always");
  set_default(spec, "dnsPolicy", "ClusterFirst");
  set_default(spec, "schedulerName", "default-scheduler");
  if (!has(spec, "terminationGracePeriodSeconds")) spec["terminationGracePeriodSeconds"] = 30;
  if (!has(spec, "securityContext")) spec["securityContext"] = api::Json::object();
  for (const std::string_view list : kContainerLists) {
    if (api::Json::Array* containers = elements(spec, list)) {
      for (api::Json& container : *containers) default_container(container);
    }
  }
  if (api::Json::Array* volumes = elements(spec, "volumes")) {
    for (api::Json& volume : *volumes) default_volume(volume);
  }
  round_amounts(spec.find("overhead"));
  round_resources(spec);
  default_account(spec);
}

api::Json& spec_of(api::Json& holder) {
  api::Json& spec = holder.make({"spec"});
  if (!spec.is_object()) spec = api::Json::object();
  return spec;
}

}  // namespace

void default_pod_template(api::Json& pod_template) {
  api::Json& spec = spec_of(pod_template);
  default_pod_spec(spec);
  drop_empty_overhead(spec);
}

void drop_empty_overhead(api::Json& spec) {
  const api::Json::Object* overhead = value_of(spec, "overhead").if_object();
  if (overhead != nullptr && overhead->empty()) spec.erase({"overhead"});
}

void default_pod(api::Json& pod) {
  api::Json& spec = spec_of(pod);
  default_pod_spec(spec);
  for (const std::string_view list : {kContainerLists[0], kContainerLists[1]}) {
    if (api::Json::Array* containers = elements(spec, list)) {
      for (api::Json& container : *containers) default_requests(container);
    }
  }
  default_whole_pod(spec);
  if (!has(spec, "enableServiceLinks")) spec["enableServiceLinks"] = true;
  if (is_true(spec, "hostNetwork")) default_host_ports(spec);
  // A negative grace period meant "at once"; it has become one second.
  if (integer(spec, "terminationGracePeriodSeconds").value_or(0) < 0) spec["terminationGracePeriodSeconds"] = 1;
  default_addresses(pod);
}

}  // namespace spillway::apiserver::kinds
