// A new pod before it is admitted: its first status, and fields that follow from several others.
#include "api/codec/codec.h"
#include "api/object/pod.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/pod/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kLocalhost = "localhost/";
constexpr std::string_view kObserved = "observedGeneration";

void start_status(api::Json& pod) {
  const auto spec = api::decode<api::PodSpec>(*pod.find("spec"));
  api::Json status = api::Json::object({{"phase", "Pending"}});
  if (spec) status["qosClass"] = api::to_string(api::compute_qos(*spec));  // else validation refuses the pod
  pod["status"] = std::move(status);
}

/// matchLabelKeys: the pod's own values of these labels become part of the selector.
void add_label_expressions(api::Json& term, const api::Json& labels) {
  const api::Json& read = term;
  if (!has(read, "labelSelector")) return;
  for (const auto& [keys, op] : {std::pair("matchLabelKeys", "In"), std::pair("mismatchLabelKeys", "NotIn")}) {
    for (const api::Json& key : elements(read, keys)) {
      const api::Json* value = labels.find(key.string_at({}));
      if (value == nullptr) continue;
      api::Json& expressions = term.make({"labelSelector", "matchExpressions"});
      if (!expressions.is_array()) expressions = api::Json::array();
      expressions.if_array()->push_back(
          api::Json::object({{"key", key}, {"operator", op}, {"values", api::Json::array({*value})}}));
    }
  }
}

bool has_label_keys(const api::Json& term) {
  return !elements(term, "matchLabelKeys").empty() || !elements(term, "mismatchLabelKeys").empty();
}

void add_spread_expressions(api::Json& pod, const api::Json& labels) {
  api::Json::Array* constraints = elements(pod["spec"], "topologySpreadConstraints");
  if (constraints == nullptr) return;
  for (api::Json& constraint : *constraints) {
    if (!elements(std::as_const(constraint), "matchLabelKeys").empty()) add_label_expressions(constraint, labels);
  }
}

void add_label_expressions(api::Json& pod) {
  const api::Json labels = value_of(value_of(pod, "metadata"), "labels");
  add_spread_expressions(pod, labels);
  for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    if (std::as_const(pod).at({"spec", "affinity", kind}) == nullptr) continue;
    api::Json& affinity = *pod.at({"spec", "affinity", kind});
    if (api::Json::Array* terms = elements(affinity, "requiredDuringSchedulingIgnoredDuringExecution")) {
      for (api::Json& term : *terms) {
        if (has_label_keys(term)) add_label_expressions(term, labels);
      }
    }
    if (api::Json::Array* terms = elements(affinity, "preferredDuringSchedulingIgnoredDuringExecution")) {
      for (api::Json& weighted : *terms) {
        api::Json* term = weighted.find("podAffinityTerm");
        if (term != nullptr && has_label_keys(*term)) add_label_expressions(*term, labels);
      }
    }
  }
}

/// Null if the annotation has no counterpart as a field.
api::Json profile_of_annotation(std::string_view annotation) {
  if (annotation == "unconfined") return api::Json::object({{"type", "Unconfined"}});
  if (annotation == "runtime/default") return api::Json::object({{"type", "RuntimeDefault"}});
  if (!annotation.starts_with(kLocalhost)) return {};
  api::Json profile =
      api::Json::object({{"type", "Localhost"}, {"localhostProfile", annotation.substr(kLocalhost.size())}});
  return is_app_armor_profile(profile) ? profile : api::Json();
}

/// The field of a container that has a profile by an annotation only, as clients before 1.30 wrote it.
void take_app_armor_annotation(const api::Json& pod, api::Json& container, const api::Json& of_pod) {
  const std::string key = fmt::format("{}{}", kAppArmorAnnotationPrefix, text(container, "name"));
  const api::Json* annotation = std::as_const(pod).at({"metadata", "annotations", key});
  const api::Json* own = std::as_const(container).at({"securityContext", "appArmorProfile"});
  if (annotation == nullptr || (own != nullptr && own->is_object())) return;
  api::Json profile = profile_of_annotation(annotation->string_at({}));
  if (!profile.is_null() && !(profile == of_pod)) {
    container.make({"securityContext", "appArmorProfile"}) = std::move(profile);
  }
}

bool has_app_armor_annotation(const api::Json& pod) {
  const api::Json& annotations = value_of(value_of(pod, "metadata"), "annotations");
  return annotations.if_object() != nullptr && std::ranges::any_of(*annotations.if_object(), [](const auto& member) {
           return member.key.starts_with(kAppArmorAnnotationPrefix);
         });
}

void take_app_armor_annotations(api::Json& pod) {
  if (std::as_const(pod).string_at({"spec", "os", "name"}) == "windows" || !has_app_armor_annotation(pod)) return;
  const api::Json of_pod = value_of(value_of(value_of(pod, "spec"), "securityContext"), "appArmorProfile");
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    api::Json::Array* containers = elements(*pod.find("spec"), list);
    if (containers == nullptr) continue;
    for (api::Json& container : *containers) take_app_armor_annotation(pod, container, of_pod);
  }
}

}  // namespace

void prepare_new_pod(api::Json& pod) {
  start_status(pod);
  add_label_expressions(pod);
  take_app_armor_annotations(pod);
}

/// A status without the generations that it was made from has those of before.
void keep_observed_generations(api::Json& status, const api::Json& before) {
  const auto keep = [](api::Json& now, const api::Json& old) {
    const std::int64_t said = integer(old, kObserved).value_or(0);
    if (said != 0 && integer(now, kObserved).value_or(0) == 0) now[kObserved] = said;
  };
  keep(status, before);
  api::Json::Array* conditions = elements(status, "conditions");
  if (conditions == nullptr) return;
  for (api::Json& condition : *conditions) {
    for (const api::Json& old : elements(before, "conditions")) {
      if (text(old, "type") == text(condition, "type")) keep(condition, old);
    }
  }
}

void prepare_pod_update(api::Json& pod, const api::Json& old, Endpoint endpoint) {
  if (endpoint == Endpoint::kMain) drop_empty_overhead(pod["spec"]);
  if (endpoint != Endpoint::kStatus) return;
  keep_observed_generations(pod.make({"status"}), value_of(old, "status"));
  // The class follows from the spec: a status without it means no change.
  if (text(value_of(pod, "status"), "qosClass").empty()) {
    pod.make({"status"})["qosClass"] = value_of(value_of(old, "status"), "qosClass");
  }
}

}  // namespace spillway::apiserver::kinds
