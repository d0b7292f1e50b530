#include "api/codec/codec.h"
#include "api/object/meta.h"
#include "api/object/pod.h"
#include "api/object/taint.h"
#include "api/text/time_text.h"
#include "apiserver/kinds/fields.h"
#include "apiserver/kinds/pod.h"
#include "apiserver/kinds/tables.h"

#include <fmt/format.h>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::int64_t kDefaultTolerationSeconds = 300;

api::Status forbidden(const api::Json& pod, std::string_view why) {
  return api::forbidden_status({"", "pods"}, pod.string_at({"metadata", "name"}), why);
}

api::StatusResult<void> admit_service_account(api::Json& pod, const AdmissionContext& context) {
  api::Json& spec = pod["spec"];
  // A mirror stands for a pod that runs anyway: it gets no account, and may not ask for one.
  if (!pod.string_at({"metadata", "annotations", api::kConfigMirrorAnnotation}).empty()) {
    if (text(spec, "serviceAccountName").empty()) return {};
    return forbidden(pod, "a mirror pod may not reference service accounts");
  }
  set_default(spec, "serviceAccountName",
              text(spec, "serviceAccount").empty() ? std::string_view("default") : text(spec, "serviceAccount"));
  const std::string account(text(spec, "serviceAccountName"));
  const std::string_view ns = pod.string_at({"metadata", "namespace"});
  if (!context.cluster.find("serviceaccounts", ns, account)) {
    return forbidden(pod, fmt::format("error looking up service account {}/{}: serviceaccount \"{}\" not found", ns,
                                      account, account));
  }
  spec["serviceAccount"] = account;
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
  const api::Json* overhead = runtime_class ? runtime_class->at({"overhead", "podFixed"}) : nullptr;
  const bool asks = has(spec, "overhead") && !spec["overhead"].if_object()->empty();
  if (overhead == nullptr) {
    if (asks)
      return forbidden(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
    return {};
  }
  if (asks && !(spec["overhead"] == *overhead)) {
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
    // Of several, the smallest value, so that the answer does not depend on their order.
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
  if (!text(spec, "preemptionPolicy").empty() && text(spec, "preemptionPolicy") != policy) {
    return forbidden(pod, fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod spec; "
                                      "priority admission controller computed {} from the given PriorityClass name",
                                      text(spec, "preemptionPolicy"), policy));
  }
  spec["priority"] = priority;
  spec["preemptionPolicy"] = policy;
  return {};
}

bool is_tolerated(const api::Json& spec, std::string_view key) {
  for (const api::Json& toleration : elements(spec, "tolerations")) {
    const std::string_view its_key = text(toleration, "key");
    const std::string_view effect = text(toleration, "effect");
    if ((its_key.empty() || its_key == key) && (effect.empty() || effect == api::kNoExecute)) return true;
  }
  return false;
}

/// Five minutes on a node that is not ready or unreachable, unless the pod says otherwise.
void add_default_tolerations(api::Json& spec) {
  for (const std::string_view key : {api::kTaintNodeNotReady, api::kTaintNodeUnreachable}) {
    if (is_tolerated(spec, key)) continue;
    api::Json& tolerations = spec["tolerations"];
    if (!tolerations.is_array()) tolerations = api::Json::array();
    tolerations.if_array()->push_back(api::Json::object({{"key", key},
                                                         {"operator", "Exists"},
                                                         {"effect", api::kNoExecute},
                                                         {"tolerationSeconds", kDefaultTolerationSeconds}}));
  }
}

void set_pod_defaults(api::Json& pod) {
  api::Json& spec = pod.make({"spec"});
  if (!spec.is_object()) spec = api::Json::object();
  default_pod_spec(spec);
  if (!has(spec, "enableServiceLinks")) spec["enableServiceLinks"] = true;
}

/// A pod with gates says from the start why it is not scheduled.
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

void start_pod(api::Json& pod) {
  // A negative grace period meant "at once"; it has become one second.
  if (integer(pod["spec"], "terminationGracePeriodSeconds").value_or(0) < 0) {
    pod["spec"]["terminationGracePeriodSeconds"] = 1;
  }
  const auto spec = api::decode<api::PodSpec>(*pod.find("spec"));
  api::Json status = api::Json::object({{"phase", "Pending"}});
  if (spec) status["qosClass"] = api::to_string(api::compute_qos(*spec));  // else validation refuses the pod
  pod["status"] = std::move(status);
}

void validate_new_pod(const api::Json& pod, api::FieldErrors& errors) {
  validate_pod_spec(*pod.find("spec"), "spec", errors);
}

}  // namespace

api::StatusResult<void> admit_pod(api::Json& pod, const AdmissionContext& context) {
  SPILLWAY_TRY_VOID(admit_service_account(pod, context));
  SPILLWAY_TRY_VOID(admit_runtime_class(pod, context));
  SPILLWAY_TRY_VOID(admit_priority(pod, context));
  add_default_tolerations(pod["spec"]);
  add_gated_condition(pod, context.now);
  return {};
}

KindHooks pod_hooks() {
  const TableDefinition table = pod_table();
  return {.set_defaults = set_pod_defaults,
          .prepare_create = start_pod,
          .admit_create = admit_pod,
          .validate_create = validate_new_pod,
          .validate_update = validate_pod_update,
          .columns = table.columns,
          .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
