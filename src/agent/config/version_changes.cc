#include "agent/config/version_changes.h"

#include "api/text/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr auto kMemberRow = ChangeSubject::kMember;
constexpr auto kGateRow = ChangeSubject::kGate;
constexpr auto kFlagRow = ChangeSubject::kFlag;
constexpr auto kRefuses = LintSeverity::kInvalid;
constexpr auto kNotice = LintSeverity::kWarning;

bool is_named(const Json* given, const Json& /*config*/) {
  return given != nullptr;
}

bool is_left_out(const Json* given, const Json& /*config*/) {
  return given == nullptr;
}

bool is_turned_on(const Json* given, const Json& /*config*/) {
  return given != nullptr && given->if_bool().value_or(false);
}

bool is_turned_off(const Json* given, const Json& /*config*/) {
  return given != nullptr && !given->if_bool().value_or(true);
}

bool is_text(const Json* given, std::string_view text) {
  return given != nullptr && given->is_string() && *given->if_string() == text;
}

std::optional<Duration> duration_in(const Json* given) {
  if (given == nullptr || !given->is_string()) return std::nullopt;
  const auto parsed = api::parse_duration(*given->if_string());
  return parsed ? std::optional(*parsed) : std::nullopt;
}

bool is_on_unless_named(const Json& config, std::string_view gate) {
  const Json* given = config.at({"featureGates", gate});
  return given == nullptr || given->if_bool().value_or(true);
}

bool is_negative_age(const Json* given, const Json& /*config*/) {
  const auto age = duration_in(given);
  return age && *age < Duration{};
}

bool is_too_few_files(const Json* given, const Json& /*config*/) {
  return given != nullptr && given->if_int64().value_or(5) <= 1;
}

/// Whole blocks of 65,536 user ids, as many as 32 bits can number.
bool is_no_id_range(const Json* given, const Json& /*config*/) {
  constexpr std::int64_t kBlock = 65536;
  constexpr std::int64_t kMost = 4294967295;
  const auto ids = given == nullptr ? std::nullopt : given->if_int64();
  return ids && (*ids < kBlock || *ids % kBlock != 0 || *ids > kMost);
}

bool is_id_range(const Json* given, const Json& config) {
  return given != nullptr && !is_no_id_range(given, config);
}

bool is_static_policy(const Json* given, const Json& config) {
  return is_text(given, "static") && is_on_unless_named(config, "DisableCPUQuotaWithExclusiveCPUs");
}

bool is_manifest_source(const Json* given, const Json& config) {
  return given != nullptr && !is_text(given, "") && is_on_unless_named(config, "PreventStaticPodAPIReferences");
}

bool is_tiered_without_gate(const Json* given, const Json& config) {
  const Json* gate = config.at({"featureGates", "MemoryQoS"});
  return is_text(given, "TieredReservation") && (gate == nullptr || !gate->if_bool().value_or(false));
}

bool is_allowlist_without_policy(const Json* given, const Json& config) {
  return given != nullptr &&
         config.string_at({"imagePullCredentialsVerificationPolicy"}) != "NeverVerifyAllowlistedImages";
}

/// The gate is off, and resizes of whole pods, which need it, are not turned off as well.
bool is_off_under_pod_resize(const Json* given, const Json& config) {
  return is_turned_off(given, config) && is_on_unless_named(config, "InPlacePodLevelResourcesVerticalScaling");
}

