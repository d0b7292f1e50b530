#include "policy/lifecycle/profile.h"

#include <array>
#include <utility>

namespace spillway::lifecycle {
namespace {

constexpr std::array kLines = {
    std::pair{Line::kV1_7, std::string_view("v1.7")}, std::pair{Line::kV1_19, std::string_view("v1.19")},
    std::pair{Line::kV1_29, std::string_view("v1.29")}, std::pair{Line::kV1_34, std::string_view("v1.34")}};

void make_original(Profile& profile) {
  profile.leases = false;
  profile.out_of_disk = true;
  profile.pid_pressure = false;
  profile.never_posted_overwrites_record = true;
  profile.never_posted_hides_current = true;
  profile.zone_labels = ZoneLabels::kBetaOnly;
  profile.zone_exclusion = ZoneExclusion::kName;
  profile.zone_of_known_nodes = false;
  profile.bucket = BucketKind::kTicks;
  profile.requeue_every_pass = false;
  profile.lists_pods_first = false;
  profile.mark_pods_skips_false = false;
  profile.mark_pods_events = false;
  profile.mark_pods_retry = false;
  profile.checks_kubelet_version = true;
  profile.pod_updates = false;
  profile.eviction_status_per_node = false;
  profile.missing_pod_is_error = true;
  profile.counts_before_trying = true;
  profile.cloud_check = true;
  profile.controller_name = "NodeController";
  profile.node_events_from = "controllermanager";
  profile.taint_events_from = "controllermanager";
  profile.not_ready_taint = api::kTaintNodeNotReadyAlpha;
  profile.unreachable_taint = api::kTaintNodeUnreachableAlpha;
  profile.disruption_target_condition = false;
  profile.forever_toleration_cancels_timer = false;
}

}  // namespace

std::string_view to_string(Line line) {
  for (const auto& [known, name] : kLines) {
    if (known == line) return name;
  }
  return {};
}

std::optional<Line> parse_line(std::string_view text) {
  for (const auto& [line, name] : kLines) {
    if (name == text) return line;
  }
  return std::nullopt;
}

Profile upstream_profile(Line line, EvictionMode mode) {
  Profile profile;
  profile.mode = mode;
  profile.decide_on_current = line == Line::kV1_34;
  profile.evaluates_zones_first = false;
  profile.mark_pods_guarded = true;
  profile.retries_taint_writes = false;
  profile.drop_record_of_deleted = false;
  profile.keep_taints_of_failing = false;
  profile.remark_pods_at_start = false;
  profile.keep_queue_while_nodes_exist = false;
  profile.sweep_while_disrupted = false;
  profile.clear_queues_on_leaving = false;
  profile.stopped_limiter = RateLimiter::Stopped::kReportsOneBurstAtZero;
  profile.timers_follow_tolerations = line == Line::kV1_34;
  profile.retry_failed_deletions = false;
  profile.explain_taints = false;
  profile.untaint_on_node_event = false;
  profile.detect_at_deadline = false;
  profile.lease_may_step_back = false;
  if (line == Line::kV1_7) make_original(profile);
  if (line == Line::kV1_19) {
    profile.zone_exclusion = ZoneExclusion::kLabelOrName;
    profile.disruption_target_condition = false;
    profile.taint_events_from = "taint-controller";
  }
  return profile;
}

LineDefaults defaults_of(std::optional<Line> line) {
  if (!line || line == Line::kV1_34) return {};
  return {line == Line::kV1_7 ? EvictionMode::kLegacy : EvictionMode::kTaint, seconds(40)};
}

}  // namespace spillway::lifecycle
