// The node lifecycle by its rule as it is written down: every pass assesses all nodes. The reference for
// lifecycle::NodeMonitor, which assesses only those that can have changed.
// Thread: any (a value). Source: spec "Node lifecycle", S4 to S8.
#pragma once

#include "api/object/lease.h"
#include "api/object/node.h"
#include "base/time.h"
#include "policy/lifecycle/lines/timeout_evictions.h"
#include "policy/lifecycle/node_health.h"
#include "policy/lifecycle/node_monitor.h"
#include "policy/lifecycle/profile.h"
#include "policy/lifecycle/rate_limited_queue.h"
#include "policy/lifecycle/zone.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::lifecycle {

class ScanningMonitor {
 public:
  using Snapshot = std::span<const api::Node* const>;  // in name order

  struct Zone {
    std::optional<ZoneState> state;  // nullopt: no counted node was seen in the last pass
    ZoneCounts counts;
    RateLimitedQueue queue;
  };

  struct Opening {
    std::vector<const api::Node*> added;
    std::vector<std::string> deleted;
    /// Nodes of `added` whose NoExecute taints are both to be removed; on success call dequeue.
    std::vector<const api::Node*> untaint;
  };

  using ZoneChange = NodeMonitor::ZoneChange;

  struct Verdict {
    bool entered_master_disruption = false;
    bool left_master_disruption = false;
    bool master_disruption = false;  // afterwards: every zone is in full disruption, nothing is evicted
    std::vector<ZoneChange> changes;
    /// Both NoExecute taints are to be removed; on success call dequeue.
    std::vector<const api::Node*> untaint;
  };

  /// The action on one node's pods in legacy mode.
  using PodEviction = TimeoutEvictions::Step;

  /// The action on the Ready conditions of one node's pods.
  using PodMarking = NodeMonitor::PodMarking;
  using Handled = NodeMonitor::Handled;
  using Answer = NodeMonitor::Answer;

  ScanningMonitor(MonitorConfig config, Profile profile);
  ScanningMonitor(const ScanningMonitor&) = delete;
  ScanningMonitor& operator=(const ScanningMonitor&) = delete;

  Opening begin_pass(Snapshot snapshot, Now now);
  Assessment assess(const api::Node& node, const api::Lease* lease, Now now);
  /// The conditions in `assessment.write` were accepted.
  void confirm_written(const api::Node& node, const Assessment& assessment, Now now);
  /// Counts the node in its zone with this status. Excluded nodes are left out.
  void count(const api::Node& node, const Assessment& assessment);

  /// Taint mode. kNone also when the node was queued for tainting, or is Ready and carries neither taint nor waits.
  /// After kRemoveBoth succeeded call dequeue.
  TaintAction decide_taint(const api::Node& node, const Assessment& assessment, Now now);
  /// Legacy mode, for a node in a pass.
  PodEviction decide_eviction(const api::Node& node, const Assessment& assessment, Now now);
  /// Legacy mode, for a pod that appears on a node between passes (S10); by the recorded status.
  PodEviction decide_eviction_of_new_pod(const api::Node& node, Now now);

  PodMarking decide_marking(const api::Node& node, const Assessment& assessment);
  /// The pods of the node could not be listed in this pass: nothing else is decided for it.
  void pods_unknown(const api::Node& node, const Assessment& assessment);
  void pods_marked(std::string_view node, bool all);

  Verdict finish_pass(Snapshot snapshot, Now now);

  bool dequeue(const api::Node& node);
  /// Calls `handle` for every waiting node that a limiter lets through, zone by zone.
  void process_queues(Now now,
                      const std::function<Answer(const std::string& zone, const RateLimitedQueue::Entry&)>& handle);
  /// The pods of the node are being deleted now (1.19 deletes newcomers at once from then on).
  void evicted(std::string_view node);
  /// A node that process_queues handed out could not be handled after all.
  void requeue(const std::string& zone, RateLimitedQueue::Entry entry, Duration wait, Now now);

  const HealthRecord* find_record(std::string_view node) const;

  const std::map<std::string, Zone, std::less<>>& zones() const { return zones_; }

  bool in_master_disruption() const { return master_disruption_; }

  bool knows(std::string_view node) const;

 private:
  enum class EvictionStatus { kUnmarked, kToBeEvicted, kEvicted };

  /// The record per node name. Upstream never forgets the record of a deleted node: it stays with `known` false.
  struct Memory {
    bool known = false;
    std::string uid;
    EvictionStatus eviction = EvictionStatus::kUnmarked;
    std::optional<HealthRecord> record;
    // The facts that follow from the labels of the node at this resourceVersion.
    std::string resource_version;
    std::string zone;
    bool excluded = false;
  };

  using MemoryMap = std::map<std::string, Memory, std::less<>>;

  MemoryMap::iterator find(std::string_view name);
  Memory& memory_of(const api::Node& node);
  void refresh(const api::Node& node, Memory& memory) const;
  Zone& open_zone(const std::string& key, Now now);
  Zone& find_or_open_zone(const api::Node& node, Now now);
  RateLimitedQueue* find_queue(const api::Node& node);
  void forget(MemoryMap::iterator& entry);
  TaintAction queue_for_tainting(const api::Node& node, std::string_view wanted, std::string_view opposite,
                                 TaintAction swap, Now now);
  PodEviction decide_eviction(const api::Node& node, Readiness readiness, Now now);
  void cancel_eviction(const api::Node& node);
  void apply_state(const std::string& key, Zone& zone, ZoneState state, Verdict& verdict, Now now);
  bool drop_vanished_zones(Snapshot snapshot);

  MonitorConfig config_;
  Profile profile_;
  MemoryMap nodes_;
  MemoryMap::iterator cursor_ = nodes_.end();  // calls come in name order: the next node is mostly here or just behind
  std::map<std::string, Zone, std::less<>> zones_;
  std::set<std::string, std::less<>> mark_pods_again_;
  bool master_disruption_ = false;
};

}  // namespace spillway::lifecycle