// Every text of a default says the old one and the new one.
// clang-format off
constexpr ConfigChange kRows[] = {
    {kMemberRow, "authentication[x509][clientCAFile]", 36, 36, kNotice, is_named,
     "the file is read again when it changes (gate ReloadKubeletClientCAFile); before, only at the start",
     "replace the file by a rename, so that no half of it is read", "N9j"},
    {kMemberRow, "containerLogMaxFiles", 33, 33, kRefuses, is_too_few_files,
     "must be greater than 1", "set 2 or more", "KubeletConfiguration"},
    {kMemberRow, "cpuCFSQuotaPeriod", 36, 36, kNotice, is_named,
     "has an effect without the gate CustomCPUCFSQuotaPeriod, which is on by default now",
     "check that this period is wanted on every node that reads the file", "KubeletConfiguration"},
    {kMemberRow, "cpuManagerPolicy", 33, 33, kNotice, is_static_policy,
     "containers with CPUs of their own have no CPU quota any more",
     "no action is needed; featureGates[DisableCPUQuotaWithExclusiveCPUs]: false keeps the quota", "N57"},
    {kMemberRow, "crashLoopBackOff[maxContainerRestartPeriod]", 35, 35, kNotice, is_named,
     "has an effect without the gate KubeletCrashLoopBackOffMax, which is on by default now; the first wait is at most 10s",
     "check that the value, 1s to 5m, is wanted on every node that reads the file", "KubeletConfiguration"},
    {kMemberRow, "enableSystemLogQuery", 36, 36, kNotice, is_turned_on,
     "has an effect without the gate NodeLogQuery, which is locked to true now",
     "set false if logs of the node must not be readable through the API server", "KubeletConfiguration"},
    {kMemberRow, "failCgroupV1", 35, 35, kNotice, is_left_out,
     "default becomes true (was false): the kubelet does not start on a machine with cgroup v1",
     "move the machine to cgroup v2, or set failCgroupV1: false until then", "N8", "false"},
    {kMemberRow, "imageMinimumGCAge", 36, 36, kRefuses, is_negative_age,
     "must not be negative", "set 0s for the default of 2m, or a positive duration", "KubeletConfiguration"},
    {kMemberRow, "imagePullCredentialsVerificationPolicy", 35, 35, kNotice, is_left_out,
     "default becomes NeverVerifyPreloadedImages: a pod may use an image that another pod's credentials pulled only if its "
     "own credentials allow it",
     "give every pod that uses private images its pull secret, or set NeverVerify for the old behaviour", "N40"},
    {kMemberRow, "imagePullCredentialsVerificationPolicy", 35, 35, kNotice, is_named,
     "has an effect without the gate KubeletEnsureSecretPulledImages, which is on by default now",
     "check that this policy is wanted on every node that reads the file", "N40"},
    {kMemberRow, "memoryReservationPolicy", 36, 36, kRefuses, is_tiered_without_gate,
     "TieredReservation needs the gate MemoryQoS", "set featureGates[MemoryQoS]: true, or None", "KubeletConfiguration"},
    {kMemberRow, "mergeDefaultEvictionSettings", 33, 33, kNotice, is_turned_on,
     "has an effect; an older kubelet ignores the member, and drops the default thresholds that evictionHard does not name",
     "name all thresholds as long as older kubelets read the file", "KubeletConfiguration"},
    {kMemberRow, "nodeLeaseDurationSeconds", 34, 34, kNotice, is_named,
     "is written at every renewal; before, a lease kept the value it was created with",
     "no action is needed; expect the duration of existing leases to change at the upgrade", "N5"},
    {kMemberRow, "nodeStatusReportFrequency", 34, 34, kNotice, is_named,
     "after a change or a start, the next report of an unchanged status comes up to half the period earlier or later",
     "allow for one and a half periods where the age of a status is watched", "N9b"},
    {kMemberRow, "preloadedImagesVerificationAllowlist", 35, 35, kRefuses, is_allowlist_without_policy,
     "is allowed only with imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages",
     "set this policy, or remove the list", "KubeletConfiguration"},
    {kMemberRow, "serverTLSBootstrap", 35, 35, kNotice, is_turned_on,
     "the addresses of a serving certificate come from the Node object, not from the status sent last",
     "no action is needed unless another program writes the addresses of the Node", "N9i"},
    {kMemberRow, "staticPodPath", 34, 34, kNotice, is_manifest_source,
     "static pods that name Secrets, ConfigMaps, service accounts or other objects of the API are refused",
     "remove such references from the manifests; featureGates[PreventStaticPodAPIReferences]: false defers it", "N37"},
    {kMemberRow, "staticPodURL", 34, 34, kNotice, is_manifest_source,
     "static pods that name Secrets, ConfigMaps, service accounts or other objects of the API are refused",
     "remove such references from the manifests; featureGates[PreventStaticPodAPIReferences]: false defers it", "N37"},
    {kMemberRow, "streamingConnectionIdleTimeout", 34, 34, kNotice, is_named,
     "has no effect any more", "remove it, and bound idle streams at the load balancer or in the client",
     "KubeletConfiguration"},
    {kMemberRow, "tlsCurvePreferences", 36, 36, kNotice, is_named,
     "has an effect; an older kubelet ignores the member", "check that clients of the kubelet know these curves",
     "KubeletConfiguration"},
    {kMemberRow, "userNamespaces[idsPerPod]", 33, 33, kNotice, is_id_range,
     "has an effect; an older kubelet ignores the member", "check the ranges of /etc/subuid and /etc/subgid",
     "KubeletConfiguration"},
    {kMemberRow, "userNamespaces[idsPerPod]", 33, 33, kRefuses, is_no_id_range,
     "must be a multiple of 65536 and no more than 4294967295", "set 65536 or a multiple of it", "KubeletConfiguration"},

    // Gates that are off in 1.32, and on or off without being named now.
    {kGateRow, "ChangeContainerStatusOnKubeletRestart", 35, 35, kNotice, is_left_out,
     "after a restart of the kubelet, containers stay started and ready (the old behaviour is a gate, off by default)",
     "no action is needed; set true for the old behaviour", "N28"},
    {kGateRow, "ComponentFlagz", 36, 36, kNotice, is_left_out,
     "is on by default: the kubelet serves its flags at /flagz", "check who may get /flagz; set false to turn it off", "N61"},
    {kGateRow, "ComponentStatusz", 36, 36, kNotice, is_left_out,
     "is on by default: the kubelet serves its version and start time at /statusz",
     "check who may get /statusz; set false to turn it off", "N61"},
    {kGateRow, "ContainerRestartRules", 35, 35, kNotice, is_left_out,
     "is on by default: containers may have restart policies and rules of their own", "no action is needed", "N50"},
    {kGateRow, "DisableNodeKubeProxyVersion", 33, 33, kNotice, is_left_out,
     "is on by default: status.nodeInfo.kubeProxyVersion of the Node is empty",
     "read the version of kube-proxy from its pods", "N9g"},
    {kGateRow, "DynamicResourceAllocation", 34, 34, kNotice, is_left_out,
     "is on by default: the kubelet registers plug-ins of resource drivers", "no action is needed", "gates"},
    {kGateRow, "EnvFiles", 35, 35, kNotice, is_left_out,
     "is on by default: containers may take environment variables from a file", "no action is needed", "N36"},
    {kGateRow, "GitRepoVolumeDriver", 33, 33, kNotice, is_left_out,
     "is off by default, and new: volumes of type gitRepo are refused",
     "clone in an init container; set true for the old behaviour", "gates"},
    {kGateRow, "HostnameOverride", 35, 35, kNotice, is_left_out,
     "is on by default: pods may choose their hostname", "no action is needed", "N33"},
    {kGateRow, "ImageVolume", 35, 35, kNotice, is_left_out,
     "is on by default: pods may mount images as volumes", "check that the container runtime can mount images", "N41"},
    {kGateRow, "InPlacePodVerticalScaling", 33, 33, kNotice, is_left_out,
     "is on by default: requests and limits of running containers change without a restart",
     "no action is needed; grant pods/resize only to users who may change resources", "resize"},
    {kGateRow, "InPlacePodLevelResourcesVerticalScaling", 36, 36, kNotice, is_left_out,
     "is on by default: resources of whole pods change without a restart", "no action is needed", "resize"},
    {kGateRow, "InPlacePodVerticalScalingInitContainers", 36, 36, kNotice, is_left_out,
     "is on by default: resources of init containers change without a restart", "no action is needed", "resize"},
    {kGateRow, "KubeletFineGrainedAuthz", 33, 33, kNotice, is_left_out,
     "is on by default: /configz, /healthz and /pods also ask for nodes/configz, nodes/healthz and nodes/pods; nodes/proxy "
     "is enough as before",
     "no action is needed; narrower roles may take the place of nodes/proxy", "N60"},
    {kGateRow, "KubeletPSI", 34, 34, kNotice, is_left_out,
     "is on by default: summaries and /metrics/cadvisor have pressure figures where the kernel measures them",
     "expect more series; from 1.36 the gate is locked", "N10"},
    {kGateRow, "KubeletServiceAccountTokenForCredentialProviders", 34, 34, kNotice, is_left_out,
     "is on by default: credential plug-ins may get tokens of service accounts", "no action is needed", "N42"},
    {kGateRow, "NodeDeclaredFeatures", 36, 36, kNotice, is_left_out,
     "is on by default: the Node lists its features, and pods that need another are refused", "no action is needed", "N9a"},
    {kGateRow, "PodLevelResources", 34, 34, kNotice, is_left_out,
     "is on by default: pods may have requests and limits as a whole, which decide their QoS class", "no action is needed", "pod level"},
    {kGateRow, "PodObservedGenerationTracking", 34, 34, kNotice, is_left_out,
     "is on by default: statuses of pods have observedGeneration", "no action is needed", "N22"},
    {kGateRow, "ProcMountType", 33, 33, kNotice, is_left_out,
     "is on by default: pods with user namespaces may have an unmasked /proc",
     "let Pod Security decide who may use it", "N55"},
    {kGateRow, "ResourceHealthStatus", 36, 36, kNotice, is_left_out,
     "is on by default: statuses of containers have the health of their devices", "no action is needed", "gates"},
    {kGateRow, "RestartAllContainersOnContainerExits", 36, 36, kNotice, is_left_out,
     "is on by default: the exit of one container may restart all containers of its pod", "no action is needed", "N51"},
    {kGateRow, "SupplementalGroupsPolicy", 33, 33, kNotice, is_left_out,
     "is on by default: pods with the policy Strict are refused where the container runtime cannot keep it",
     "check that the container runtime supports the policy", "N6a"},
    {kGateRow, "UserNamespacesSupport", 33, 33, kNotice, is_left_out,
     "is on by default: pods with hostUsers: false get user namespaces",
     "check the ranges of /etc/subuid and /etc/subgid", "N54"},

    // Gates that need one another: the set is validated since 1.35.
    {kGateRow, "InPlacePodVerticalScaling", 36, 36, kRefuses, is_off_under_pod_resize,
     "is off, and InPlacePodLevelResourcesVerticalScaling, on by default now, needs it", "remove it from the file", "gates"},
    {kGateRow, "NodeDeclaredFeatures", 36, 36, kRefuses, is_off_under_pod_resize,
     "is off, and InPlacePodLevelResourcesVerticalScaling, on by default now, needs it",
     "remove it, or turn InPlacePodLevelResourcesVerticalScaling off as well", "gates"},
    {kGateRow, "PodLevelResources", 36, 36, kRefuses, is_off_under_pod_resize,
     "is off, and InPlacePodLevelResourcesVerticalScaling, on by default now, needs it",
     "remove it, or turn InPlacePodLevelResourcesVerticalScaling off as well", "gates"},

    {kGateRow, "AllowOverwriteTerminationGracePeriodSeconds", 35, 35, kRefuses, is_turned_on,
     "is locked to false: a soft eviction never waits longer than the pod's own grace period", "remove it from the file", "N1"},

    {kFlagRow, "--cloud-config", 34, 34, kRefuses, is_named,
     "is removed, with all cloud code of the kubelet", "remove it, and run the cloud provider's controller manager", "N9d"},
    {kFlagRow, "--pod-infra-container-image", 35, 35, kRefuses, is_named,
     "is removed", "remove it, and set the sandbox image of the container runtime", "N9d"},
    {kFlagRow, "--register-schedulable", 34, 34, kRefuses, is_named,
     "is removed", "remove it, and use registerWithTaints", "N9c"},
};
// clang-format on

