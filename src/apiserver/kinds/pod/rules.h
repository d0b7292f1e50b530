// The rules of a pod spec, one family per file. Within the room, and kinds/volumes, which shares the rules of sources;
// pod.h is what others use.
// Every function adds what is wrong with the field it is given. Thread: any (pure).
// Source: Kubernetes API reference, "Pod"; vectors api/validation_create_pod.
#pragma once

#include "apiserver/kinds/fields/checked_field.h"

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway::apiserver::kinds {

inline constexpr std::string_view kAppArmorAnnotationPrefix = "container.apparmor.security.beta.kubernetes.io/";
inline constexpr std::string_view kSeccompPodAnnotation = "seccomp.security.alpha.kubernetes.io/pod";
inline constexpr std::string_view kSeccompContainerAnnotationPrefix = "container.seccomp.security.alpha.kubernetes.io/";

/// A pod, or the template of pods: a template need not be complete yet.
enum class SpecUse { kPod, kTemplate };

/// The user namespace of a pod: that of its node, or one of its own (hostUsers false).
enum class HostUsers { kShared, kOwn };

/// check(container, member of `spec` that contains it, index) for every container of every kind.
template <typename Check>
void each_container(const CheckedField& spec, Check check) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const CheckedField containers = spec[list];
    containers.each(check);
  }
}

/// The use of a pod spec, and the spec that it replaces.
struct SpecContext {
  SpecUse use = SpecUse::kPod;
  std::string_view pod_name;  // name of the pod; empty if it has none yet
  const api::Json& before;    // the spec before an update, which may hold values that are refused today; null: new
};

// spec.cc
void check_pod_spec(const CheckedField& spec, const SpecContext& context);

// pod_validation.cc
/// Metadata and spec of a pod. `before`: the spec that an update replaces; null: the pod is new.
void check_whole_pod(const CheckedField& pod, const api::Json& before);

// volumes.cc: the volumes without a fault, by name, for those who mount them.
using VolumesByName = std::map<std::string_view, const api::Json*>;
VolumesByName check_volumes(const CheckedField& volumes, std::string_view pod_name);

// local_volumes.cc
void check_host_path(const CheckedField& source);
void check_git_repo(const CheckedField& source);
void check_secret_volume(const CheckedField& source);
void check_config_map_volume(const CheckedField& source);
void check_downward_volume(const CheckedField& source);
void check_projected(const CheckedField& source);
void check_image_volume(const CheckedField& source);

// network_volumes.cc, disk_volumes.cc, claim_volumes.cc
void check_nfs(const CheckedField& source);
void check_iscsi(const CheckedField& source);
void check_fibre_channel(const CheckedField& source);
void check_quobyte(const CheckedField& source);
void check_flocker(const CheckedField& source);
void check_flex_volume(const CheckedField& source);
void check_storage_os(const CheckedField& source);
void check_cinder(const CheckedField& source);
void check_azure_disk(const CheckedField& source);
void check_google_disk(const CheckedField& source);
void check_amazon_disk(const CheckedField& source);
void check_csi(const CheckedField& source);
void check_ephemeral_volume(const CheckedField& source);
/// Validates the spec of a claim: access modes, selector, storage, class, mode, data sources.
void check_claim_spec(const CheckedField& spec);

// containers.cc
inline constexpr std::array<std::string_view, 3> kPullPolicies{"Always", "IfNotPresent", "Never"};

struct ContainerContext {
  const VolumesByName& volumes;
  std::int64_t grace_seconds;
  HostUsers host_users;
  std::string_view restart_policy;  // the pod's
};

void check_containers(const CheckedField& spec, const ContainerContext& context);
/// Checks that no blanks surround the name: for pods, not for templates.
void check_image_edges(const CheckedField& image);

// ports.cc
void check_ports(const CheckedField& ports);
/// Ports of the host that two of these containers want: each container by its field.
void check_host_port_clashes(std::span<const CheckedField> containers);
void check_host_network_ports(const CheckedField& spec, SpecUse use);

// environment.cc
/// `volumes`: of the pod; files of some may supply values.
void check_environment(const CheckedField& container, const VolumesByName& volumes);
/// downwardAPI volumes name fields in other ways than environments do.
enum class FieldUse { kEnvironment, kVolume };
void check_field_reference(const CheckedField& reference, FieldUse use);
void check_resource_reference(const CheckedField& reference, FieldUse use);

// mounts.cc
/// restartPolicy and restartPolicyRules of a container or init container.
void check_restart_policy(const CheckedField& container);

void check_mounts(const CheckedField& container, const VolumesByName& volumes);

// resources.cc
void check_resources(const CheckedField& resources);
/// resizePolicy of a container. `restarts`: RestartContainer is possible; if not, why it is refused.
void check_resize_policy(const CheckedField& policies, std::string_view restarts_refused);
/// An overhead is validated as limits are.
/// spec.resources, alone and against the containers.
void check_whole_pod_resources(const CheckedField& spec);
void check_overhead(const CheckedField& overhead);

// probes.cc
void check_probes(const CheckedField& container, std::int64_t grace_seconds);
void check_lifecycle(const CheckedField& lifecycle, std::int64_t grace_seconds);

// security.cc, windows.cc, operating_system.cc
void check_pod_security(const CheckedField& spec);
void check_container_security(const CheckedField& context, HostUsers host_users);
bool is_app_armor_profile(const api::Json& profile);
void check_windows_options(const CheckedField& options);
void check_host_process(const CheckedField& spec);
void check_operating_system(const CheckedField& spec);

// placement.cc, affinity.cc, network.cc
void check_tolerations(const CheckedField& tolerations);
void check_spread_constraints(const CheckedField& constraints);
void check_gates(const CheckedField& spec);
/// `before`: the affinity that an update replaces: if its required terms have impossible values, the new ones may;
/// null: there was none.
void check_affinity(const CheckedField& affinity, const api::Json& before);
/// Values that are no label values, so that no node has them.
enum class ImpossibleValues { kAllowed, kRefused };
/// A v1.NodeSelector: at least one term.
void check_node_selector(const CheckedField& selector, ImpossibleValues impossible);
/// `before`, here and below: the value that an update replaces. Its addresses may stay in the form in which they were
/// written.
void check_dns(const CheckedField& spec, const api::Json& before);
void check_host_aliases(const CheckedField& aliases, const api::Json::Array& before);
/// hostnameOverride, and the members that exclude it.
void check_hostname_override(const CheckedField& spec);

// annotations.cc
/// Annotations of a pod or template that mean something to its spec.
void check_pod_annotations(const CheckedField& annotations, const CheckedField& spec);
/// Seccomp profiles that annotations and fields name differently.
void check_seccomp_agreement(const api::Json& annotations, const CheckedField& spec);
/// Checks AppArmor profiles as seccomp profiles are above.
void check_app_armor_agreement(const api::Json& annotations, const CheckedField& spec);
/// Annotations that an update may neither add, change nor remove.
void check_annotation_changes(const CheckedField& annotations, const api::Json& old);

// resize.cc
/// The changes that the endpoint `resize` may make, and that the pod can be resized at all. False: nothing else of the
/// pod is to be checked.
bool check_resizable(const CheckedField& pod, const api::Json& old);
void check_resize(const CheckedField& pod, const api::Json& old);

// status.cc
void check_status_change(const CheckedField& pod, const api::Json& old);

}  // namespace spillway::apiserver::kinds
