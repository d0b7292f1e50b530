#include "apps/node_options.h"

#include "api/duration.h"
#include "base/rng.h"

#include <utility>

namespace spillway::apps {

namespace {

Result<eviction::SignalMap> read_flag(std::string_view flag, eviction::PairSyntax syntax, const std::string& text) {
  eviction::SignalFlag pairs(syntax, {});
  if (const Outcome added = pairs.add(text); !added) {
    return Error{added.error().code, added.error().text(), std::string(flag)};
  }
  return pairs.entries();
}

Result<eviction::ThresholdConfig> make_thresholds(const cli::EvictionArgs& args, const eviction::SignalMap& defaults) {
  eviction::ThresholdConfig config;
  config.enforce_pods = eviction::EnforcePods::kYes;
  config.hard = defaults;
  if (args.hard) {
    SPILLWAY_TRY(hard, read_flag("--eviction-hard", eviction::PairSyntax::kLessThan, *args.hard));
    config.hard = std::move(hard);
  }
  SPILLWAY_TRY(soft, read_flag("--eviction-soft", eviction::PairSyntax::kLessThan, args.soft));
  SPILLWAY_TRY(grace, read_flag("--eviction-soft-grace-period", eviction::PairSyntax::kEquals, args.soft_grace_period));
  SPILLWAY_TRY(reclaim, read_flag("--eviction-minimum-reclaim", eviction::PairSyntax::kEquals, args.minimum_reclaim));
  config.soft = std::move(soft);
  config.soft_grace_period = std::move(grace);
  config.minimum_reclaim = std::move(reclaim);
  return config;
}

}  // namespace

Outcome check_node_args(const cli::NodeArgs& args) {
  SPILLWAY_TRY(config, make_thresholds(args.eviction, eviction::default_hard_thresholds()));
  const auto refuse = [](const Error& error, const char* flag) {
    return Error{ErrorCode::kInvalid, error.text(), flag};
  };
  eviction::ThresholdConfig hard_alone;
  hard_alone.hard = config.hard;
  if (const auto parsed = eviction::parse_thresholds(hard_alone); !parsed)
    return refuse(parsed.error(), "--eviction-hard");
  if (const auto parsed = eviction::parse_thresholds(config); !parsed) return refuse(parsed.error(), "--eviction-soft");
  return {};
}

controllers::ControllerSet::Options make_controller_options(const cli::ControllerArgs& args) {
  controllers::ControllerSet::Options options;
  options.node_lifecycle.node_monitor_period = args.node_monitor_period;
  lifecycle::MonitorConfig& monitor = options.node_lifecycle.monitor;
  monitor.health.node_monitor_grace_period = args.node_monitor_grace_period;
  monitor.health.node_startup_grace_period = args.node_startup_grace_period;
  monitor.zones.node_eviction_rate = static_cast<float>(args.node_eviction_rate);
  monitor.zones.secondary_node_eviction_rate = static_cast<float>(args.secondary_node_eviction_rate);
  monitor.zones.large_cluster_size_threshold = args.large_cluster_size_threshold;
  monitor.zones.unhealthy_zone_threshold = static_cast<float>(args.unhealthy_zone_threshold);
  options.pod_gc.terminated_threshold = args.terminated_pod_gc_threshold;
  return options;
}

std::string instance_of(const std::string& directory) {
  return fmt::format("{:08x}", static_cast<std::uint32_t>(fnv1a64(directory)));
}

std::string node_state_dir(const std::string& given, const std::string& data_dir, const std::string& node) {
  return (given.empty() ? data_dir + "/nodes" : given) + "/" + node;
}

Result<agent::AgentOptions> make_agent_options(const cli::NodeArgs& args, std::string node_name, Bytes memory) {
  agent::AgentOptions options;
  options.node_name = std::move(node_name);
  options.labels.insert(args.labels.begin(), args.labels.end());
  SPILLWAY_TRY(thresholds, make_thresholds(args.eviction, agent::hard_thresholds_for(memory)));
  options.eviction.thresholds = std::move(thresholds);
  options.eviction.pressure_transition_period = args.eviction.pressure_transition_period;
  options.eviction.max_pod_grace_period_seconds = args.eviction.max_pod_grace_period_seconds;
  options.lease_duration = seconds(args.lease_duration_seconds);
  options.status_update_frequency = args.status_update_frequency;
  options.status_report_frequency = args.status_report_frequency;
  options.pods_max = args.max_pods;
  return options;
}

api::Json kubelet_configuration(const agent::AgentOptions& options) {
  const auto map = [](const eviction::SignalMap& entries) {
    api::Json out = api::Json::object();
    for (const auto& [signal, value] : entries) out[signal] = value;
    return out;
  };
  const eviction::ThresholdConfig& thresholds = options.eviction.thresholds;
  return api::Json::object(
      {{"kind", "KubeletConfiguration"},
       {"apiVersion", "kubelet.config.k8s.io/v1beta1"},
       {"enableServer", options.daemon_port != 0},
       {"port", options.daemon_port},
       {"maxPods", options.pods_max},
       {"nodeStatusUpdateFrequency", api::format_duration(options.status_update_frequency)},
       {"nodeStatusReportFrequency", api::format_duration(options.status_report_frequency)},
       {"nodeLeaseDurationSeconds", std::chrono::duration_cast<seconds>(options.lease_duration).count()},
       {"evictionHard", map(thresholds.hard)},
       {"evictionSoft", map(thresholds.soft)},
       {"evictionSoftGracePeriod", map(thresholds.soft_grace_period)},
       {"evictionMinimumReclaim", map(thresholds.minimum_reclaim)},
       {"evictionPressureTransitionPeriod", api::format_duration(options.eviction.pressure_transition_period)},
       {"evictionMaxPodGracePeriod", options.eviction.max_pod_grace_period_seconds},
       {"registerNode", true}});
}

}  // namespace spillway::apps