struct LockedGate {
  std::string_view name;
  int since = 33;
};

// Gates that are on in both versions and cannot be turned off any more.
constexpr LockedGate kLockedGates[] = {
    {"APIServerTracing", 34},
    {"AnonymousAuthConfigurableEndpoints", 34},
    {"AnyVolumeDataSource", 33},
    {"AuthorizeNodeWithSelectors", 34},
    {"AuthorizeWithSelectors", 34},
    {"BtreeWatchCache", 33},
    {"CPUManagerPolicyOptions", 33},
    {"CRDValidationRatcheting", 33},
    {"ConsistentListFromCache", 34},
    {"DisableNodeKubeProxyVersion", 36},
    {"DynamicResourceAllocation", 35},
    {"ExecProbeTimeout", 35},
    {"ImageMaximumGCAge", 35},
    {"JobBackoffLimitPerIndex", 33},
    {"JobManagedBy", 35},
    {"JobPodReplacementPolicy", 34},
    {"JobSuccessPolicy", 33},
    {"KubeletPSI", 36},
    {"KubeletTracing", 34},
    {"MatchLabelKeysInPodAffinity", 33},
    {"NFTablesProxyMode", 33},
    {"NodeInclusionPolicyInPodTopologySpread", 33},
    {"NodeLogQuery", 36},
    {"NodeSwap", 34},
    {"PodLifecycleSleepAction", 34},
    {"PodObservedGenerationTracking", 35},
    {"RecoverVolumeExpansionFailure", 34},
    {"RecursiveReadOnlyMounts", 33},
    {"RelaxedEnvironmentVariableValidation", 34},
    {"ResilientWatchCacheInitialization", 34},
    {"SELinuxMountReadWriteOncePod", 36},
    {"SchedulerQueueingHints", 34},
    {"SeparateTaintEvictionController", 34},
    {"ServiceAccountTokenNodeBinding", 33},
    {"SidecarContainers", 33},
    {"StructuredAuthenticationConfiguration", 34},
    {"SystemdWatchdog", 35},
};

