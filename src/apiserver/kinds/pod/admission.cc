// Admission of a new pod: limits, account, runtime class, priority, tolerations.
#include "api/codec/codec.h"
#include "api/object/meta.h"
#include "api/object/pod.h"
#include "api/object/tolerations.h"
#include "api/text/time_text.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/limits/limits.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/pod/token_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

/// Members of containers and volumes that name a secret.
constexpr std::array<std::string_view, 5> kSecretMembers{"azureFile", "nodePublishSecretRef", "secret", "secretKeyRef",
                                                         "secretRef"};

api::Status forbidden(const api::Json& pod, std::string_view why) {
  return api::forbidden_status({"", "pods"}, pod.string_at({"metadata", "name"}), why);
}

/// True if a container or volume names a secret somewhere.
bool names_secret(const api::Json& value) {
  if (const api::Json::Array* list = value.if_array()) return std::ranges::any_of(*list, names_secret);
  const api::Json::Object* members = value.if_object();
  if (members == nullptr) return false;
  return std::ranges::any_of(*members, [](const auto& member) {
    const bool names = std::ranges::find(kSecretMembers, member.key) != kSecretMembers.end();
    return (names && member.value.is_object()) || names_secret(member.value);
  });
}

bool projects_token(const api::Json& volume) {
  return std::ranges::any_of(elements(value_of(volume, "projected"), "sources"),
                             [](const api::Json& source) { return has(source, "serviceAccountToken"); });
}

/// A mirror pod shows a pod that runs anyway: it gets no account, and may not use what needs one.
api::StatusResult<void> admit_mirror(const api::Json& pod) {
  const api::Json& spec = value_of(pod, "spec");
  if (!text(spec, "serviceAccountName").empty()) {
    return forbidden(pod, "a mirror pod may not reference service accounts");
  }
  bool secrets = !elements(spec, "imagePullSecrets").empty();
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers", "volumes"}) {
    secrets = secrets || names_secret(value_of(spec, list));
  }
  if (secrets) return forbidden(pod, "a mirror pod may not reference secrets");
  if (std::ranges::any_of(elements(spec, "volumes"), projects_token)) {
    return forbidden(pod, "a mirror pod may not use ServiceAccountToken volume projections");
  }
  return {};
}

api::StatusResult<void> admit_service_account(api::Json& pod, const AdmissionContext& context) {
  const api::Json& annotations = value_of(value_of(pod, "metadata"), "annotations");
  if (has(annotations, api::kConfigMirrorAnnotation)) return admit_mirror(pod);
  api::Json& spec = pod["spec"];
  set_default(spec, "serviceAccountName",
              text(spec, "serviceAccount").empty() ? std::string_view("default") : text(spec, "serviceAccount"));
  const std::string account(text(spec, "serviceAccountName"));
  const std::string_view ns = pod.string_at({"metadata", "namespace"});
  const std::optional<api::Json> found = context.cluster.find("serviceaccounts", ns, account);
  if (!found) {
    return forbidden(pod, fmt::format("error looking up service account {}/{}: serviceaccount \"{}\" not found", ns,
                                      account, account));
  }
  if (elements(std::as_const(spec), "imagePullSecrets").empty() && has(*found, "imagePullSecrets")) {
    spec["imagePullSecrets"] = value_of(*found, "imagePullSecrets");
  }
  spec["serviceAccount"] = account;
  if (context.rules.token_volumes && wants_token_volume(pod, *found)) add_token_volume(pod);
  return {};
}

