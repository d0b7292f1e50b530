#include "apiserver/security/pod_security.h"

#include "base/utf8.h"
#include "policy/podsecurity/existing_pods.h"
#include "policy/podsecurity/pod_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;
using podsecurity::Level;
using podsecurity::LevelVersion;
using podsecurity::Mode;
using podsecurity::NamespacePolicy;

const Json kNothing;
constexpr std::size_t kLoggedBytesMax = 1U << 10U;  // limit for a pod's text in a log line

const Json& value_at(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* found = object.at(path);
  return found == nullptr ? kNothing : *found;
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return !word.empty() && std::ranges::find(list, word) != list.end();
}

std::string_view name_of(const Json& object) {
  return object.string_at({"metadata", "name"});
}

std::string_view namespace_of(const Json& object) {
  return object.string_at({"metadata", "namespace"});
}

const Json& object_labels(const Json& object) {
  return value_at(object, {"metadata", "labels"});
}

/// The template of an object that makes pods; null for any other.
const Json& template_in(const Resource& resource, const Json& object) {
  constexpr std::pair<std::string_view, std::string_view> kMakers[] = {
      {"", "replicationcontrollers"}, {"apps", "daemonsets"},   {"apps", "deployments"},
      {"apps", "replicasets"},        {"apps", "statefulsets"}, {"batch", "jobs"}};
  const std::pair asked(resource.group, resource.plural);
  if (asked == std::pair<std::string_view, std::string_view>("", "podtemplates")) return value_at(object, {"template"});
  if (asked == std::pair<std::string_view, std::string_view>("batch", "cronjobs")) {
    return value_at(object, {"spec", "jobTemplate", "spec", "template"});
  }
  return std::ranges::find(kMakers, asked) == std::end(kMakers) ? kNothing : value_at(object, {"spec", "template"});
}

}  // namespace

struct PodSecurity::Trial {
  const ValidWrite& write;
  const NamespacePolicy& asked;
  const Json& pod;  // or a template: metadata and spec
  bool enforced = false;
};

StatusResult<void> PodSecurity::confirm(const ValidWrite& write) const {
  if (!core_.admission.pod_security) return {};
  const bool main = write.part == SubresourceId::kNone;
  if (write.resource.is("", "Namespace")) return main ? confirm_namespace(write) : StatusResult<void>();
  if (write.resource.is("", "Pod")) {
    return main || write.part == SubresourceId::kEphemeralContainers ? confirm_pod(write) : StatusResult<void>();
  }
  const Json& pods = template_in(write.resource, write.object);
  return main && pods.is_object() ? confirm_workload(write, pods) : StatusResult<void>();
}

// Namespaces.

/// Wrong labels are refused, unless they were as wrong before.
StatusResult<void> PodSecurity::confirm_namespace(const ValidWrite& write) const {
  const podsecurity::Policy& defaults = configuration().defaults;
  const std::string_view name = name_of(write.object);
  const NamespacePolicy asked = policy_of(object_labels(write.object), defaults);
  const NamespacePolicy before = policy_of(write.old != nullptr ? object_labels(*write.old) : kNothing, defaults);
  const bool same_errors = write.old != nullptr && asked.errors.errors() == before.errors.errors();
  if (!asked.errors.empty() && !same_errors) return api::invalid_status({"", "Namespace"}, name, asked.errors);
  const LevelVersion& enforce = asked.policy.enforce;
  if (write.old != nullptr && !may_violate(enforce, before.policy.enforce)) return {};
  if (contains(configuration().exempt_namespaces, name)) {
    std::string warning = exempt_namespace_warning(name, asked.policy, object_labels(write.object), defaults);
    if (!warning.empty()) write.warnings.push_back(std::move(warning));
    return {};
  }
  if (write.old != nullptr) warn_of_pods(write, name, enforce);
  return {};
}

void PodSecurity::warn_of_pods(const ValidWrite& write, std::string_view ns, const LevelVersion& enforce) const {
  std::vector<ObjectPtr> objects;
  core_.cache.of(*core_.registry.find_plural("pods")).visit(std::string(ns) + "/", {}, [&](const ObjectPtr& object) {
    objects.push_back(object);
    return true;
  });
  std::vector<podsecurity::ExistingPod> pods;
  pods.reserve(objects.size());
  for (const ObjectPtr& object : objects) {
    const auto owner = std::ranges::find_if(object->meta.owners, &OwnerLink::controller);
    const bool controlled = owner != object->meta.owners.end();
    pods.push_back({.name = object->name,
                    .controller = controlled ? std::string_view(owner->uid) : std::string_view(),
                    .bytes = object->parsed ? 0 : object->text->size()});
  }
  const auto document_of = [&](std::size_t index) { return *objects[index]->shared_document(); };
  std::vector<std::string> warnings = warnings_about(pods, document_of, ns, enforce, configuration());
  std::ranges::move(warnings, std::back_inserter(write.warnings));
}