// Gates that a kubelet 1.32 has and 1.36 has not; the page does not say with which version each one went.
constexpr std::string_view kGoneGates[] = {
    "APIListChunking",
    "AdmissionWebhookMatchConditions",
    "AggregatedDiscoveryEndpoint",
    "AllowServiceLBStatusOnNonLB",
    "AppArmor",
    "AppArmorFields",
    "CPUCFSQuotaPeriod",
    "CPUManager",
    "CSIMigrationPortworx",
    "CronJobsScheduledAnnotation",
    "DevicePluginCDIDevices",
    "DisableCloudProviders",
    "DisableKubeletCloudCredentialProviders",
    "EfficientWatchResumption",
    "ElasticIndexedJob",
    "HonorPVReclaimPolicy",
    "InPlacePodVerticalScalingAllocatedStatus",
    "InTreePluginPortworxUnregister",
    "JobPodFailurePolicy",
    "KubeProxyDrainingTerminatingNodes",
    "LoadBalancerIPMode",
    "MemoryManager",
    "PDBUnhealthyPodEvictionPolicy",
    "PersistentVolumeLastPhaseTransitionTime",
    "PodDisruptionConditions",
    "PodIndexLabel",
    "RemainingItemCount",
    "RuntimeClassInImageCriAPI",
    "ServiceTrafficDistribution",
    "SizeMemoryBackedVolumes",
    "StatefulSetAutoDeletePVC",
    "StatefulSetStartOrdinal",
    "StrictCostEnforcementForVAP",
    "StrictCostEnforcementForWebhooks",
    "StructuredAuthorizationConfiguration",
    "TopologyAwareHints",
    "UserNamespacesPodSecurityStandards",
    "VolumeCapacityPriority",
    "WatchBookmark",
    "WatchFromStorageWithoutResourceVersion",
};

