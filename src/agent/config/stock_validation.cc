// The rules by which a kubelet 1.32 refuses a KubeletConfiguration, in its order and words. All of them are tried.
#include "agent/config/config_schema.h"
#include "agent/config/stock_load.h"
#include "api/text/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kInvalidPrefix = "invalid configuration: ";
constexpr std::string_view kNodeSwapGate = "NodeSwap";
constexpr std::int64_t kPortMax = 65535;

class StockRules {
 public:
  StockRules(const Json& config, std::pair<std::uint64_t, std::uint64_t> version)
      : config_(config), version_(version) {}

  std::vector<std::string> run() {
    check_numbers();
    check_images();
    check_topology();
    check_shutdown();
    check_swap();
    check_enforcement();
    check_reserved_cpus();
    check_logs();
    check_others();
    return std::move(errors_);
  }

 private:
  template <typename... Args>
  void refuse(fmt::format_string<Args...> text, Args&&... args) {
    add(std::string(kInvalidPrefix) + fmt::format(text, std::forward<Args>(args)...));
  }

  void add(std::string text) {
    if (std::ranges::find(errors_, text) == errors_.end()) errors_.push_back(std::move(text));
  }

  std::int64_t number(std::string_view key) const {
    const Json* found = config_.find(key);
    return found == nullptr ? 0 : found->if_int64().value_or(0);
  }

  bool has(std::string_view key) const { return config_.find(key) != nullptr; }

  bool is_on(std::string_view key) const {
    const Json* found = config_.find(key);
    return found != nullptr && found->if_bool().value_or(false);
  }

  bool gate(std::string_view name, bool by_default) const {
    const Json* found = config_.at({"featureGates", name});
    return found == nullptr ? by_default : found->if_bool().value_or(by_default);
  }

  Duration duration(std::string_view key) const {
    return api::parse_duration(config_.string_at({key})).value_or(Duration{});
  }

  const Json::Array& list(std::string_view key) const {
    static const Json::Array kNone;
    const Json* found = config_.find(key);
    return found == nullptr || found->if_array() == nullptr ? kNone : *found->if_array();
  }

  /// `flag`: as messages name it, without dashes; empty: the member has none.
  void not_negative(std::string_view key, std::string_view flag) {
    if (number(key) < 0) refuse("{} (--{}) {} must not be a negative number", key, flag, number(key));
  }

  void in_range(std::string_view key, std::string_view flag, std::int64_t least, std::int64_t most) {
    const std::int64_t value = number(key);
    if (value >= least && value <= most) return;
    const std::string name = flag.empty() ? std::string(key) : fmt::format("{} (--{})", key, flag);
    refuse("{} {} must be between {} and {}, inclusive", name, value, least, most);
  }

  void check_numbers() {
    if (number("nodeLeaseDurationSeconds") <= 0) refuse("nodeLeaseDurationSeconds must be greater than 0");
    if (!config_.string_at({"systemCgroups"}).empty() && config_.string_at({"cgroupRoot"}).empty())
      refuse("systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified");
    not_negative("eventBurst", "event-burst");
    not_negative("eventRecordQPS", "event-qps");
    if (number("healthzPort") != 0) in_range("healthzPort", "healthz-port", 1, kPortMax);
    check_cpu_period();
    in_range("imageGCHighThresholdPercent", "image-gc-high-threshold", 0, 100);
    in_range("imageGCLowThresholdPercent", "image-gc-low-threshold", 0, 100);
    const std::int64_t low = number("imageGCLowThresholdPercent");
    const std::int64_t high = number("imageGCHighThresholdPercent");
    if (low >= high) {
      refuse(
          "imageGCLowThresholdPercent (--image-gc-low-threshold) {} must be less than imageGCHighThresholdPercent "
          "(--image-gc-high-threshold) {}",
          low, high);
    }
    check_image_age();
    in_range("iptablesDropBit", "", 0, 31);
    in_range("iptablesMasqueradeBit", "", 0, 31);
    not_negative("kubeAPIBurst", "kube-api-burst");
    not_negative("kubeAPIQPS", "kube-api-qps");
    if (number("nodeStatusMaxImages") < -1)
      refuse("nodeStatusMaxImages (--node-status-max-images) {} must be -1 or greater", number("nodeStatusMaxImages"));
    not_negative("maxOpenFiles", "max-open-files");
    not_negative("maxPods", "max-pods");
    in_range("oomScoreAdj", "oom-score-adj", -1000, 1000);
    not_negative("podsPerCore", "pods-per-core");
    in_range("port", "port", 1, kPortMax);
    if (number("readOnlyPort") != 0) in_range("readOnlyPort", "read-only-port", 0, kPortMax);
    not_negative("registryBurst", "registry-burst");
    not_negative("registryPullQPS", "registry-qps");
  }

