// Changes that an update of a pod may make: images, the deadline, tolerations added, gates removed, and the node
// affinity of a gated pod.
#include "api/object/pod.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/pod/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kNodeAffinity = "nodeAffinity";
constexpr std::string_view kUpdatable =
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

void put_back(api::Json& now, const api::Json& old, std::string_view key) {
  if (has(old, key)) {
    now[key] = value_of(old, key);
  } else {
    now.erase({key});
  }
}

/// False if containers were added or removed: nothing else is compared then.
bool check_container_updates(const CheckedField& containers, std::size_t count_before) {
  if (containers.size() != count_before) {
    containers.forbidden("pod updates may not add or remove containers");
    return false;
  }
  containers.each([](const CheckedField& container) {
    const CheckedField image = container["image"];
    image.require_text();
    check_image_edges(image);
  });
  return true;
}

/// Checks a change of activeDeadlineSeconds. False: the other members need no check.
bool check_deadline_update(const CheckedField& deadline, const std::optional<std::int64_t>& before) {
  const std::optional<std::int64_t> after = deadline.integer();
  if (!after) {
    if (before) deadline.invalid("must not update from a positive integer to nil value");
    return !before;
  }
  if (*after < 0 || *after > kInt32Max) {
    deadline.require_between(0, kInt32Max);
    return false;
  }
  if (before && *after > *before) {
    deadline.invalid("must be less than or equal to previous value");
    return false;
  }
  return true;
}

/// Shortening or lengthening tolerationSeconds of an existing one is allowed.
void check_toleration_updates(const CheckedField& tolerations, const api::Json& old) {
  const auto identity = [](const api::Json& toleration) {
    return std::tuple(text(toleration, "key"), text(toleration, "effect"), text(toleration, "operator"),
                      text(toleration, "value"));
  };
  std::set<decltype(identity(old))> after;
  for (const api::Json& toleration : tolerations.elements()) after.insert(identity(toleration));
  for (const api::Json& toleration : elements(old, "tolerations")) {
    if (!after.contains(identity(toleration))) {
      return tolerations.forbidden("existing toleration can not be modified except its tolerationSeconds");
    }
  }
  check_tolerations(tolerations);
}

void check_gate_updates(const CheckedField& gates, const api::Json& old) {
  std::set<std::string_view> before;
  for (const api::Json& gate : elements(old, "schedulingGates")) before.insert(text(gate, "name"));
  gates.each([&before](const CheckedField& gate) {
    const CheckedField name = gate["name"];
    if (before.insert(name.text()).second) {
      name.forbidden(fmt::format("only deletion is allowed, but found new scheduling gate '{}'", name.text()));
    }
  });
}

/// A gated pod may be narrowed down: labels of nodes may be added.
void check_selector_update(const CheckedField& selector, const api::Json& old) {
  if (old.if_object() == nullptr) return;
  for (const auto& member : *old.if_object()) {
    const api::Json* now = selector.json().find(member.key);
    if (now != nullptr && *now == member.value) continue;
    return selector.invalid("additions are allowed, but deletions and mutations are not for gated pods");
  }
}

/// True if the list begins with all requirements of before, unchanged.
bool begins_with_all(const api::Json& now, const api::Json& old, std::string_view list) {
  const api::Json::Array& after = elements(now, list);
  const api::Json::Array& before = elements(old, list);
  return after.size() >= before.size() && std::equal(before.begin(), before.end(), after.begin());
}

/// Existing terms must stay, and may get further requirements.
void check_node_affinity_update(const CheckedField& affinity, const api::Json& old) {
  const CheckedField required = affinity["requiredDuringSchedulingIgnoredDuringExecution"];
  const api::Json& old_required = value_of(old, "requiredDuringSchedulingIgnoredDuringExecution");
  const api::Json::Array& old_terms = elements(old_required, "nodeSelectorTerms");
  if (old_terms.empty()) return;
  const CheckedField terms = required["nodeSelectorTerms"];
  if (terms.size() != old_terms.size()) {
    return terms.invalid("no additions/deletions to non-empty NodeSelectorTerms list are allowed");
  }
  for (std::size_t i = 0; i < old_terms.size() && !terms.full(); ++i) {
    const CheckedField term = terms.at(i);
    const bool blank =
        elements(old_terms[i], "matchExpressions").empty() && elements(old_terms[i], "matchFields").empty();
    const bool same = term.json() == old_terms[i];
    const bool kept = begins_with_all(term.json(), old_terms[i], "matchExpressions") &&
                      begins_with_all(term.json(), old_terms[i], "matchFields");
    if (!same && (blank || !kept)) term.invalid("only additions are allowed (no mutations or deletions)");
  }
}