std::vector<ConfigChange> all_changes() {
  std::vector<ConfigChange> rows(std::begin(kRows), std::end(kRows));
  for (const LockedGate& each : kLockedGates) {
    rows.push_back({kGateRow, each.name, each.since, each.since, kRefuses, is_turned_off,
                    "is locked to true, and cannot be turned off", "remove it from the file", "gates B"});
  }
  for (const std::string_view name : kGoneGates) {
    rows.push_back({kGateRow, name, 33, 36, kRefuses, is_named, "is removed: a gate without this name is an error",
                    "remove it from the file", "gates D"});
  }
  std::ranges::stable_sort(rows, {}, &ConfigChange::subject);
  return rows;
}

/// "evictionHard[memory.available]" as the keys of its path.
std::vector<std::string_view> keys_of(std::string_view path) {
  std::vector<std::string_view> keys{path.substr(0, path.find('['))};
  for (std::size_t at = path.find('['); at != std::string_view::npos; at = path.find('[', at + 1))
    keys.push_back(path.substr(at + 1, path.find(']', at) - at - 1));
  return keys;
}

const Json* value_below(const Json& config, std::string_view path) {
  const Json* value = &config;
  for (const std::string_view key : keys_of(path)) {
    value = value->find(key);
    if (value == nullptr) return nullptr;
  }
  return value->is_null() ? nullptr : value;
}

bool lies_in(const ConfigChange& row, MinorRange range) {
  return row.since <= range.to && row.until > range.from;
}

ChangeFinding finding_of(const ConfigChange& row, const std::string& file, int line) {
  return {.severity = row.severity,
          .subject = row.subject,
          .file = file,
          .line = line,
          .path = row.subject == kGateRow ? fmt::format("featureGates[{}]", row.name) : std::string(row.name),
          .since = row.since == row.until ? fmt::format("1.{}", row.since)
                                          : fmt::format("1.{} to 1.{}", row.since, row.until),
          .what = std::string(row.what),
          .remedy = std::string(row.remedy),
          .source = std::string(row.source)};
}

std::vector<ChangeFinding> worst_first(std::vector<ChangeFinding> findings) {
  std::ranges::stable_sort(findings, [](const ChangeFinding& a, const ChangeFinding& b) {
    return std::tie(a.severity, a.since, a.line, a.path) < std::tie(b.severity, b.since, b.line, b.path);
  });
  return findings;
}