// Kinds that are checked: pods, and kinds with a pod template.

bool PodSecurity::is_exempt(const ValidWrite& write) const {
  return contains(configuration().exempt_namespaces, namespace_of(write.object)) ||
         contains(configuration().exempt_users, write.user.name);
}

StatusResult<NamespacePolicy> PodSecurity::policy_for(const ValidWrite& write) const {
  const std::string_view name = namespace_of(write.object);
  const ObjectPtr found = core_.cache.of(*core_.registry.find_plural("namespaces")).find(object_key("", name));
  if (!found) {
    metrics_.count_error(write, true);
    return make_error(ErrorCode::kInternalError, "Internal error occurred: failed to lookup namespace \"{}\"", name);
  }
  Json labels = Json::object();
  for (const auto& [key, value] : found->meta.labels) {
    if (key.starts_with(podsecurity::kLabelPrefix)) labels[key] = value;
  }
  return policy_of(labels, configuration().defaults);
}

StatusResult<void> PodSecurity::confirm_pod(const ValidWrite& write) const {
  if (is_exempt(write)) {
    metrics_.count_exemption(write);
    return {};
  }
  SPILLWAY_TRY(asked, policy_for(write));
  if (asked.errors.empty() && asked.policy.all_privileged()) {
    metrics_.count_evaluation(write, Mode::kEnforce, asked.policy.enforce, true);
    return {};
  }
  if (write.old != nullptr && !podsecurity::is_significant_change(write.object, *write.old)) return {};
  return decide({write, asked, write.object, true});
}

StatusResult<void> PodSecurity::confirm_workload(const ValidWrite& write, const Json& template_of_pods) const {
  if (is_exempt(write)) {
    metrics_.count_exemption(write);
    return {};
  }
  const StatusResult<NamespacePolicy> asked = policy_for(write);
  if (!asked) return {};
  const podsecurity::Policy& policy = asked->policy;
  const bool silent = policy.audit.level == Level::kPrivileged && policy.warn.level == Level::kPrivileged;
  if (asked->errors.empty() && silent) return {};
  return decide({write, *asked, template_of_pods, false});
}

std::string PodSecurity::violations(const Trial& trial, Mode mode) const {
  const LevelVersion& standard = trial.asked.policy.of(mode);
  const Json& spec = value_at(trial.pod, {"spec"});
  std::string found = details_text(evaluate(standard, value_at(trial.pod, {"metadata"}), spec));
  if (!found.empty() || mode == Mode::kEnforce) {
    metrics_.count_evaluation(trial.write, mode, standard, found.empty());
  }
  return found.empty() ? found
                       : fmt::format("violate{} PodSecurity \"{}\": {}", mode == Mode::kEnforce ? "s" : "",
                                     standard.text(), found);
}

StatusResult<void> PodSecurity::decide(const Trial& trial) const {
  const ValidWrite& write = trial.write;
  if (is_exempt_runtime(configuration(), value_at(trial.pod, {"spec"}))) {
    metrics_.count_exemption(write);
    return {};
  }
  if (!trial.asked.errors.empty()) metrics_.count_error(write, false);
  const std::string refusal = trial.enforced ? violations(trial, Mode::kEnforce) : std::string();
  const std::string audited = violations(trial, Mode::kAudit);
  const auto log = [&](telemetry::Level level, std::string_view decision, const std::string& why) {
    if (!core_.log.enabled(level)) return;
    const std::initializer_list<telemetry::Field> fields = {{"decision", decision},
                                                            {"resource", write.resource.group_resource().text()},
                                                            {"namespace", namespace_of(write.object)},
                                                            {"name", name_of(write.object)},
                                                            {"user", write.user.name},
                                                            {"why", shortened(why, kLoggedBytesMax)}};
    level == telemetry::Level::kDebug ? core_.log.debug("pod security", fields)
                                      : core_.log.info("pod security", fields);
  };
  if (!audited.empty()) log(telemetry::Level::kInfo, "audit", "would " + audited);
  if (!refusal.empty()) {
    log(telemetry::Level::kDebug, "deny", refusal);
    return api::forbidden_status(write.resource.group_resource(), name_of(write.object), refusal);
  }
  const std::string warned = violations(trial, Mode::kWarn);
  if (!warned.empty()) write.warnings.push_back("would " + warned);
  log(telemetry::Level::kDebug, "allow", warned);
  return {};
}

}  // namespace spillway::apiserver
