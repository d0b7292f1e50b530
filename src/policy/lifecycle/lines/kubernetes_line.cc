#include "policy/lifecycle/lines/kubernetes_line.h"

namespace spillway::lifecycle {
namespace {

/// 1.7, with the original NodeController.
LineFacts facts_of_original() {
  LineFacts facts;
  facts.leases = false;
  facts.out_of_disk = true;
  facts.pid_pressure = false;
  facts.never_posted_overwrites_record = true;
  facts.never_posted_hides_current = true;
  facts.zone_labels = ZoneLabels::kBetaOnly;
  facts.zone_exclusion = ZoneExclusion::kName;
  facts.zone_of_known_nodes = false;
  facts.bucket = BucketKind::kTicks;
  facts.requeue_every_pass = false;
  facts.counts_before_trying = true;
  facts.lists_pods_first = false;
  facts.mark_pods_skips_false = false;
  facts.mark_pods_events = false;
  facts.mark_pods_retry = false;
  facts.checks_kubelet_version = true;
  facts.pod_updates = false;
  facts.eviction_status_per_node = false;
  facts.missing_pod_is_error = true;
  facts.controller_name = "NodeController";
  facts.node_events_from = "controllermanager";
  facts.taint_events_from = "controllermanager";
  facts.cloud_events_by_node_controller = true;
  facts.not_ready_taint = api::kTaintNodeNotReadyAlpha;
  facts.unreachable_taint = api::kTaintNodeUnreachableAlpha;
  facts.disruption_target_condition = false;
  facts.forever_toleration_cancels_timer = false;
  return facts;
}

}  // namespace

std::string_view to_string(Line line) {
  switch (line) {
    case Line::kV1_7:
      return "v1.7";
    case Line::kV1_19:
      return "v1.19";
    case Line::kV1_29:
      return "v1.29";
    case Line::kV1_34:
      return "v1.34";
  }
  return {};
}

std::optional<Line> parse_line(std::string_view text) {
  for (const Line line : kLines) {
    if (to_string(line) == text) return line;
  }
  return std::nullopt;
}

LineFacts facts_of(Line line) {
  if (line == Line::kV1_7) return facts_of_original();
  LineFacts facts;
  if (line == Line::kV1_19) {
    facts.zone_exclusion = ZoneExclusion::kLabelOrName;
    facts.disruption_target_condition = false;
    facts.taint_events_from = "taint-controller";
  }
  return facts;
}

Remedies remedies_of(Line line) {
  return {.pass_order = PassOrder::kStatusesFirst,
          .retries_taint_writes = false,
          .mark_changed_pods = false,
          .decide_on_current = line == Line::kV1_34,
          .drop_record_of_deleted = false,
          .keep_taints_of_failing = false,
          .remark_pods_at_start = false,
          .keep_queue_while_nodes_exist = false,
          .sweep_while_disrupted = false,
          .clear_queues_on_leaving = false,
          .stopped_limiter = RateLimiter::Stopped::kReportsOneBurstAtZero,
          .timers_follow_tolerations = line == Line::kV1_34,
          .retry_failed_deletions = false,
          .explain_taints = false,
          .detect_at_deadline = false,
          .lease_may_step_back = false,
          .untaint_on_node_event = false};
}

Profile upstream_profile(Line line, EvictionMode mode) {
  return {mode, facts_of(line), remedies_of(line)};
}

LineDefaults defaults_of(std::optional<Line> line) {
  if (!line || line == Line::kV1_34) return {};
  return {line == Line::kV1_7 ? EvictionMode::kLegacy : EvictionMode::kTaint, seconds(40)};
}

}  // namespace spillway::lifecycle