/// Adds the node selector and tolerations of the pod's RuntimeClass to the pod's own.
api::StatusResult<void> add_scheduling(api::Json& pod, const api::Json& scheduling) {
  api::Json& spec = pod["spec"];
  if (const api::Json::Object* wanted = value_of(scheduling, "nodeSelector").if_object()) {
    for (const auto& [key, value] : *wanted) {
      const api::Json* own = std::as_const(spec).at({"nodeSelector", key});
      if (own != nullptr && !(*own == value)) {
        return forbidden(pod, fmt::format("pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{}] = {}; "
                                          "pod.spec.nodeSelector[{}] = {}",
                                          key, value.string_at({}), key, own->string_at({})));
      }
      spec.make({"nodeSelector", key}) = value;
    }
  }
  for (const api::Json& each : elements(scheduling, "tolerations")) {
    const api::Json::Array& own = elements(std::as_const(spec), "tolerations");
    if (std::ranges::find(own, each) != own.end()) continue;
    api::Json& list = spec["tolerations"];
    if (!list.is_array()) list = api::Json::array();
    list.if_array()->push_back(each);
  }
  return {};
}

api::StatusResult<void> admit_runtime_class(api::Json& pod, const AdmissionContext& context) {
  api::Json& spec = pod["spec"];
  const std::string name(text(spec, "runtimeClassName"));
  std::optional<api::Json> runtime_class;
  if (!name.empty()) {
    runtime_class = context.cluster.find("runtimeclasses.node.k8s.io", "", name);
    if (!runtime_class) return forbidden(pod, fmt::format("pod rejected: RuntimeClass \"{}\" not found", name));
  }
  if (!runtime_class) return {};
  SPILLWAY_TRY_VOID(add_scheduling(pod, value_of(*runtime_class, "scheduling")));
  const api::Json* overhead = runtime_class->at({"overhead", "podFixed"});
  if (overhead == nullptr) return {};
  if (has(spec, "overhead") && !(spec["overhead"] == *overhead)) {
    return forbidden(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  }
  spec["overhead"] = *overhead;
  return {};
}

/// The class named, or the global default, or none.
api::StatusResult<std::optional<api::Json>> priority_class_of(const api::Json& pod, const AdmissionContext& context) {
  constexpr std::string_view kClasses = "priorityclasses.scheduling.k8s.io";
  const std::string_view name = pod.string_at({"spec", "priorityClassName"});
  if (!name.empty()) {
    std::optional<api::Json> found = context.cluster.find(kClasses, "", name);
    if (!found) return forbidden(pod, fmt::format("no PriorityClass with name {} was found", name));
    return found;
  }
  std::optional<api::Json> fallback;
  context.cluster.visit(kClasses, "", [&fallback](const api::Json& candidate) {
    if (!is_true(candidate, "globalDefault")) return true;
    // The smallest value among several defaults, so that the answer does not depend on their order.
    if (!fallback || integer(candidate, "value").value_or(0) < integer(*fallback, "value").value_or(0)) {
      fallback = candidate;
    }
    return true;
  });
  return fallback;
}

api::StatusResult<void> admit_priority(api::Json& pod, const AdmissionContext& context) {
  SPILLWAY_TRY(priority_class, priority_class_of(pod, context));
  api::Json& spec = pod["spec"];
  std::int64_t priority = 0;
  std::string policy = "PreemptLowerPriority";
  if (priority_class) {
    priority = integer(*priority_class, "value").value_or(0);
    if (const std::string_view stated = text(*priority_class, "preemptionPolicy"); !stated.empty()) policy = stated;
    set_default(spec, "priorityClassName", priority_class->string_at({"metadata", "name"}));
  }
  if (has(spec, "priority") && integer(spec, "priority") != priority) {
    return forbidden(pod, fmt::format("the integer value of priority ({}) must not be provided in pod spec; priority "
                                      "admission controller computed {} from the given PriorityClass name",
                                      integer(spec, "priority").value_or(0), priority));
  }
  if (has(spec, "preemptionPolicy") && text(spec, "preemptionPolicy") != policy) {
    return forbidden(pod, fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod spec; "
                                      "priority admission controller computed {} from the given PriorityClass name",
                                      text(spec, "preemptionPolicy"), policy));
  }
  spec["priority"] = priority;
  spec["preemptionPolicy"] = policy;
  return {};
}

