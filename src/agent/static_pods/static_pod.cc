#include "agent/static_pods/static_pod.h"

#include "api/codec/codec.h"
#include "api/object/meta.h"
#include "api/object/pod_requests.h"
#include "api/object/taint.h"
#include "api/schema/schema.h"
#include "api/schema/typed.h"
#include "api/text/names.h"
#include "api/text/time_text.h"
#include "base/ascii.h"
#include "base/check.h"
#include "base/rng.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kFileSource = "file";
constexpr std::string_view kUrlSource = "http";
constexpr std::int64_t kDefaultGraceSeconds = 30;
constexpr std::uint64_t kSecondBasis = 0x9e3779b97f4a7c15ULL;

/// 32 hexadecimal digits, as long as upstream's. The pod of an address has one uid on every node, as upstream.
std::string hash_of(const Json& document, const ManifestOrigin& origin, const std::string& node_name) {
  const std::string text =
      api::to_text(document) +
      (origin.source == ManifestSource::kUrl ? "url:" + origin.url : "host:" + node_name + "file:" + origin.name);
  return fmt::format("{:016x}{:016x}", fnv1a64(text), fnv1a64(text, kSecondBasis));
}

Outcome check_kind(const Json& document, const std::string& file) {
  if (!document.is_object()) return invalid(file, "expected a Pod (apiVersion: v1, kind: Pod)");
  const std::string_view version = document.string_at({"apiVersion"});
  const std::string_view kind = document.string_at({"kind"});
  if (version == "v1" && kind == "Pod") return {};
  return invalid(file, "expected apiVersion v1 and kind Pod, got \"{}\" and \"{}\"", version, kind);
}

Outcome check_names(const api::Pod& pod, const std::string& file) {
  const auto wrong = [&](const std::string& path, const std::string& why) {
    return invalid(file, "{}: {}", path, why);
  };
  if (const auto errors = api::dns1123_subdomain_errors(pod.metadata.name); !errors.empty()) {
    return wrong("metadata.name", api::join_problems(errors));
  }
  if (const auto errors = api::dns1123_label_errors(pod.metadata.ns); !errors.empty()) {
    return wrong("metadata.namespace", api::join_problems(errors));
  }
  if (pod.spec.containers.empty()) return wrong("spec.containers", "expected at least one container");
  if (!pod.spec.ephemeral_containers.empty()) return wrong("spec.ephemeralContainers", "cannot be set on create");
  std::set<std::string_view> names;
  for (const auto& [list, containers] :
       {std::pair("initContainers", &pod.spec.init_containers), std::pair("containers", &pod.spec.containers)}) {
    for (std::size_t i = 0; i < containers->size(); ++i) {
      const api::Container& container = (*containers)[i];
      const std::string path = fmt::format("spec.{}[{}]", list, i);
      if (const auto errors = api::dns1123_label_errors(container.name); !errors.empty()) {
        return wrong(path + ".name", api::join_problems(errors));
      }
      if (!names.insert(container.name).second) return wrong(path + ".name", "is there twice: " + container.name);
      if (container.image.empty()) return wrong(path + ".image", "expected the name of an image");
    }
  }
  constexpr std::array<std::string_view, 4> kPolicies{"", "Always", "OnFailure", "Never"};
  if (std::ranges::find(kPolicies, pod.spec.restart_policy) == kPolicies.end()) {
    return wrong("spec.restartPolicy", "expected Always, OnFailure or Never, got " + pod.spec.restart_policy);
  }
  return {};
}

void add_toleration(Json& spec) {
  Json& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations = Json::array();
  Json everything = Json::object({{"effect", api::kNoExecute}, {"operator", "Exists"}});
  if (std::ranges::find(*tolerations.if_array(), everything) != tolerations.if_array()->end()) return;
  tolerations.if_array()->push_back(std::move(everything));
}

/// Sets the defaults that the API server would set, as far as the agent reads them.
void set_defaults(api::PodSpec& spec) {
  if (spec.restart_policy.empty()) spec.restart_policy = "Always";
  if (!spec.enable_service_links) spec.enable_service_links = true;
  if (!spec.termination_grace_period_seconds) spec.termination_grace_period_seconds = kDefaultGraceSeconds;
  if (spec.dns_policy.empty()) spec.dns_policy = "ClusterFirst";
  spec.security.given = true;
  for (auto* containers : {&spec.init_containers, &spec.containers}) {
    for (api::Container& container : *containers) {
      if (container.termination_message_path.empty()) container.termination_message_path = "/dev/termination-log";
      if (container.termination_message_policy.empty()) container.termination_message_policy = "File";
      for (const auto& [resource, limit] : container.resources.limits) {
        container.resources.requests.try_emplace(resource, limit);
      }
      for (api::ContainerPort& port : container.ports) {
        if (spec.host_network && port.host_port == 0) port.host_port = port.container_port;
      }
    }
  }
  api::default_pod_level(spec);
}

}  // namespace

Result<StaticPod> make_static_pod(const Json& document, const ManifestOrigin& origin, const std::string& node_name,
                                  WallTime seen) {
  const std::string& file = origin.name;
  SPILLWAY_TRY_VOID(check_kind(document, file));
  const api::Type* type = api::find_kind("v1", "Pod");
  SPILLWAY_CHECK(type != nullptr);
  auto read = api::read_body(*type, document);
  if (!read) return invalid(file, "{}", read.error().message);
  StaticPod made{.pod = {}, .document = std::move(read->object), .warnings = api::field_warnings(*read)};
  Json& metadata = made.document["metadata"];
  if (metadata.string_at({"name"}).empty()) return invalid(file, "metadata.name: expected a name");
  made.document.if_object()->erase("status");
  if (Json::Object* members = metadata.if_object()) {
    for (const char* key : {"uid", "resourceVersion", "creationTimestamp", "ownerReferences", "generation"}) {
      members->erase(key);
    }
  }
  const std::string hash = hash_of(made.document, origin, node_name);
  metadata["name"] = fmt::format("{}-{}", metadata.string_at({"name"}), lower_case(node_name));
  if (metadata.string_at({"namespace"}).empty()) metadata["namespace"] = "default";
  metadata.make({"annotations", kConfigHashAnnotation}) = hash;
  metadata.make({"annotations", api::kConfigSourceAnnotation}) =
      origin.source == ManifestSource::kUrl ? kUrlSource : kFileSource;
  metadata.make({"annotations", kConfigSeenAnnotation}) = api::format_micro_time(seen);
  Json& spec = made.document.make({"spec"});
  spec["nodeName"] = node_name;
  add_toleration(spec);
  auto pod = api::decode<api::Pod>(made.document);
  if (!pod) return invalid(file, "{}", pod.error().text());
  SPILLWAY_TRY_VOID(check_names(*pod, file));
  made.pod = *std::move(pod);
  made.pod.metadata.uid = hash;
  made.pod.status = {.phase = "Pending"};
  set_defaults(made.pod.spec);
  return made;
}

Json mirror_of(const StaticPod& pod, const api::Node& node) {
  Json mirror = pod.document;
  Json& metadata = mirror["metadata"];
  metadata.make({"annotations", api::kConfigMirrorAnnotation}) = pod.pod.metadata.uid;
  metadata["ownerReferences"] = Json::array({Json::object({{"apiVersion", "v1"},
                                                           {"kind", "Node"},
                                                           {"name", node.metadata.name},
                                                           {"uid", node.metadata.uid},
                                                           {"controller", true}})});
  return mirror;
}

}  // namespace spillway::agent