  void check_cpu_period() {
    const Duration period = duration("cpuCFSQuotaPeriod");
    const std::string text = api::format_duration(period);
    if (!gate(kCpuPeriodGate, false)) {
      if (period != milliseconds(100)) {
        refuse("cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{}}} requires feature gate CustomCPUCFSQuotaPeriod", text);
      }
    } else if (period < milliseconds(1) || period > seconds(1)) {
      refuse("cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{}}} must be between 1ms and 1sec, inclusive", text);
    }
  }

  void check_image_age() {
    const Duration most = duration("imageMaximumGCAge");
    const Duration least = duration("imageMinimumGCAge");
    if (most < Duration{}) refuse("imageMaximumGCAge {} must not be negative", api::format_duration(most));
    if (most > Duration{} && most <= least) {
      refuse("imageMaximumGCAge {} must be greater than imageMinimumGCAge {}", api::format_duration(most),
             api::format_duration(least));
    }
  }

  void check_images() {
    const std::int64_t parallel = number("maxParallelImagePulls");
    if (has("maxParallelImagePulls") && parallel < 1)
      refuse("maxParallelImagePulls {} must be a positive number", parallel);
    if (parallel > 1 && is_on("serializeImagePulls")) {
      refuse(
          "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set "
          "to "
          "false");
    }
    if (is_on("serverTLSBootstrap") && !gate("RotateKubeletServerCertificate", true))
      refuse("serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate");
  }

  void check_topology() {
    const std::string_view policy = config_.string_at({"topologyManagerPolicy"});
    constexpr auto kPolicies =
        std::to_array<std::string_view>({"none", "best-effort", "restricted", "single-numa-node"});
    if (std::ranges::find(kPolicies, policy) == kPolicies.end()) {
      refuse(
          "topologyManagerPolicy (--topology-manager-policy) \"{}\" must be one of: [\"none\" \"best-effort\" "
          "\"restricted\" \"single-numa-node\"]",
          policy);
    }
    const std::string_view scope = config_.string_at({"topologyManagerScope"});
    if (scope != "container" && scope != "pod") {
      refuse("topologyManagerScope (--topology-manager-scope) \"{}\" must be one of: \"container\", or \"pod\"", scope);
    }
  }

  void check_shutdown() {
    const Duration all = duration("shutdownGracePeriod");
    const Duration critical = duration("shutdownGracePeriodCriticalPods");
    const std::string all_text = api::format_duration(all);
    const std::string critical_text = api::format_duration(critical);
    if (critical > all) {
      refuse("shutdownGracePeriodCriticalPods {{{}}} must be <= shutdownGracePeriod {{{}}}", critical_text, all_text);
    }
    if (all != Duration{} && all < seconds(1))
      refuse("shutdownGracePeriod {{{}}} must be either zero or otherwise >= 1 sec", all_text);
    if (critical != Duration{} && critical < seconds(1))
      refuse("shutdownGracePeriodCriticalPods {{{}}} must be either zero or otherwise >= 1 sec", critical_text);
    if (!list("shutdownGracePeriodByPodPriority").empty() && (all != Duration{} || critical != Duration{})) {
      refuse("Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time");
    }
  }

