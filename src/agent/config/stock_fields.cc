#include "agent/config/stock_fields.h"

#include <algorithm>
#include <array>

namespace spillway::agent {
namespace {

using enum StockType;
using enum StockZero;

// clang-format off
constexpr auto kAnonymous = std::to_array<StockField>({
    {"enabled", kBool, kKept, R"(false)", "anonymous-auth"},
});
constexpr auto kTokenReviews = std::to_array<StockField>({
    {"cacheTTL", kDuration, kAbsent, R"("2m0s")", "authentication-token-webhook-cache-ttl"},
    {"enabled", kBool, kKept, R"(true)", "authentication-token-webhook"},
});
constexpr auto kCertificates = std::to_array<StockField>({
    {"clientCAFile", kString, kAbsent, "", "client-ca-file"},
});
constexpr auto kAuthentication = std::to_array<StockField>({
    {"anonymous", kObject, kAbsent, "", "", kAnonymous},
    {"webhook", kObject, kAbsent, "", "", kTokenReviews},
    {"x509", kObject, kAbsent, "", "", kCertificates},
});
constexpr auto kAccessReviews = std::to_array<StockField>({
    {"cacheAuthorizedTTL", kDuration, kAbsent, R"("5m0s")", "authorization-webhook-cache-authorized-ttl"},
    {"cacheUnauthorizedTTL", kDuration, kAbsent, R"("30s")", "authorization-webhook-cache-unauthorized-ttl"},
});
constexpr auto kAuthorization = std::to_array<StockField>({
    {"mode", kString, kAbsent, R"("Webhook")", "authorization-mode"},
    {"webhook", kObject, kAbsent, "", "", kAccessReviews},
});
constexpr auto kLogBuffer = std::to_array<StockField>({
    {"infoBufferSize", kString, kKept, R"("0")", ""},
    {"splitStream", kBool, kAbsent, "", ""},
});
constexpr auto kLogOptions = std::to_array<StockField>({
    {"json", kObject, kAbsent, "", "", kLogBuffer},
    {"text", kObject, kAbsent, "", "", kLogBuffer},
});
constexpr auto kLogging = std::to_array<StockField>({
    {"flushFrequency", kDuration, kAbsent, R"("5s")", "log-flush-frequency"},
    {"format", kString, kAbsent, R"("text")", "logging-format"},
    {"options", kObject, kAbsent, "", "", kLogOptions},
    {"verbosity", kInt, kKept, R"(0)", "v"},
    {"vmodule", kObjects, kAbsent, "", ""},
});
constexpr auto kMemorySwap = std::to_array<StockField>({
    {"swapBehavior", kString, kAbsent, "", ""},
});
constexpr auto kCrashLoop = std::to_array<StockField>({
    {"maxContainerRestartPeriod", kDuration, kKept, "", ""},
});
constexpr auto kTracing = std::to_array<StockField>({
    {"endpoint", kString, kKept, "", ""},
    {"samplingRatePerMillion", kInt, kKept, "", ""},
});

constexpr auto kStockFields = std::to_array<StockField>({
    {"address", kString, kAbsent, R"("0.0.0.0")", "address"},
    {"allowedUnsafeSysctls", kTextList, kAbsent, "", "allowed-unsafe-sysctls"},
    {"authentication", kObject, kAbsent, "", "", kAuthentication},
    {"authorization", kObject, kAbsent, "", "", kAuthorization},
    {"cgroupDriver", kString, kAbsent, R"("cgroupfs")", "cgroup-driver"},
    {"cgroupRoot", kString, kAbsent, "", "cgroup-root"},
    {"cgroupsPerQOS", kBool, kKept, R"(true)", "cgroups-per-qos"},
    {"clusterDNS", kTextList, kAbsent, "", "cluster-dns"},
    {"clusterDomain", kString, kAbsent, "", "cluster-domain"},
    {"configMapAndSecretChangeDetectionStrategy", kString, kAbsent, R"("Watch")", ""},
    {"containerLogMaxFiles", kInt, kKept, R"(5)", "container-log-max-files"},
    {"containerLogMaxSize", kString, kAbsent, R"("10Mi")", "container-log-max-size"},
    {"containerLogMaxWorkers", kInt, kKept, R"(1)", ""},
    {"containerLogMonitorInterval", kDuration, kKept, R"("10s")", ""},
    {"containerRuntimeEndpoint", kString, kAbsent, R"("unix:///run/containerd/containerd.sock")", "container-runtime-endpoint"},
    {"contentType", kString, kAbsent, R"("application/vnd.kubernetes.protobuf")", "kube-api-content-type"},
    {"cpuCFSQuota", kBool, kKept, R"(true)", "cpu-cfs-quota"},
    {"cpuCFSQuotaPeriod", kDuration, kKept, R"("100ms")", "cpu-cfs-quota-period"},
    {"cpuManagerPolicy", kString, kAbsent, R"("none")", "cpu-manager-policy"},
    {"cpuManagerPolicyOptions", kTextMap, kAbsent, "", "cpu-manager-policy-options"},
    {"cpuManagerReconcilePeriod", kDuration, kAbsent, R"("10s")", "cpu-manager-reconcile-period"},
    {"crashLoopBackOff", kObject, kAbsent, "", "", kCrashLoop},
    {"enableContentionProfiling", kBool, kAbsent, "", "contention-profiling"},
    {"enableControllerAttachDetach", kBool, kKept, R"(true)", "enable-controller-attach-detach"},
    {"enableDebugFlagsHandler", kBool, kKept, R"(true)", ""},
    {"enableDebuggingHandlers", kBool, kKept, R"(true)", "enable-debugging-handlers"},
    {"enableProfilingHandler", kBool, kKept, R"(true)", ""},
    {"enableServer", kBool, kKept, R"(true)", "enable-server"},
    {"enableSystemLogHandler", kBool, kKept, R"(true)", ""},
    {"enableSystemLogQuery", kBool, kKept, R"(false)", ""},
    {"enforceNodeAllocatable", kTextList, kAbsent, R"(["pods"])", "enforce-node-allocatable"},
    {"eventBurst", kInt, kAbsent, R"(100)", "event-burst"},
    {"eventRecordQPS", kInt, kKept, R"(50)", "event-qps"},
    {"evictionHard", kTextMap, kAbsent, "", "eviction-hard"},
    {"evictionMaxPodGracePeriod", kInt, kAbsent, "", "eviction-max-pod-grace-period"},
    {"evictionMinimumReclaim", kTextMap, kAbsent, "", "eviction-minimum-reclaim"},
    {"evictionPressureTransitionPeriod", kDuration, kAbsent, R"("5m0s")", "eviction-pressure-transition-period"},
    {"evictionSoft", kTextMap, kAbsent, "", "eviction-soft"},
    {"evictionSoftGracePeriod", kTextMap, kAbsent, "", "eviction-soft-grace-period"},
    {"failCgroupV1", kBool, kKept, R"(false)", "fail-cgroupv1"},
    {"failSwapOn", kBool, kKept, R"(true)", "fail-swap-on"},
    {"featureGates", kGates, kAbsent, "", "feature-gates"},
    {"fileCheckFrequency", kDuration, kAbsent, R"("20s")", "file-check-frequency"},
    {"hairpinMode", kString, kAbsent, R"("promiscuous-bridge")", "hairpin-mode"},
    {"healthzBindAddress", kString, kAbsent, R"("127.0.0.1")", "healthz-bind-address"},
    {"healthzPort", kInt, kKept, R"(10248)", "healthz-port"},
    {"httpCheckFrequency", kDuration, kAbsent, R"("20s")", "http-check-frequency"},
    {"imageGCHighThresholdPercent", kInt, kKept, R"(85)", "image-gc-high-threshold"},
    {"imageGCLowThresholdPercent", kInt, kKept, R"(80)", "image-gc-low-threshold"},
    {"imageMaximumGCAge", kDuration, kAbsent, "", ""},
    {"imageMinimumGCAge", kDuration, kAbsent, R"("2m0s")", "minimum-image-ttl-duration"},
    {"imageServiceEndpoint", kString, kAbsent, "", "image-service-endpoint"},
    {"iptablesDropBit", kInt, kKept, R"(15)", ""},
    {"iptablesMasqueradeBit", kInt, kKept, R"(14)", ""},
    {"kernelMemcgNotification", kBool, kAbsent, "", "kernel-memcg-notification"},
    {"kubeAPIBurst", kInt, kAbsent, R"(100)", "kube-api-burst"},
    {"kubeAPIQPS", kInt, kKept, R"(50)", "kube-api-qps"},
    {"kubeReserved", kTextMap, kAbsent, "", "kube-reserved"},
    {"kubeReservedCgroup", kString, kAbsent, "", "kube-reserved-cgroup"},
    {"kubeletCgroups", kString, kAbsent, "", "kubelet-cgroups"},
    {"localStorageCapacityIsolation", kBool, kKept, R"(true)", "local-storage-capacity-isolation"},
    {"logging", kObject, kAbsent, "", "", kLogging},
    {"makeIPTablesUtilChains", kBool, kKept, R"(true)", "make-iptables-util-chains"},
    {"maxOpenFiles", kInt, kAbsent, R"(1000000)", "max-open-files"},
    {"maxParallelImagePulls", kInt, kKept, "", ""},
    {"maxPods", kInt, kAbsent, R"(110)", "max-pods"},
    {"memoryManagerPolicy", kString, kAbsent, R"("None")", "memory-manager-policy"},
    {"memorySwap", kObject, kAbsent, "", "", kMemorySwap},
    {"memoryThrottlingFactor", kFloat, kKept, R"(0.9)", ""},
    {"nodeLeaseDurationSeconds", kInt, kAbsent, R"(40)", ""},
    {"nodeStatusMaxImages", kInt, kKept, R"(50)", "node-status-max-images"},
    {"nodeStatusReportFrequency", kDuration, kAbsent, R"("5m0s")", ""},
    {"nodeStatusUpdateFrequency", kDuration, kAbsent, R"("10s")", "node-status-update-frequency"},
    {"oomScoreAdj", kInt, kKept, R"(-999)", "oom-score-adj"},
    {"podCIDR", kString, kAbsent, "", "pod-cidr"},
    {"podLogsDir", kString, kAbsent, R"("/var/log/pods")", ""},
    {"podPidsLimit", kInt, kKept, R"(-1)", "pod-max-pids"},
    {"podsPerCore", kInt, kAbsent, "", "pods-per-core"},
    {"port", kInt, kAbsent, R"(10250)", "port"},
    {"protectKernelDefaults", kBool, kAbsent, "", "protect-kernel-defaults"},
    {"providerID", kString, kAbsent, "", "provider-id"},
    {"qosReserved", kTextMap, kAbsent, "", "qos-reserved"},
    {"readOnlyPort", kInt, kAbsent, "", "read-only-port"},
    {"registerNode", kBool, kKept, R"(true)", "register-node"},
    {"registerWithTaints", kObjects, kAbsent, "", "register-with-taints"},
    {"registryBurst", kInt, kAbsent, R"(10)", "registry-burst"},
    {"registryPullQPS", kInt, kKept, R"(5)", "registry-qps"},
    {"reservedMemory", kObjects, kAbsent, "", "reserved-memory"},
    {"reservedSystemCPUs", kString, kAbsent, "", "reserved-cpus"},
    {"resolvConf", kString, kKept, R"("/etc/resolv.conf")", "resolv-conf"},
    {"rotateCertificates", kBool, kAbsent, "", "rotate-certificates"},
    {"runOnce", kBool, kAbsent, "", "runonce"},
    {"runtimeRequestTimeout", kDuration, kAbsent, R"("2m0s")", "runtime-request-timeout"},
    {"seccompDefault", kBool, kKept, R"(false)", ""},
    {"serializeImagePulls", kBool, kKept, R"(true)", "serialize-image-pulls"},
    {"serverTLSBootstrap", kBool, kAbsent, "", "rotate-server-certificates"},
    {"showHiddenMetricsForVersion", kString, kAbsent, "", ""},
    {"shutdownGracePeriod", kDuration, kAbsent, "", ""},
    {"shutdownGracePeriodByPodPriority", kObjects, kAbsent, "", ""},
    {"shutdownGracePeriodCriticalPods", kDuration, kAbsent, "", ""},
    {"singleProcessOOMKill", kBool, kKept, "", ""},
    {"staticPodPath", kString, kAbsent, "", "pod-manifest-path"},
    {"staticPodURL", kString, kAbsent, "", "manifest-url"},
    {"staticPodURLHeader", kListMap, kAbsent, "", "manifest-url-header"},
    {"streamingConnectionIdleTimeout", kDuration, kAbsent, R"("4h0m0s")", "streaming-connection-idle-timeout"},
    {"syncFrequency", kDuration, kAbsent, R"("1m0s")", "sync-frequency"},
    {"systemCgroups", kString, kAbsent, "", "system-cgroups"},
    {"systemReserved", kTextMap, kAbsent, "", "system-reserved"},
    {"systemReservedCgroup", kString, kAbsent, "", "system-reserved-cgroup"},
    {"tlsCertFile", kString, kAbsent, "", "tls-cert-file"},
    {"tlsCipherSuites", kTextList, kAbsent, "", "tls-cipher-suites"},
    {"tlsMinVersion", kString, kAbsent, "", "tls-min-version"},
    {"tlsPrivateKeyFile", kString, kAbsent, "", "tls-private-key-file"},
    {"topologyManagerPolicy", kString, kAbsent, R"("none")", "topology-manager-policy"},
    {"topologyManagerPolicyOptions", kTextMap, kAbsent, "", "topology-manager-policy-options"},
    {"topologyManagerScope", kString, kAbsent, R"("container")", "topology-manager-scope"},
    {"tracing", kObject, kKept, "", "", kTracing},
    {"volumePluginDir", kString, kAbsent, R"("/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")", "volume-plugin-dir"},
    {"volumeStatsAggPeriod", kDuration, kAbsent, R"("1m0s")", "volume-stats-agg-period"},
});

/// Flags of a kubelet 1.32 without a member, its own and those that it has from cAdvisor.
constexpr auto kPlainFlags = std::to_array<std::string_view>({
    "application-metrics-count-limit",
    "boot-id-file",
    "bootstrap-kubeconfig",
    "cert-dir",
    "cloud-config",
    "cloud-provider",
    "config",
    "config-dir",
    "container-hints",
    "containerd",
    "containerd-namespace",
    "enable-load-reader",
    "event-storage-age-limit",
    "event-storage-event-limit",
    "exit-on-lock-contention",
    "experimental-allocatable-ignore-eviction",
    "experimental-mounter-path",
    "global-housekeeping-interval",
    "help",
    "hostname-override",
    "housekeeping-interval",
    "image-credential-provider-bin-dir",
    "image-credential-provider-config",
    "kubeconfig",
    "lock-file",
    "log-cadvisor-usage",
    "log-text-info-buffer-size",
    "log-text-split-stream",
    "machine-id-file",
    "max-housekeeping-interval",
    "maximum-dead-containers",
    "maximum-dead-containers-per-container",
    "minimum-container-ttl-duration",
    "node-ip",
    "node-labels",
    "pod-infra-container-image",
    "register-schedulable",
    "root-dir",
    "runtime-cgroups",
    "seccomp-default",
    "storage-driver-buffer-duration",
    "storage-driver-db",
    "storage-driver-host",
    "storage-driver-password",
    "storage-driver-secure",
    "storage-driver-table",
    "storage-driver-user",
    "version",
    "vmodule",
});
// clang-format on

static_assert(std::ranges::is_sorted(kStockFields, {}, &StockField::name));
static_assert(std::ranges::is_sorted(kPlainFlags));

}  // namespace

std::span<const StockField> stock_fields() {
  return kStockFields;
}

const StockField* find_stock_field(std::span<const StockField> fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &StockField::name);
  return found == fields.end() ? nullptr : &*found;
}

bool is_plain_stock_flag(std::string_view name) {
  return std::ranges::binary_search(kPlainFlags, name);
}

}  // namespace spillway::agent
