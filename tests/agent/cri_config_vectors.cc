// vectors/pod-lifecycle: sandbox_config, container_config, container_hash, security_context in the form for container
// runtimes.
#include "agent/containers/container_hash.h"
#include "agent/cri/container_config.h"
#include "agent/cri/sandbox_config.h"
#include "api/codec/codec.h"
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

std::vector<std::string> strings_at(const Json& in, std::string_view member) {
  std::vector<std::string> made;
  for (const Json& each : list_at(in, member)) made.emplace_back(each.string_at({}));
  return made;
}

std::vector<std::int64_t> numbers_at(const Json& in, std::string_view member) {
  std::vector<std::int64_t> made;
  for (const Json& each : list_at(in, member)) made.push_back(each.if_int64().value());
  return made;
}

std::int64_t number_at(const Json& in, std::string_view member) {
  const Json* found = in.find(member);
  return found == nullptr ? 0 : found->if_int64().value_or(0);
}

bool is_true(const Json& in, std::string_view member) {
  const Json* found = in.find(member);
  return found != nullptr && found->if_bool().value_or(false);
}

api::Pod pod_of(const Json& in) {
  return api::decode<api::Pod>(*in.find("pod")).value();
}

UserNamespaces user_namespaces(const Json& in) {
  const std::string_view text = in.string_at({"userns"});
  if (text == "supported") return UserNamespaces::kSupported;
  return text == "unsupported" ? UserNamespaces::kUnsupported : UserNamespaces::kOff;
}

ImageUser image_user(const Json& in) {
  ImageUser user{.uid = {}, .name = std::string(in.string_at({"imageUser", "username"}))};
  if (const Json* uid = in.at({"imageUser", "uid"})) user.uid = uid->if_int64();
  return user;
}

/// Capabilities without any mean the same as none, and are not sent.
Json without_empty_capabilities(Json want) {
  for (Json* context : {want.find("securityContext"), want.at({"config", "linux", "security_context"})}) {
    const Json* capabilities = context == nullptr ? nullptr : context->find("capabilities");
    if (capabilities != nullptr && capabilities->if_object()->empty()) context->erase({"capabilities"});
  }
  return want;
}

template <typename Made>
std::optional<Mismatch> outcome(const Json& row, std::string_view member, const Result<Made>& made, const Json& value) {
  return support::compare(without_empty_capabilities(*row.find("want")),
                          made ? Json::object({{member, value}}) : Json::object({{"error", made.error().message}}));
}

std::optional<Mismatch> security(const Json& row) {
  const Json& in = *row.find("in");
  if (in.at({"imageUser", "error"}) != nullptr) return std::nullopt;  // ends before: the image cannot be inspected
  const api::Pod pod = pod_of(in);
  const auto made = security_context(pod, pod.spec.containers.front(),
                                     {.image_user = image_user(in),
                                      .seccomp_default = is_true(in, "seccompDefault"),
                                      .state_dir = "/var/lib/kubelet",
                                      .extra_groups = numbers_at(in, "extraSupplementalGroups"),
                                      .namespaces = {.user_namespaces = user_namespaces(in), .runtime_handler = {}}});
  return outcome(row, "securityContext", made, made.value_or(Json()));
}

std::optional<Mismatch> sandbox(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = pod_of(in);
  SandboxWish wish{
      .attempt = static_cast<std::int32_t>(number_at(in, "attempt")),
      .cgroup_parent = std::string(in.string_at({"cgroupParent"})),
      .log_directory = fmt::format("/var/log/pods/{}_{}_{}", pod.metadata.ns, pod.metadata.name, pod.metadata.uid),
      .dns = {.cluster_dns = strings_at(in, "clusterDNS"),
              .cluster_domain = std::string(in.string_at({"clusterDomain"})),
              .resolv_conf = std::string(in.string_at({"hostResolvConf"})),
              .node_ips = {}},
      .extra_groups = numbers_at(in, "extraSupplementalGroups"),
      .namespaces = {.user_namespaces = user_namespaces(in), .runtime_handler = {}}};
  const std::string& name = pod.spec.runtime_class_name;
  const Json* classes = in.find("runtimeClasses");
  const bool known = classes != nullptr && classes->find(name) != nullptr;
  if (!name.empty() && !known) wish.unknown_class = name;
  auto made = sandbox_config(pod, wish);
  if (made) {
    if (Json* options = made->config.at({"dns_config", "options"})) {
      std::ranges::sort(*options->if_array(), {}, [](const Json& each) { return std::string(each.string_at({})); });
    }
  }
  return outcome(row, "config", made, made ? made->config : Json());
}

