#include "api/codec/codec.h"
#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"

namespace spillway::api {
namespace {

constexpr std::string_view kEmptyDir = "emptyDir";

/// The first member that is set and not the name: the kind of a volume.
std::string source_of(const Json::Object& volume) {
  for (const auto& [key, value] : volume) {
    if (key != "name" && !value.is_null()) return key;
  }
  return {};
}

}  // namespace

template <typename V>
void describe(V& v, Is<ResourceRequirements> auto& resources) {
  v.field("limits", resources.limits);
  v.field("requests", resources.requests);
}

template <typename V>
void describe(V& v, Is<KeySelector> auto& selector) {
  v.field("name", selector.name);
  v.kept("key", selector.key);
  v.field("optional", selector.optional);
}

template <typename V>
void describe(V& v, Is<PodFieldSelector> auto& selector) {
  v.field("apiVersion", selector.api_version);
  v.kept("fieldPath", selector.field_path);
}

template <typename V>
void describe(V& v, Is<ResourceFieldSelector> auto& selector) {
  v.field("containerName", selector.container_name);
  v.kept("resource", selector.resource);
  v.field("divisor", selector.divisor);
}

template <typename V>
void describe(V& v, Is<FileKeySelector> auto& selector) {
  v.kept("volumeName", selector.volume_name);
  v.kept("path", selector.path);
  v.kept("key", selector.key);
  v.field("optional", selector.optional);
}

template <typename V>
void describe(V& v, Is<EnvVar> auto& variable) {
  v.kept("name", variable.name);
  v.field("value", variable.value);
  v.nested("valueFrom", [&](V& from) {
    from.object("fieldRef", variable.field);
    from.object("resourceFieldRef", variable.resource_field);
    from.object("configMapKeyRef", variable.config_map_key);
    from.object("secretKeyRef", variable.secret_key);
    from.object("fileKeyRef", variable.file_key);
  });
}

template <typename V>
void describe(V& v, Is<EnvFromSource> auto& source) {
  v.field("prefix", source.prefix);
  v.nested("configMapRef", [&](V& reference) {
    reference.field("name", source.config_map);
    reference.field("optional", source.config_map_optional);
  });
  v.nested("secretRef", [&](V& reference) {
    reference.field("name", source.secret);
    reference.field("optional", source.secret_optional);
  });
}

template <typename V>
void describe(V& v, Is<ContainerPort> auto& port) {
  v.field("name", port.name);
  v.kept("containerPort", port.container_port);
  v.field("hostPort", port.host_port);
  v.field("hostIP", port.host_ip);
  v.field("protocol", port.protocol);
}

template <typename V>
void describe(V& v, Is<AppArmorProfile> auto& profile) {
  v.kept("type", profile.type);
  v.field("localhostProfile", profile.localhost_profile);
}

template <typename V>
void describe(V& v, Is<SeccompProfile> auto& profile) {
  v.kept("type", profile.type);
  v.field("localhostProfile", profile.localhost_profile);
}

template <typename V>
void describe(V& v, Is<SecurityContext> auto& context) {
  v.field("privileged", context.privileged);
  v.field("runAsUser", context.run_as_user);
  v.field("runAsGroup", context.run_as_group);
  v.field("runAsNonRoot", context.run_as_non_root);
  v.field("readOnlyRootFilesystem", context.read_only_root_filesystem);
  v.nested("capabilities", [&](V& capabilities) {
    capabilities.field("add", context.capabilities_add);
    capabilities.field("drop", context.capabilities_drop);
  });
  v.object("seccompProfile", context.seccomp);
  v.field("allowPrivilegeEscalation", context.allow_privilege_escalation);
  v.field("procMount", context.proc_mount);
  v.field("seLinuxOptions", context.selinux);
}

template <typename V>
void describe(V& v, Is<PodSecurityContext> auto& context) {
  v.field("runAsUser", context.run_as_user);
  v.field("runAsGroup", context.run_as_group);
  v.field("runAsNonRoot", context.run_as_non_root);
  v.field("supplementalGroups", context.supplemental_groups);
  v.field("fsGroup", context.fs_group);
  v.object("seccompProfile", context.seccomp);
  v.field("supplementalGroupsPolicy", context.supplemental_groups_policy);
  v.field("seLinuxOptions", context.selinux);
}

template <typename V>
void describe(V& v, Is<VolumeMount> auto& mount) {
  v.kept("name", mount.name);
  v.kept("mountPath", mount.mount_path);
  v.field("readOnly", mount.read_only);
  v.field("recursiveReadOnly", mount.recursive_read_only);
  v.field("subPath", mount.sub_path);
  v.field("subPathExpr", mount.sub_path_expr);
  v.field("mountPropagation", mount.mount_propagation);
}

template <typename V>
void describe(V& v, Is<Sysctl> auto& sysctl) {
  v.kept("name", sysctl.name);
  v.kept("value", sysctl.value);
}

template <typename V>
void describe(V& v, Is<PodOs> auto& os) {
  v.field("name", os.name);
}

template <typename V>
void describe(V& v, Is<SecretReference> auto& reference) {
  v.field("name", reference.name);
}

template <typename V>
void describe(V& v, Is<ExitCodeRequirement> auto& requirement) {
  v.kept("operator", requirement.op);
  v.field("values", requirement.values);
}

template <typename V>
void describe(V& v, Is<RestartRule> auto& rule) {
  v.kept("action", rule.action);
  v.object("exitCodes", rule.exit_codes);
}

template <typename V>
void describe(V& v, Is<Container> auto& container) {
  v.kept("name", container.name);
  v.field("image", container.image);
  v.field("imagePullPolicy", container.image_pull_policy);
  v.field("command", container.command);
  v.field("args", container.args);
  v.field("workingDir", container.working_dir);
  v.list("env", container.env, "name", &EnvVar::name);
  v.list("envFrom", container.env_from);
  v.list("ports", container.ports);
  v.object("resources", container.resources);
  v.field("restartPolicy", container.restart_policy);
  v.list("restartPolicyRules", container.restart_rules);
  v.nested("securityContext", [&](V& context) {
    context.object("appArmorProfile", container.app_armor);
    describe(context, container.security);
  });
  v.list("volumeMounts", container.volume_mounts, "mountPath", &VolumeMount::mount_path);
  v.field("livenessProbe", container.liveness_probe);
  v.field("readinessProbe", container.readiness_probe);
  v.field("startupProbe", container.startup_probe);
  v.field("lifecycle", container.lifecycle);
  v.field("terminationMessagePath", container.termination_message_path);
  v.field("terminationMessagePolicy", container.termination_message_policy);
  v.field("stdin", container.standard_input);
  v.field("stdinOnce", container.standard_input_once);
  v.field("tty", container.tty);
  v.field("targetContainerName", container.target_container_name);
}

template <typename V>
void describe(V& v, Is<EmptyDirVolume> auto& volume) {
  v.field("medium", volume.medium);
  v.field("sizeLimit", volume.size_limit);
}

template <typename V>
void describe(V& v, Is<Volume> auto& volume) {
  v.kept("name", volume.name);
  if constexpr (V::kReads) {
    volume.source = source_of(v.here());
    const Json* definition = v.here().find(volume.source);
    if (definition != nullptr && volume.source != kEmptyDir) volume.definition = *definition;  // an emptyDir is a value
    if (volume.source == kEmptyDir) v.object(kEmptyDir, volume.empty_dir);
  } else {
    for (std::string old = source_of(v.here()); !old.empty() && old != volume.source; old = source_of(v.here())) {
      v.drop(old);
    }
    if (volume.empty_dir) {
      v.object(kEmptyDir, volume.empty_dir);
    } else if (!volume.source.empty() && source_of(v.here()).empty()) {
      v.here()[volume.source] = volume.definition.is_null() ? Json::object() : volume.definition;
    }
  }
}

template <typename V>
void describe(V& v, Is<PodSpec> auto& spec) {
  v.field("nodeName", spec.node_name);
  v.field("nodeSelector", spec.node_selector);
  v.field("affinity", spec.affinity);
  v.list("tolerations", spec.tolerations);
  v.list("initContainers", spec.init_containers, "name", &Container::name);
  v.list("containers", spec.containers, "name", &Container::name);
  v.list("ephemeralContainers", spec.ephemeral_containers, "name", &Container::name);
  v.list("volumes", spec.volumes, "name", &Volume::name);
  v.field("restartPolicy", spec.restart_policy);
  v.field("terminationGracePeriodSeconds", spec.termination_grace_period_seconds);
  v.field("activeDeadlineSeconds", spec.active_deadline_seconds);
  v.field("priority", spec.priority);
  v.field("priorityClassName", spec.priority_class_name);
  v.field("preemptionPolicy", spec.preemption_policy);
  v.field("schedulerName", spec.scheduler_name);
  v.field("serviceAccountName", spec.service_account_name);
  v.list("imagePullSecrets", spec.image_pull_secrets, "name", &SecretReference::name);
  v.field("runtimeClassName", spec.runtime_class_name);
  v.field("hostUsers", spec.host_users);
  v.field("hostNetwork", spec.host_network);
  v.field("hostIPC", spec.host_ipc);
  v.field("hostPID", spec.host_pid);
  v.field("shareProcessNamespace", spec.share_process_namespace);
  v.field("hostname", spec.hostname);
  v.field("hostnameOverride", spec.hostname_override);
  v.field("subdomain", spec.subdomain);
  v.field("setHostnameAsFQDN", spec.set_hostname_as_fqdn);
  v.field("dnsPolicy", spec.dns_policy);
  v.field("dnsConfig", spec.dns_config);
  v.field("hostAliases", spec.host_aliases);
  v.field("enableServiceLinks", spec.enable_service_links);
  v.field("readinessGates", spec.readiness_gates);
  v.field("topologySpreadConstraints", spec.topology_spread);
  v.field("schedulingGates", spec.scheduling_gates);
  v.object("os", spec.os);
  if constexpr (V::kReads) {
    const Json* context = v.here().find("securityContext");
    spec.security.given = context != nullptr && !context->is_null();
  }
  v.nested("securityContext", [&](V& context) {
    context.list("sysctls", spec.sysctls, "name", &Sysctl::name);
    context.object("appArmorProfile", spec.app_armor);
    describe(context, spec.security);
  });
  v.field("overhead", spec.overhead);
  v.object("resources", spec.resources);
}

template <typename V>
void describe(V& v, Is<PodCondition> auto& condition) {
  v.kept("type", condition.type);
  v.field("observedGeneration", condition.observed_generation);
  v.kept("status", condition.status);
  v.field("reason", condition.reason);
  v.field("message", condition.message);
  v.field("lastProbeTime", condition.last_probe_time);
  v.field("lastTransitionTime", condition.last_transition_time);
}

template <typename V>
void describe(V& v, Is<ContainerState::Waiting> auto& waiting) {
  v.field("reason", waiting.reason);
  v.field("message", waiting.message);
}

template <typename V>
void describe(V& v, Is<ContainerState::Running> auto& running) {
  v.field("startedAt", running.started_at);
}

template <typename V>
void describe(V& v, Is<ContainerState::Terminated> auto& terminated) {
  v.kept("exitCode", terminated.exit_code);
  v.field("signal", terminated.signal);
  v.field("reason", terminated.reason);
  v.field("message", terminated.message);
  v.field("startedAt", terminated.started_at);
  v.field("finishedAt", terminated.finished_at);
  v.field("containerID", terminated.container_id);
}

template <typename V>
void describe(V& v, Is<ContainerState> auto& state) {
  v.object("waiting", state.waiting);
  v.object("running", state.running);
  v.object("terminated", state.terminated);
}

template <typename V>
void describe(V& v, Is<ContainerStatus> auto& status) {
  v.kept("name", status.name);
  v.object("state", status.state);
  v.object("lastState", status.last_state);
  v.kept("ready", status.ready);
  v.field("started", status.started);
  v.kept("restartCount", status.restart_count);
  v.kept("image", status.image);
  v.kept("imageID", status.image_id);
  v.field("containerID", status.container_id);
  v.object("resources", status.resources);
  v.field("allocatedResources", status.allocated_resources);
  v.field("volumeMounts", status.volume_mounts);
}

template <typename V>
void describe(V& v, Is<PodStatus> auto& status) {
  v.field("observedGeneration", status.observed_generation);
  v.field("phase", status.phase);
  v.field("reason", status.reason);
  v.field("message", status.message);
  v.field("hostIP", status.host_ip);
  v.first_of("hostIPs", "ip", status.host_ip);
  v.field("podIP", status.pod_ip);
  v.first_of("podIPs", "ip", status.pod_ip);
  if constexpr (V::kReads) v.rest_of("podIPs", "ip", status.further_ips);
  v.field("qosClass", status.qos_class);
  v.field("nominatedNodeName", status.nominated_node_name);
  v.field("resize", status.resize);
  v.object("resources", status.resources);
  v.field("allocatedResources", status.allocated_resources);
  v.field("startTime", status.start_time);
  v.list("conditions", status.conditions, "type", &PodCondition::type);
  v.list("initContainerStatuses", status.init_container_statuses, "name", &ContainerStatus::name);
  v.list("containerStatuses", status.container_statuses, "name", &ContainerStatus::name);
  v.list("ephemeralContainerStatuses", status.ephemeral_container_statuses, "name", &ContainerStatus::name);
}

template <typename V>
void describe(V& v, Is<Pod> auto& pod) {
  v.type_meta(Pod::kApiVersion, Pod::kKind);
  v.object("metadata", pod.metadata);
  v.object("spec", pod.spec);
  v.object("status", pod.status);
}

template struct Codec<Pod>;
template struct Codec<PodSpec>;
template struct Codec<PodStatus>;

}  // namespace spillway::api