/// The words of a file of flags, with the line of each.
std::vector<std::pair<std::string, int>> words_of(std::string_view text) {
  std::vector<std::pair<std::string, int>> words;
  int line = 1;
  bool in_word = false;
  bool in_comment = false;
  for (const char each : text) {
    if (each == '\n') {
      ++line;
      in_comment = false;
    }
    if (each == '#' && !in_word) in_comment = true;
    const bool parts = in_comment || each == ' ' || each == '\t' || each == '\r' || each == '\n' || each == '"' ||
                       each == '\'' || each == '\\';
    if (parts) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back(std::string(), line);
    in_word = true;
    words.back().first += each;
  }
  return words;
}

/// "A=true,B=false" as a mapping of gates. Other words are left out.
Json gates_in(std::string_view text) {
  Json gates = Json::object();
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    gates[entry.substr(0, equals)] = entry.substr(equals + 1) == "true";
  }
  return gates;
}

}  // namespace

std::span<const ConfigChange> config_changes() {
  static const std::vector<ConfigChange> kChanges = all_changes();
  return kChanges;
}

KubeletFlags parse_kubelet_flags(std::string file, std::string_view text) {
  KubeletFlags found{.file = std::move(file), .flags = {}};
  bool awaits_value = false;
  for (const auto& [word, line] : words_of(text)) {
    // An env file has the first flag directly behind the name of its variable: KUBELET_EXTRA_ARGS=--v=2.
    const std::size_t dashes = word.starts_with("--") ? 0 : word.find("=--");
    if (dashes == std::string::npos) {
      // A word that ends with '=' names the variable in front of a quoted text.
      if (awaits_value && !word.ends_with('=')) found.flags.back().value = word;
      awaits_value = false;
      continue;
    }
    const std::string flag = word.substr(dashes == 0 ? 0 : dashes + 1);
    const std::size_t equals = flag.find('=');
    awaits_value = equals == std::string::npos;
    found.flags.push_back({.name = flag.substr(0, equals),
                           .value = awaits_value ? std::string() : flag.substr(equals + 1),
                           .line = line});
  }
  return found;
}

std::vector<ChangeFinding> changes_of_config(const ConfigDocument& document, MinorRange range) {
  const ConfigFile file = as_config_file(document);
  const Json& config = file.document.value;
  std::vector<ChangeFinding> findings;
  for (const ConfigChange& row : config_changes()) {
    if (row.subject == kFlagRow || !lies_in(row, range)) continue;
    const std::string path =
        row.subject == kGateRow ? fmt::format("featureGates[{}]", row.name) : std::string(row.name);
    const Json* given = value_below(config, path);
    const bool is_default_of_answer =
        !file.has_header && given != nullptr && !row.old_default.empty() && api::to_text(*given) == row.old_default;
    if (!row.concerns(is_default_of_answer ? nullptr : given, config)) continue;
    findings.push_back(finding_of(row, document.file, given == nullptr ? 0 : file.document.origin_of(path).line));
  }
  return worst_first(std::move(findings));
}

std::vector<ChangeFinding> changes_of_flags(const KubeletFlags& flags, MinorRange range) {
  std::vector<ChangeFinding> findings;
  for (const KubeletFlags::Flag& flag : flags.flags) {
    const bool has_gates = flag.name == "--feature-gates";
    const Json config = has_gates ? Json::object({{"featureGates", gates_in(flag.value)}}) : Json::object();
    const Json named = flag.value;
    for (const ConfigChange& row : config_changes()) {
      if (!lies_in(row, range)) continue;
      const Json* given = nullptr;
      if (row.subject == kFlagRow && row.name == flag.name) given = &named;
      if (row.subject == kGateRow && has_gates) given = config.at({"featureGates", row.name});
      if (given == nullptr || !row.concerns(given, config)) continue;
      findings.push_back(finding_of(row, flags.file, flag.line));
      if (row.subject == kGateRow) findings.back().path = fmt::format("--feature-gates {}", row.name);
    }
  }
  return worst_first(std::move(findings));
}

std::string_view to_string(ChangeSubject subject) {
  switch (subject) {
    case ChangeSubject::kMember:
      return "member";
    case ChangeSubject::kGate:
      return "gate";
    case ChangeSubject::kFlag:
      return "flag";
  }
  return "";
}

}  // namespace spillway::agent
