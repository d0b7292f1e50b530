// The rules of a pod spec, in upstream's order; families of rules have files of their own.
#include "api/text/names.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/pod/rules.h"

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kRestartPolicies{"Always", "Never", "OnFailure"};
constexpr std::array<std::string_view, 2> kPreemptionPolicies{"Never", "PreemptLowerPriority"};

constexpr std::string_view kNotWithOwnUsers = "when `hostUsers` is false";

struct NameCheck {
  std::string_view member;
  std::vector<std::string> (*problems)(std::string_view);
  bool checked_when_empty = false;
};

/// Names that may be left out.
constexpr std::array<NameCheck, 6> kNames{{{"serviceAccountName", api::dns1123_subdomain_errors},
                                           {"nodeName", api::dns1123_subdomain_errors},
                                           {"hostname", api::dns1123_label_errors},
                                           {"subdomain", api::dns1123_label_errors},
                                           {"priorityClassName", api::dns1123_subdomain_errors},
                                           {"runtimeClassName", api::dns1123_subdomain_errors, true}}};

void check_names(const CheckedField& spec) {
  for (const NameCheck& rule : kNames) {
    const CheckedField name = spec[rule.member];
    if (!name.text().empty() || (rule.checked_when_empty && name)) name.require_valid(rule.problems(name.text()));
  }
}

/// A pod with a user namespace of its own shares no other namespace with its node, and has no devices of volumes: a
/// device belongs to users of the node. The paths of two of the members are upstream's.
void check_own_users(const CheckedField& spec) {
  const auto forbid = [&](std::string_view name, std::string_view shown) {
    if (spec[name].is_true()) spec.member(name, shown).forbidden(kNotWithOwnUsers);
  };
  forbid("hostNetwork", "hostNetwork");
  forbid("hostPID", "HostPID");
  forbid("hostIPC", "HostIPC");
  each_container(spec, [](const CheckedField& container) {
    const CheckedField devices = container["volumeDevices"];
    if (!devices.empty()) devices.forbidden(kNotWithOwnUsers);
  });
}

void check_label_and_annotation_keys(const CheckedField& pod_template, const CheckedField& metadata) {
  // Errors are reported at the template, not at its metadata.
  const CheckedField shown_labels = pod_template["labels"];
  validate_labels(metadata["labels"].json(), shown_labels.path(), shown_labels.errors());
  const CheckedField shown_annotations = pod_template["annotations"];
  const CheckedField annotations = metadata["annotations"];
  annotations.each_key([&](std::string_view key, const CheckedField&) {
    for (const std::string& problem : annotation_key_errors(key)) shown_annotations.invalid(key, problem);
  });
}

}  // namespace

void check_pod_spec(const CheckedField& spec, const SpecContext& context) {
  const CheckedField grace = spec["terminationGracePeriodSeconds"];
  if (!grace) grace.required();
  const VolumesByName volumes = check_volumes(spec["volumes"], context.pod_name);
  const CheckedField restarts = spec["restartPolicy"];
  const CheckedField shares_users = spec["hostUsers"];
  const bool own_users = shares_users && !shares_users.is_true();
  check_containers(spec, {.volumes = volumes,
                          .grace_seconds = grace.integer().value_or(0),
                          .host_users = own_users ? HostUsers::kOwn : HostUsers::kShared,
                          .restart_policy = restarts.text()});
  check_whole_pod_resources(spec);
  if (own_users) check_own_users(spec);
  if (spec["hostNetwork"].is_true()) check_host_network_ports(spec, context.use);
  if (restarts.require_text()) restarts.require_one_of(kRestartPolicies);
  check_dns(spec, context.before);
  const CheckedField selector = spec["nodeSelector"];
  if (selector) validate_labels(selector.json(), selector.path(), selector.errors());
  check_pod_security(spec);
  check_affinity(spec["affinity"], value_of(context.before, "affinity"));
  check_gates(spec);
  check_spread_constraints(spec["topologySpreadConstraints"]);
  check_host_process(spec);
  const CheckedField deadline = spec["activeDeadlineSeconds"];
  if (deadline) deadline.require_between(1, kInt32Max);
  check_names(spec);
  check_hostname_override(spec);
  check_tolerations(spec["tolerations"]);
  check_host_aliases(spec["hostAliases"], elements(context.before, "hostAliases"));
  const CheckedField preemption = spec["preemptionPolicy"];
  preemption.optional_one_of(kPreemptionPolicies);
  check_overhead(spec["overhead"]);
  check_operating_system(spec);
}

void validate_template_metadata(const api::Json& pod_template, std::string_view path, api::FieldErrors& errors) {
  const CheckedField root(&pod_template, path, errors);
  const CheckedField metadata = root["metadata"];
  check_label_and_annotation_keys(root, metadata);
  const CheckedField annotations = metadata["annotations"];
  const std::string shown = std::string(path) + ".annotations";
  check_pod_annotations(CheckedField(&annotations.json(), shown, errors), root["spec"]);
}

void validate_pod_template(const api::Json& pod_template, std::string_view path, api::FieldErrors& errors,
                           const api::Json& before) {
  validate_template_metadata(pod_template, path, errors);
  const CheckedField root(&pod_template, path, errors);
  const CheckedField spec = root["spec"];
  const CheckedField metadata = root["metadata"];
  const CheckedField annotations = metadata["annotations"];
  check_pod_spec(spec, {.use = SpecUse::kTemplate, .pod_name = {}, .before = value_of(before, "spec")});
  check_seccomp_agreement(annotations.json(), spec);
  const CheckedField debugging = spec["ephemeralContainers"];
  if (!debugging.empty()) debugging.forbidden("ephemeral containers not allowed in pod template");
}

void validate_overhead(const api::Json& amounts, std::string_view path, api::FieldErrors& errors) {
  check_overhead(CheckedField(&amounts, path, errors));
}

void validate_tolerations(const api::Json& tolerations, std::string_view path, api::FieldErrors& errors) {
  check_tolerations(CheckedField(&tolerations, path, errors));
}

}  // namespace spillway::apiserver::kinds