  void check_swap() {
    const std::string_view behavior = config_.string_at({"memorySwap", "swapBehavior"});
    if (!gate(kNodeSwapGate, true)) {
      if (!behavior.empty()) refuse("memorySwap.swapBehavior cannot be set when NodeSwap feature flag is disabled");
    } else if (!behavior.empty() && behavior != "NoSwap" && behavior != "LimitedSwap") {
      refuse("memorySwap.swapBehavior \"{}\" must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"", behavior);
    }
  }

  void check_enforcement() {
    std::set<std::string> seen;
    const Json::Array& enforced = list("enforceNodeAllocatable");
    for (const Json& each : enforced) {
      const std::string value(each.string_at({}));
      if (!seen.insert(value).second) {
        refuse("duplicated enforcements \"{}\" in enforceNodeAllocatable (--enforce-node-allocatable)", value);
        continue;
      }
      check_enforced(value, enforced.size());
    }
    for (const std::string_view part : {"system-reserved", "kube-reserved"}) {
      if (!seen.contains(std::string(part)) || !seen.contains(fmt::format("{}-compressible", part))) continue;
      refuse(
          "both \"{0}\" and \"{0}-compressible\" cannot be specified together in enforceNodeAllocatable "
          "(--enforce-node-allocatable)",
          part);
    }
  }

  void check_enforced(const std::string& value, std::size_t count) {
    const auto needs_cgroup = [&](std::string_view part, std::string_view key, std::string_view flag) {
      if (!config_.string_at({key}).empty()) return;
      refuse(
          "{} (--{}) must be specified when \"{}\" or \"{}-compressible\" included in enforceNodeAllocatable "
          "(--enforce-node-allocatable)",
          key, flag, part, part);
    };
    if (value == "none") {
      if (count > 1) {
        refuse(
            "enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when \"none\" "
            "is specified");
      }
      return;
    }
    if (value == "system-reserved" || value == "system-reserved-compressible") {
      needs_cgroup("system-reserved", "systemReservedCgroup", "system-reserved-cgroup");
    } else if (value == "kube-reserved" || value == "kube-reserved-compressible") {
      needs_cgroup("kube-reserved", "kubeReservedCgroup", "kube-reserved-cgroup");
    } else if (value != "pods") {
      refuse(
          "option \"{}\" specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are "
          "\"pods\", "
          "\"system-reserved\", \"system-reserved-compressible\", \"kube-reserved\", \"kube-reserved-compressible\" or "
          "\"none\"",
          value);
      return;
    }
    if (!is_on("cgroupsPerQOS")) {
      refuse(
          "cgroupsPerQOS (--cgroups-per-qos) must be set to true when \"{}\" contained in enforceNodeAllocatable "
          "(--enforce-node-allocatable)",
          value);
    }
  }

  void check_reserved_cpus() {
    const std::string_view mode = config_.string_at({"hairpinMode"});
    if (mode != "none" && mode != "hairpin-veth" && mode != "promiscuous-bridge") {
      refuse(
          "option \"{}\" specified for hairpinMode (--hairpin-mode). Valid options are \"none\", \"hairpin-veth\" or "
          "\"promiscuous-bridge\"",
          mode);
    }
    const std::string_view cpus = config_.string_at({"reservedSystemCPUs"});
    if (cpus.empty()) return;
    if (!config_.string_at({"systemReservedCgroup"}).empty() || !config_.string_at({"kubeReservedCgroup"}).empty()) {
      refuse(
          "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or "
          "kubeReservedCgroup (--kube-reserved-cgroup)");
    }
    if (const auto wrong = not_a_number(cpus)) {
      refuse(
          "unable to parse reservedSystemCPUs (--reserved-cpus) {}, error: strconv.Atoi: parsing \"{}\": invalid "
          "syntax",
          cpus, *wrong);
    }
  }

  /// The first part of a CPU list ("0-1,3") that is no number.
  static std::optional<std::string> not_a_number(std::string_view cpus) {
    std::string part;
    for (const char each : std::string(cpus) + ",") {
      if (each != ',' && each != '-') {
        part += each;
        continue;
      }
      const bool digits = !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
      if (!digits) return part;
      part.clear();
    }
    return std::nullopt;
  }

  void check_logs() {
    if (number("containerLogMaxWorkers") < 1) refuse("containerLogMaxWorkers must be greater than or equal to 1");
    if (duration("containerLogMonitorInterval") < seconds(3)) {
      refuse("containerLogMonitorInterval must be a positive time duration greater than or equal to 3s");
    }
    const std::string_view directory = config_.string_at({"podLogsDir"});
    const bool ascii = std::ranges::all_of(directory, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (!directory.starts_with('/')) refuse("pod logs path \"{}\" must be absolute path", directory);
    const bool clean =
        directory == "/" ||
        (!directory.ends_with('/') && directory.find("//") == std::string_view::npos &&
         directory.find("/./") == std::string_view::npos && directory.find("/../") == std::string_view::npos);
    if (!clean) refuse("pod logs path \"{}\" must be normalized", directory);
    if (!ascii) refuse("pod logs path \"{}\" mut contains ASCII characters only", directory);
    if (is_on("enableSystemLogQuery")) {
      if (!gate(kNodeLogQueryGate, false)) refuse("NodeLogQuery feature gate is required for enableSystemLogHandler");
      if (!is_on("enableSystemLogHandler")) refuse("enableSystemLogHandler is required for enableSystemLogQuery");
    }
  }

  void check_others() {
    if (is_on("runOnce")) refuse("runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set");
    check_hidden_metrics();
    const Json* rate = config_.at({"tracing", "samplingRatePerMillion"});
    const std::int64_t per_million = rate == nullptr ? 0 : rate->if_int64().value_or(0);
    if (per_million < 0) {
      add(fmt::format("tracing.samplingRatePerMillion: Invalid value: {}: sampling rate must be positive",
                      per_million));
    } else if (per_million > 1'000'000) {
      add(
          fmt::format("tracing.samplingRatePerMillion: Invalid value: {}: sampling rate per million must be less than "
                      "or equal to one million",
                      per_million));
    }
    const Json* factor = config_.find("memoryThrottlingFactor");
    const double share = factor == nullptr ? 0.9 : factor->if_double().value_or(0.9);
    if (share <= 0 || share > 1)
      refuse("memoryThrottlingFactor {} must be greater than 0 and less than or equal to 1.0", share);
    check_crash_loop();
    if (config_.string_at({"containerRuntimeEndpoint"}).empty())
      refuse("the containerRuntimeEndpoint was not specified or empty");
  }

  /// The release before is counted without a sign, as upstream does.
  void check_hidden_metrics() {
    const std::string_view shown = config_.string_at({"showHiddenMetricsForVersion"});
    const std::string before = fmt::format("{}.{}", version_.first, version_.second - 1);
    if (shown.empty() || shown == before) return;
    add(
        fmt::format("--show-hidden-metrics-for-version must be omitted or have the value '{}'. Only the previous minor "
                    "version is allowed",
                    before));
  }

  void check_crash_loop() {
    const std::string_view longest = config_.string_at({"crashLoopBackOff", "maxContainerRestartPeriod"});
    if (longest.empty()) return;
    if (!gate("KubeletCrashLoopBackOffMax", false)) {
      refuse(
          "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be "
          "set");
      return;
    }
    const Duration period = api::parse_duration(longest).value_or(Duration{});
    if (period < seconds(1) || period > seconds(300)) {
      refuse("CrashLoopBackOff.MaxContainerRestartPeriod (got: {} seconds) must be set between 1s and 300s",
             std::chrono::duration<double>(period).count());
    }
  }

  const Json& config_;
  std::pair<std::uint64_t, std::uint64_t> version_;
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> validate_as_kubelet(const api::Json& config, std::pair<std::uint64_t, std::uint64_t> version) {
  return StockRules(config, version).run();
}

}  // namespace spillway::agent