/// Merge, as the plug-in has it: one that is there is not repeated.
void add_memory_pressure_toleration(const api::Json& pod, std::vector<api::Toleration>& tolerations) {
  const auto spec = api::decode<api::PodSpec>(*pod.find("spec"));
  if (!spec || api::compute_qos(*spec) == api::QosClass::kBestEffort) return;
  const api::Taint pressure{std::string(api::kTaintNodeMemoryPressure), {}, std::string(api::kNoSchedule), {}};
  const auto tolerates = [&pressure](const api::Toleration& each) { return api::tolerates(each, pressure); };
  if (std::ranges::any_of(tolerations, tolerates)) return;
  tolerations.push_back({pressure.key, "Exists", {}, pressure.effect, {}});
}

/// Adds five minutes on a node that is not ready or unreachable, unless the pod has such tolerations; and pods with
/// requests tolerate nodes under memory pressure.
void add_tolerations(api::Json& pod, const AdmissionRules& rules) {
  api::Json& spec = pod["spec"];
  std::vector<api::Toleration> tolerations;
  for (const api::Json& each : elements(std::as_const(spec), "tolerations")) {
    auto toleration = api::decode<api::Toleration>(each);
    if (!toleration) return;  // validation refuses the pod
    tolerations.push_back(*std::move(toleration));
  }
  const std::size_t own = tolerations.size();
  api::add_default_tolerations(tolerations);
  if (rules.memory_pressure_toleration) add_memory_pressure_toleration(pod, tolerations);
  if (tolerations.size() == own) return;
  api::Json& list = spec["tolerations"];
  if (!list.is_array()) list = api::Json::array();
  for (std::size_t i = own; i < tolerations.size(); ++i) list.if_array()->push_back(api::encode(tolerations[i]));
}

/// A pod with gates has its PodScheduled condition from the start, with the reason.
void add_gated_condition(api::Json& pod, WallTime now) {
  if (elements(value_of(pod, "spec"), "schedulingGates").empty()) return;
  pod["status"]["conditions"] =
      api::Json::array({api::Json::object({{"type", "PodScheduled"},
                                           {"status", "False"},
                                           {"lastProbeTime", nullptr},
                                           {"lastTransitionTime", api::format_time(now)},
                                           {"reason", "SchedulingGated"},
                                           {"message", "Scheduling is blocked due to non-empty scheduling gates"}})});
}

}  // namespace

api::StatusResult<void> admit_pod(api::Json& pod, const AdmissionContext& context) {
  fill_in_limits(pod, context);
  SPILLWAY_TRY_VOID(admit_service_account(pod, context));
  SPILLWAY_TRY_VOID(admit_runtime_class(pod, context));
  SPILLWAY_TRY_VOID(admit_priority(pod, context));
  add_tolerations(pod, context.rules);
  add_gated_condition(pod, context.now);
  return {};
}

api::StatusResult<void> confirm_pod(const api::Json& pod, const AdmissionContext& context) {
  SPILLWAY_TRY_VOID(confirm_pod_limits(pod, context));
  const api::Json& spec = value_of(pod, "spec");
  const bool asks = has(spec, "overhead");
  if (!asks) return {};
  const std::optional<api::Json> runtime_class =
      context.cluster.find("runtimeclasses.node.k8s.io", "", text(spec, "runtimeClassName"));
  const api::Json* fixed = runtime_class ? runtime_class->at({"overhead", "podFixed"}) : nullptr;
  if (fixed == nullptr) {
    return forbidden(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  }
  if (!(value_of(spec, "overhead") == *fixed)) {
    return forbidden(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  }
  return {};
}

api::StatusResult<void> admit_pod_update(api::Json& pod, const api::Json& old, Endpoint endpoint,
                                         const AdmissionContext& /*context*/) {
  if (endpoint != Endpoint::kMain) return {};
  // Set at the creation; an update that leaves them out means no change.
  api::Json& spec = pod["spec"];
  for (const std::string_view key : {"preemptionPolicy", "priority"}) {
    if (!has(spec, key) && has(value_of(old, "spec"), key)) spec[key] = value_of(value_of(old, "spec"), key);
  }
  add_tolerations(pod, {.memory_pressure_toleration = false});  // the toleration is for new pods
  return {};
}

}  // namespace spillway::apiserver::kinds