/// Undoes the changes that a gated pod may make, after validating them.
void validate_gated_changes(api::Json& same, const api::Json& old, const CheckedField& spec) {
  if (!(value_of(same, "nodeSelector") == value_of(old, "nodeSelector"))) {
    check_selector_update(spec["nodeSelector"], value_of(old, "nodeSelector"));
    put_back(same, old, "nodeSelector");
  }
  const api::Json& old_affinity = value_of(old, "affinity");
  const api::Json& before = value_of(old_affinity, kNodeAffinity);
  if (value_of(value_of(same, "affinity"), kNodeAffinity) == before) return;
  const CheckedField affinity = spec["affinity"];
  check_node_affinity_update(affinity[kNodeAffinity], before);
  api::Json& undone = same["affinity"];
  if (undone.is_null()) undone = api::Json::object();
  put_back(undone, old_affinity, kNodeAffinity);
  if (undone.if_object()->empty() && !old_affinity.is_object()) same.erase({"affinity"});
}

/// `spec` with everything an update may change as `old` has it; what still differs is forbidden.
api::Json with_allowed_changes_undone(const CheckedField& spec, const api::Json& old) {
  api::Json same = spec.json();
  for (const std::string_view list : {"containers", "initContainers"}) {
    api::Json::Array* containers = elements(same, list);
    const api::Json::Array& before = elements(old, list);
    if (containers == nullptr) continue;
    for (std::size_t i = 0; i < before.size(); ++i) put_back((*containers)[i], before[i], "image");
  }
  for (const std::string_view key : {"activeDeadlineSeconds", "schedulingGates", "tolerations"})
    put_back(same, old, key);
  if (integer(old, "terminationGracePeriodSeconds").value_or(0) < 0 &&
      integer(same, "terminationGracePeriodSeconds") == 1) {
    put_back(same, old, "terminationGracePeriodSeconds");
  }
  return same;
}

void check_main_update(const CheckedField& pod, const api::Json& old) {
  const CheckedField spec = pod["spec"];
  const api::Json& before = value_of(old, "spec");
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (!check_container_updates(spec[list], elements(before, list).size())) return;
  }
  if (!check_deadline_update(spec["activeDeadlineSeconds"], integer(before, "activeDeadlineSeconds"))) return;
  check_toleration_updates(spec["tolerations"], before);
  check_gate_updates(spec["schedulingGates"], before);
  if (spec.json() == before) return;
  api::Json same = with_allowed_changes_undone(spec, before);
  if (!elements(before, "schedulingGates").empty()) validate_gated_changes(same, before, spec);
  if (!(same == before)) spec.forbidden(kUpdatable);
}

/// Existing debug containers must stay unchanged.
void check_debug_containers_update(const CheckedField& pod, const api::Json& old) {
  const CheckedField spec = pod["spec"];
  const CheckedField containers = spec["ephemeralContainers"];
  const api::Json::Array& now = containers.elements();
  for (const api::Json& container : elements(value_of(old, "spec"), "ephemeralContainers")) {
    const std::string_view name = text(container, "name");
    // The last of several containers with one name counts.
    const auto found =
        std::find_if(now.rbegin(), now.rend(), [&](const api::Json& one) { return text(one, "name") == name; });
    if (found == now.rend()) {
      containers.forbidden(fmt::format("existing ephemeral containers \"{}\" may not be removed", name));
    } else if (!(*found == container)) {
      containers.forbidden(fmt::format("existing ephemeral containers \"{}\" may not be changed", name));
    }
  }
}

}  // namespace

void validate_pod_update(const api::Json& pod, const api::Json& old, Endpoint endpoint, api::FieldErrors& errors) {
  const CheckedField root(&pod, {}, errors);
  const CheckedField metadata = root["metadata"];
  const CheckedField annotations = metadata["annotations"];
  const CheckedField spec = root["spec"];
  const api::Json& old_annotations = value_of(value_of(old, "metadata"), "annotations");
  if (endpoint == Endpoint::kEphemeralContainers && has(old_annotations, api::kConfigMirrorAnnotation)) {
    return errors.forbidden("[]", "static pods do not support ephemeral containers");
  }
  if (endpoint == Endpoint::kResize && !check_resizable(root, old)) return;
  if (endpoint != Endpoint::kStatus) check_whole_pod(root, value_of(old, "spec"));
  // Upstream validates the changed annotations once more.
  check_annotation_changes(annotations, old_annotations);
  check_pod_annotations(annotations, spec);
  switch (endpoint) {
    case Endpoint::kMain:
      return check_main_update(root, old);
    case Endpoint::kEphemeralContainers:
      return check_debug_containers_update(root, old);
    case Endpoint::kResize:
      return check_resize(root, old);
    case Endpoint::kStatus:
      return check_status_change(root, old);
    case Endpoint::kApproval:
    case Endpoint::kFinalize:
      return;
  }
}

}  // namespace spillway::apiserver::kinds