const api::Container& container_of(const api::Pod& pod, std::string_view name) {
  for (const auto* list : {&pod.spec.containers, &pod.spec.init_containers, &pod.spec.ephemeral_containers}) {
    const auto found = std::ranges::find(*list, name, &api::Container::name);
    if (found != list->end()) return *found;
  }
  return pod.spec.containers.front();
}

ResourceFacts resource_facts(const Json& in) {
  const bool v2 = is_true(in, "cgroupV2");
  return {
      .cgroup_v2 = v2,
      .cpu_cfs_quota = is_true(in, "cpuCFSQuota"),
      .single_process_oom_kill = in.find("singleProcessOOMKill") == nullptr ? !v2 : is_true(in, "singleProcessOOMKill"),
      .swap_behavior = std::string(in.string_at({"memorySwapBehavior"})),
      .swap_controller = is_true(in, "swapControllerAvailable"),
      .machine_memory = Bytes{number_at(in, "machineMemoryBytes")},
      .machine_swap = Bytes{number_at(in, "machineSwapBytes")},
      .huge_page_sizes = strings_at(in, "hostHugePageSizes")};
}

std::optional<Mismatch> container(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = pod_of(in);
  const api::Container& subject = container_of(pod, in.string_at({"container"}));
  ContainerWish wish;
  wish.restart_count = static_cast<std::int32_t>(number_at(in, "restartCount"));
  wish.image_ref = in.string_at({"imageRef"});
  for (const Json& each : list_at(in, "envs"))
    wish.environment.set((*each.if_array())[0].string_at({}), std::string((*each.if_array())[1].string_at({})));
  for (const Json& each : list_at(in, "mounts"))
    wish.mounts.push_back({.container_path = std::string(each.string_at({"containerPath"})),
                           .host_path = std::string(each.string_at({"hostPath"})),
                           .read_only = is_true(each, "readOnly"),
                           .recursively = is_true(each, "recursiveReadOnly"),
                           .propagation = static_cast<Propagation>(number_at(each, "propagation"))});
  for (const Json& each : list_at(in, "devices")) {
    const auto word = [&](std::size_t i) { return std::string((*each.if_array())[i].string_at({})); };
    wish.devices.push_back({word(0), word(1), word(2)});
  }
  wish.cdi_devices = strings_at(in, "cdiDevices");
  if (const Json* extra = in.find("extraAnnotations"))
    for (const auto& [name, value] : *extra->if_object()) wish.annotations[name] = value.string_at({});
  wish.termination_log = fmt::format("/var/lib/kubelet/pods/{}/containers/{}/RANDOM8", pod.metadata.uid, subject.name);
  wish.target_container = in.string_at({"targetContainerID"});
  wish.resources = resource_facts(in);
  wish.security = {.image_user = image_user(in),
                   .state_dir = "/var/lib/kubelet",
                   .extra_groups = {},
                   .namespaces = {.user_namespaces = user_namespaces(in), .runtime_handler = {}}};
  const auto made = container_config(pod, subject, wish);
  return outcome(row, "config", made, made.value_or(Json()));
}

std::optional<Mismatch> hash(const Json& row) {
  return support::compare(*row.at({"want", "hash"}),
                          Json(container_hash(row.string_at({"in", "name"}), row.string_at({"in", "image"}))));
}

const bool kSandbox = support::add_vector_check("pod-lifecycle/sandbox_config", sandbox);
const bool kContainer = support::add_vector_check("pod-lifecycle/container_config", container);
const bool kHash = support::add_vector_check("pod-lifecycle/container_hash", hash);
const bool kSecurity = support::add_vector_check("pod-lifecycle/security_context_cri", security);

}  // namespace
}  // namespace spillway::agent
