// The way in which the node lifecycle works, as three values that are chosen once at start: how pods of failed nodes
// are evicted, what a Kubernetes line has or has not, and which of upstream's defects are mended. The default member
// values are Spillway's own behaviour; those of a Kubernetes line are made in lines/kubernetes_line.h.
// Thread: any (values). Source: spec "Node lifecycle", profiles and S18 (T1 … T17 name the switches there).
#pragma once

#include "api/object/taint.h"
#include "policy/lifecycle/rate_limiter.h"
#include "policy/lifecycle/zone.h"

#include <cstdint>
#include <string_view>

namespace spillway::lifecycle {

/// The way in which pods of a failed node are evicted.
enum class EvictionMode {
  kTaint,   // NoExecute taints; the taint eviction controller deletes
  kLegacy,  // pod-eviction-timeout
};

/// Points in which Kubernetes lines differ from each other.
struct LineFacts {
  // Signals and conditions.
  bool leases = true;
  bool out_of_disk = false;                     // a condition of 1.7
  bool pid_pressure = true;                     // not in 1.7
  bool never_posted_overwrites_record = false;  // 1.7: a node without Ready starts its grace period over
  bool never_posted_hides_current = false;      // 1.7: no decision in the pass that writes the first conditions

  // Zones.
  ZoneLabels zone_labels = ZoneLabels::kTopology;
  ZoneExclusion zone_exclusion = ZoneExclusion::kLabel;
  bool zone_of_known_nodes = true;  // a known node may move to a new zone; not in 1.7

  // Queues and limiters.
  BucketKind bucket = BucketKind::kContinuous;
  bool requeue_every_pass = true;     // 1.7: order of first failure
  bool counts_before_trying = false;  // 1.7: evictions_total

  // Pods of a node that turned not ready.
  bool lists_pods_first = true;         // 1.7 lists the pods of a node only when it acts on them
  bool mark_pods_skips_false = true;    // 1.7 writes even if the pod's Ready is False already
  bool mark_pods_events = true;         // not in 1.7
  bool mark_pods_retry = true;          // not in 1.7
  bool checks_kubelet_version = false;  // 1.7: outdated kubelets' pods are not marked, their terminating pods forced
  bool pod_updates = true;              // S10, since 1.16

  // Pod-eviction-timeout.
  bool eviction_status_per_node = true;  // 1.19; 1.7 has only its queue
  bool missing_pod_is_error = false;     // 1.7: deleting a pod that is gone counts as an error

  // Names and texts in events, which users see.
  std::string_view controller_name = "Controller";  // in RegisteredNode and RemovingNode; 1.7: NodeController
  std::string_view node_events_from = "node-controller";
  std::string_view taint_events_from = "taint-eviction-controller";
  bool cloud_events_by_node_controller = false;  // DeletingNode in the words of 1.7

  // Taints.
  std::string_view not_ready_taint = api::kTaintNodeNotReady;
  std::string_view unreachable_taint = api::kTaintNodeUnreachable;
  bool disruption_target_condition = true;       // since 1.26
  bool forever_toleration_cancels_timer = true;  // not in 1.7

  friend bool operator==(const LineFacts&, const LineFacts&) = default;
};

/// The order of a pass, after all nodes were assessed.
enum class PassOrder : std::uint8_t {
  kZonesFirst,     // zones are evaluated, then statuses are written and followed
  kStatusesFirst,  // statuses are written and followed, then zones are evaluated with the results of the writes
};

/// Spillway's answers to upstream's defects. `false`, or the other value of an enum, restores upstream.
struct Remedies {
  /// T1, T4. Upstream assesses zones last, and without the nodes whose status could not be written.
  PassOrder pass_order = PassOrder::kZonesFirst;
  bool retries_taint_writes = true;          // after any error; upstream: conflicts only
  bool mark_changed_pods = true;             // upstream: a pod that has changed meanwhile is read again
  bool decide_on_current = true;             // T5: the status after the pass, as 1.34
  bool drop_record_of_deleted = true;        // T2
  bool keep_taints_of_failing = true;        // T3
  bool remark_pods_at_start = true;          // T6
  bool keep_queue_while_nodes_exist = true;  // T8
  bool sweep_while_disrupted = true;         // T10
  bool clear_queues_on_leaving = true;       // T11
  RateLimiter::Stopped stopped_limiter = RateLimiter::Stopped::kReportsZero;  // T12, T13
  bool timers_follow_tolerations = true;                                      // T14
  bool retry_failed_deletions = true;                                         // T15
  bool explain_taints = true;                                                 // T17: events
  /// Silence is noticed when it becomes too long, and signs of life when they arrive; upstream: both by the passes.
  bool detect_at_deadline = true;
  /// A lease renewed to an earlier time is a sign of life: its node's clock was set back. Upstream takes the node for
  /// silent until that clock has caught up.
  bool lease_may_step_back = true;
  bool untaint_on_node_event = true;  // S19: both taints are removed as soon as the node is seen Ready

  friend bool operator==(const Remedies&, const Remedies&) = default;
};

struct Profile {
  EvictionMode mode = EvictionMode::kTaint;
  LineFacts facts;
  Remedies remedies;

  friend bool operator==(const Profile&, const Profile&) = default;
};

}  // namespace spillway::lifecycle
