// The memory of the node lifecycle between passes and its decisions: records of nodes, zones with their states and
// queues, the pods that are still to be marked. It does no I/O; its caller carries decisions out and reports back.
//
// One pass: begin_pass returns the nodes to sync; per node in name order assess (and confirm_written), count, decide;
// finish_pass. A caller may run finish_pass before the decide calls or after them (PassOrder). Synced are the nodes
// that were touched since the last pass, those that have been silent for their grace period, and those that are not at
// rest: not Ready, tainted by us, waiting, kept due, their pods still to be marked. A pass decides the same as one that
// syncs all nodes, provided that every change of a node or a lease is followed by touch().
// Thread: any (a value). Bound: one record per node, one zone per zone key in use. Cost of a pass: the nodes that it
// syncs, and the number of zones. Source: spec "Node lifecycle", S4 to S8; vectors lifecycle/node_health,
// disruption_traces.
#pragma once

#include "api/object/lease.h"
#include "api/object/node.h"
#include "base/time.h"
#include "policy/lifecycle/node_health.h"
#include "policy/lifecycle/node_records.h"
#include "policy/lifecycle/profile.h"
#include "policy/lifecycle/rate_limited_queue.h"
#include "policy/lifecycle/zone_table.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::lifecycle {

struct MonitorConfig {
  HealthConfig health;
  ZoneConfig zones;
  Duration pod_eviction_timeout = minutes(5);  // EvictionMode::kLegacy; see lines/timeout_evictions.h
};

/// The change of a node's NoExecute taints.
enum class TaintAction {
  kNone,
  kRemoveBoth,
  kBecomeNotReady,     // add not-ready, remove unreachable
  kBecomeUnreachable,  // the mirror image
};

std::string_view to_string(TaintAction action);
/// The taints that the Ready condition alone calls for, before any limiter.
TaintAction taint_action_for(Readiness readiness);

class NodeMonitor {
 public:
  /// Finds a node in the cache; nullptr: it does not exist.
  using Find = std::function<const api::Node*(std::string_view name)>;
  using Zone = ZoneTable::Zone;
  using ZoneChange = ZoneTable::Change;

  struct Opening {
    std::vector<const api::Node*> due;  // to sync, in name order
    std::vector<const api::Node*> added;
    std::vector<std::string> deleted;
  };

  struct Verdict : ZoneTable::Evaluation {
    /// All nodes are to be left alone: both NoExecute taints are to be removed from every node that has one, and every
    /// node is removed from its queue (on success call dequeue). All nodes that have a taint or wait were due in this
    /// pass.
    bool sweep = false;
  };

  /// The steps for the Ready conditions of one node's pods.
  struct PodMarking {
    bool node_event = false;  // NodeNotReady, once per transition
    bool mark = false;        // set Ready=False on the node's pods, then call pods_marked
  };

  enum class Handled { kDone, kRetry };

  struct Answer {
    Handled handled = Handled::kDone;
    Duration wait{};  // before the retry
  };

  NodeMonitor(MonitorConfig config, Profile profile);
  NodeMonitor(const NodeMonitor&) = delete;
  NodeMonitor& operator=(const NodeMonitor&) = delete;

  /// The node or its lease was updated, or the node is new or deleted: the next pass syncs it.
  void touch(std::string_view name);
  Opening begin_pass(const Find& find, Now now);
  /// Called in a pass for a node that is due, or after any event about a node.
  Assessment assess(const api::Node& node, const api::Lease* lease, Now now);
  /// The conditions in `assessment.write` were accepted.
  void confirm_written(const api::Node& node, const Assessment& assessment, Now now);
  /// Counts the node in its zone with this status. Excluded nodes are not counted.
  void count(const api::Node& node, const Assessment& assessment);

  /// kNone also when the node was queued for tainting, or is Ready and carries neither taint nor waits. After
  /// kRemoveBoth succeeded call dequeue.
  TaintAction decide_taint(const api::Node& node, const Assessment& assessment, Now now);

  PodMarking decide_marking(const api::Node& node, const Assessment& assessment);
  /// The pods of the node could not be listed in this pass: nothing else is decided for it.
  void pods_unknown(const api::Node& node, const Assessment& assessment);
  void pods_marked(std::string_view node, bool all);

  Verdict finish_pass(Now now);

  /// Puts the node into the queue of its zone; false if its name is registered there already.
  bool enqueue(const api::Node& node, Now now);
  bool dequeue(const api::Node& node);
  /// Takes every known node out of the queue of its zone.
  void dequeue_all();
  /// `keep`: the node is synced in every pass, whatever its state.
  void keep_due(std::string_view node, bool keep);
  /// Calls `handle` for every waiting node that the limiter of its zone lets through.
  void process_queues(Now now,
                      const std::function<Answer(const std::string& zone, const RateLimitedQueue::Entry&)>& handle);
  /// A node that process_queues handed out could not be handled after all.
  void requeue(const std::string& zone, RateLimitedQueue::Entry entry, Duration wait, Now now);

  /// nullopt: nothing was recorded.
  std::optional<HealthRecord> find_record(std::string_view node) const;

  const ZoneTable::Zones& zones() const { return zones_.all(); }

  bool in_master_disruption() const { return master_disruption_; }

  bool knows(std::string_view node) const;

  /// The time at which the first node that has posted becomes silent; nodes that have never posted are due anyway.
  std::optional<Instant> first_deadline(Instant now) const;

  /// Counts the nodes that are not marked silent, and how many of them have been silent for longer than `late`.
  NodeRecords::Heartbeats heartbeats(Instant now, Duration late) const { return records_.heartbeats(now, late); }

 private:
  using Id = NodeRecords::Id;

  NodeRecords::Entry* find_entry(std::string_view name);
  Zone* find_zone(const api::Node& node);
  void refresh(const api::Node& node, NodeRecords::Entry& entry);
  Zone& find_or_open_zone(const api::Node& node, Now now);
  bool rests(const NodeRecords::Entry& entry) const;
  void uncount(NodeRecords::Entry& entry);
  void forget(Id id, Opening& opening);
  Id renew(Id id, const api::Node& node, Opening& opening);
  void register_node(const api::Node& node, Now now);
  TaintAction queue_for_tainting(const api::Node& node, std::string_view wanted, std::string_view opposite,
                                 TaintAction swap, Now now);

  MonitorConfig config_;
  Profile profile_;
  NodeRecords records_;
  ZoneTable zones_;
  bool master_disruption_ = false;
};

}  // namespace spillway::lifecycle
