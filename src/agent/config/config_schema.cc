#include "agent/config/config_schema.h"

#include "base/check.h"

#include <algorithm>
#include <array>

namespace spillway::agent {
namespace {

// clang-format off
constexpr auto kFields = std::to_array<ConfigField>({
    {"address", FieldType::kString, Effect::kHere, ""},
    {"allowedUnsafeSysctls", FieldType::kTextList, Effect::kHere, ""},
    {"apiVersion", FieldType::kString, Effect::kHere, ""},
    {"authentication", FieldType::kMapping, Effect::kHere,
     R"({"anonymous":{"enabled":false},"webhook":{"cacheTTL":"2m0s","enabled":true},"x509":{}})"},
    {"authorization", FieldType::kMapping, Effect::kHere,
     R"({"mode":"Webhook","webhook":{"cacheAuthorizedTTL":"5m0s","cacheUnauthorizedTTL":"30s"}})"},
    {"cgroupDriver", FieldType::kString, Effect::kHere, ""},
    {"cgroupRoot", FieldType::kString, Effect::kHere, ""},
    {"cgroupsPerQOS", FieldType::kBool, Effect::kNone, ""},
    {"clusterDNS", FieldType::kTextList, Effect::kHere, ""},
    {"clusterDomain", FieldType::kString, Effect::kHere, ""},
    {"configMapAndSecretChangeDetectionStrategy", FieldType::kString, Effect::kNone, ""},
    {"containerLogMaxFiles", FieldType::kInteger, Effect::kHere, R"(5)"},
    {"containerLogMaxSize", FieldType::kQuantity, Effect::kHere, R"("10Mi")"},
    {"containerLogMaxWorkers", FieldType::kInteger, Effect::kHere, R"(1)"},
    {"containerLogMonitorInterval", FieldType::kDuration, Effect::kHere, R"("10s")"},
    {"containerRuntimeEndpoint", FieldType::kString, Effect::kHere, ""},
    {"contentType", FieldType::kString, Effect::kNone, ""},
    {"cpuCFSQuota", FieldType::kBool, Effect::kHere, ""},
    {"cpuCFSQuotaPeriod", FieldType::kDuration, Effect::kHere, ""},
    {"cpuManagerPolicy", FieldType::kString, Effect::kHere, R"("none")"},
    {"cpuManagerPolicyOptions", FieldType::kTextMap, Effect::kHere, ""},
    {"cpuManagerReconcilePeriod", FieldType::kDuration, Effect::kNone, ""},
    {"crashLoopBackOff", FieldType::kMapping, Effect::kHere, ""},
    {"enableContentionProfiling", FieldType::kBool, Effect::kNone, ""},
    {"enableControllerAttachDetach", FieldType::kBool, Effect::kHere, R"(true)"},
    {"enableDebugFlagsHandler", FieldType::kBool, Effect::kNone, ""},
    {"enableDebuggingHandlers", FieldType::kBool, Effect::kHere, ""},
    {"enableProfilingHandler", FieldType::kBool, Effect::kNone, ""},
    {"enableServer", FieldType::kBool, Effect::kHere, R"(true)"},
    {"enableSystemLogHandler", FieldType::kBool, Effect::kHere, ""},
    {"enableSystemLogQuery", FieldType::kBool, Effect::kHere, ""},
    {"enforceNodeAllocatable", FieldType::kTextList, Effect::kHere, R"(["pods"])"},
    {"eventBurst", FieldType::kInteger, Effect::kHere, R"(100)"},
    {"eventRecordQPS", FieldType::kInteger, Effect::kHere, R"(50)"},
    {"evictionHard", FieldType::kTextMap, Effect::kHere, ""},
    {"evictionMaxPodGracePeriod", FieldType::kInteger, Effect::kHere, R"(0)"},
    {"evictionMinimumReclaim", FieldType::kTextMap, Effect::kHere, ""},
    {"evictionPressureTransitionPeriod", FieldType::kDuration, Effect::kHere, R"("5m0s")"},
    {"evictionSoft", FieldType::kTextMap, Effect::kHere, ""},
    {"evictionSoftGracePeriod", FieldType::kTextMap, Effect::kHere, ""},
    {"failCgroupV1", FieldType::kBool, Effect::kHere, ""},
    {"failSwapOn", FieldType::kBool, Effect::kHere, ""},
    {"featureGates", FieldType::kGates, Effect::kHere, ""},
    {"fileCheckFrequency", FieldType::kDuration, Effect::kHere, R"("20s")"},
    {"hairpinMode", FieldType::kString, Effect::kNone, ""},
    {"healthzBindAddress", FieldType::kString, Effect::kHere, R"("127.0.0.1")"},
    {"healthzPort", FieldType::kInteger, Effect::kHere, ""},
    {"httpCheckFrequency", FieldType::kDuration, Effect::kHere, R"("20s")"},
    {"imageGCHighThresholdPercent", FieldType::kInteger, Effect::kHere, R"(85)"},
    {"imageGCLowThresholdPercent", FieldType::kInteger, Effect::kHere, R"(80)"},
    {"imageMaximumGCAge", FieldType::kDuration, Effect::kHere, ""},
    {"imageMinimumGCAge", FieldType::kDuration, Effect::kHere, ""},
    {"imageServiceEndpoint", FieldType::kString, Effect::kHere, ""},
    {"iptablesDropBit", FieldType::kInteger, Effect::kNone, ""},
    {"iptablesMasqueradeBit", FieldType::kInteger, Effect::kNone, ""},
    {"kernelMemcgNotification", FieldType::kBool, Effect::kHere, ""},
    {"kind", FieldType::kString, Effect::kHere, ""},
    {"kubeAPIBurst", FieldType::kInteger, Effect::kNone, ""},
    {"kubeAPIQPS", FieldType::kInteger, Effect::kNone, ""},
    {"kubeReserved", FieldType::kQuantityMap, Effect::kHere, ""},
    {"kubeReservedCgroup", FieldType::kString, Effect::kHere, ""},
    {"kubeletCgroups", FieldType::kString, Effect::kNone, ""},
    {"localStorageCapacityIsolation", FieldType::kBool, Effect::kHere, R"(true)"},
    {"logging", FieldType::kMapping, Effect::kNone, ""},
    {"makeIPTablesUtilChains", FieldType::kBool, Effect::kNone, ""},
    {"maxOpenFiles", FieldType::kInteger, Effect::kNone, ""},
    {"maxParallelImagePulls", FieldType::kInteger, Effect::kHere, ""},
    {"maxPods", FieldType::kInteger, Effect::kHere, R"(110)"},
    {"memoryManagerPolicy", FieldType::kString, Effect::kHere, R"("None")"},
    {"memoryRelief", FieldType::kBool, Effect::kHere, ""},
    {"memorySwap", FieldType::kMapping, Effect::kHere, ""},
    {"memoryThrottlingFactor", FieldType::kNumber, Effect::kHere, ""},
    {"mergeDefaultEvictionSettings", FieldType::kBool, Effect::kHere, R"(false)"},
    {"nodeLeaseDurationSeconds", FieldType::kInteger, Effect::kHere, R"(40)"},
    {"nodeStatusMaxImages", FieldType::kInteger, Effect::kHere, R"(50)"},
    {"nodeStatusReportFrequency", FieldType::kDuration, Effect::kHere, R"("5m0s")"},
    {"nodeStatusUpdateFrequency", FieldType::kDuration, Effect::kHere, R"("10s")"},
    {"oomScoreAdj", FieldType::kInteger, Effect::kHere, ""},
    {"podCIDR", FieldType::kString, Effect::kNone, ""},
    {"podLogsDir", FieldType::kString, Effect::kHere, R"("/var/log/pods")"},
    {"podPidsLimit", FieldType::kInteger, Effect::kHere, R"(-1)"},
    {"podsPerCore", FieldType::kInteger, Effect::kHere, R"(0)"},
    {"port", FieldType::kInteger, Effect::kHere, R"(10250)"},
    {"protectKernelDefaults", FieldType::kBool, Effect::kHere, ""},
    {"providerID", FieldType::kString, Effect::kHere, ""},
    {"qosReserved", FieldType::kTextMap, Effect::kHere, ""},
    {"readOnlyPort", FieldType::kInteger, Effect::kHere, ""},
    {"registerNode", FieldType::kBool, Effect::kHere, R"(true)"},
    {"registerWithTaints", FieldType::kTaints, Effect::kHere, ""},
    {"registryBurst", FieldType::kInteger, Effect::kHere, ""},
    {"registryPullQPS", FieldType::kInteger, Effect::kHere, ""},
    {"reservedMemory", FieldType::kSequence, Effect::kHere, ""},
    {"reservedSystemCPUs", FieldType::kString, Effect::kHere, ""},
    {"resolvConf", FieldType::kString, Effect::kHere, ""},
    {"rotateCertificates", FieldType::kBool, Effect::kNone, ""},
    {"runOnce", FieldType::kBool, Effect::kNone, ""},
    {"runtimeRequestTimeout", FieldType::kDuration, Effect::kHere, ""},
    {"seccompDefault", FieldType::kBool, Effect::kHere, ""},
    {"serializeImagePulls", FieldType::kBool, Effect::kHere, ""},
    {"serverTLSBootstrap", FieldType::kBool, Effect::kNone, ""},
    {"showHiddenMetricsForVersion", FieldType::kString, Effect::kNone, ""},
    {"shutdownGracePeriod", FieldType::kDuration, Effect::kHere, R"("0s")"},
    {"shutdownGracePeriodByPodPriority", FieldType::kSequence, Effect::kHere, ""},
    {"shutdownGracePeriodCriticalPods", FieldType::kDuration, Effect::kHere, R"("0s")"},
    {"singleProcessOOMKill", FieldType::kBool, Effect::kHere, ""},
    {"staticPodPath", FieldType::kString, Effect::kHere, ""},
    {"staticPodURL", FieldType::kString, Effect::kHere, ""},
    {"staticPodURLHeader", FieldType::kMapping, Effect::kHere, ""},
    {"streamingConnectionIdleTimeout", FieldType::kDuration, Effect::kHere, R"("4h0m0s")"},
    {"syncFrequency", FieldType::kDuration, Effect::kHere, R"("1m0s")"},
    {"systemCgroups", FieldType::kString, Effect::kNone, ""},
    {"systemReserved", FieldType::kQuantityMap, Effect::kHere, ""},
    {"systemReservedCgroup", FieldType::kString, Effect::kHere, ""},
    {"tlsCertFile", FieldType::kString, Effect::kHere, ""},
    {"tlsCipherSuites", FieldType::kTextList, Effect::kHere, ""},
    {"tlsMinVersion", FieldType::kString, Effect::kHere, ""},
    {"tlsPrivateKeyFile", FieldType::kString, Effect::kHere, ""},
    {"topologyManagerPolicy", FieldType::kString, Effect::kHere, R"("none")"},
    {"topologyManagerPolicyOptions", FieldType::kTextMap, Effect::kHere, ""},
    {"topologyManagerScope", FieldType::kString, Effect::kHere, R"("container")"},
    {"tracing", FieldType::kMapping, Effect::kNone, ""},
    {"volumePluginDir", FieldType::kString, Effect::kNone, ""},
    {"volumeStatsAggPeriod", FieldType::kDuration, Effect::kNone, ""},
});
// clang-format on

static_assert(std::ranges::is_sorted(kFields, {}, &ConfigField::name));

}  // namespace

std::span<const ConfigField> config_fields() {
  return kFields;
}

const ConfigField* find_config_field(std::string_view name) {
  const auto* const it = std::ranges::lower_bound(kFields, name, {}, &ConfigField::name);
  return it == kFields.end() || it->name != name ? nullptr : it;
}

const FeatureGate* find_gate(std::string_view name) {
  static constexpr auto kGates = std::to_array<FeatureGate>({
      {.name = kCheckpointGate, .by_default = true},
      {.name = kCpuPeriodGate, .by_default = true},
      {.name = kCrashLoopGate, .by_default = true},
      {.name = kFineGrainedGate, .by_default = true, .locked = true},
      {.name = kGroupsGate, .by_default = true, .locked = true},
      {.name = kMemoryQosGate},
      {.name = kNodeLogQueryGate, .by_default = true, .locked = true},
      {.name = kQosReservedGate},
      {.name = kPressureGate, .by_default = true, .locked = true},
  });
  const auto* const found = std::ranges::find(kGates, name, &FeatureGate::name);
  return found == kGates.end() ? nullptr : found;
}

bool is_gate_on(const api::Json& effective, std::string_view name) {
  const FeatureGate* known = find_gate(name);
  SPILLWAY_CHECK(known != nullptr);
  const api::Json* gate = effective.at({"featureGates", name});
  return gate == nullptr ? known->by_default : gate->if_bool().value_or(known->by_default);
}

std::string_view describe(FieldType type) {
  switch (type) {
    case FieldType::kBool:
      return "true or false";
    case FieldType::kInteger:
      return "a whole number";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kString:
      return "a string";
    case FieldType::kDuration:
      return "a duration such as 1m30s";
    case FieldType::kQuantity:
      return "a quantity such as 10Mi";
    case FieldType::kTextMap:
      return "a mapping of strings";
    case FieldType::kQuantityMap:
      return "a mapping of quantities";
    case FieldType::kTextList:
      return "a list of strings";
    case FieldType::kGates:
      return "a mapping of features to true or false";
    case FieldType::kTaints:
      return "a list of taints";
    case FieldType::kMapping:
      return "a mapping";
    case FieldType::kSequence:
      return "a list";
  }
  return "";
}

}  // namespace spillway::agent
