#include "policy/lifecycle/scanning_monitor.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace spillway::lifecycle {
namespace {

bool has_no_execute(const api::Node& node, std::string_view key) {
  return std::ranges::any_of(
      node.spec.taints, [&](const api::Taint& taint) { return taint.key == key && taint.effect == api::kNoExecute; });
}

}  // namespace

ScanningMonitor::ScanningMonitor(MonitorConfig config, Profile profile) : config_(config), profile_(profile) {}

ScanningMonitor::MemoryMap::iterator ScanningMonitor::find(std::string_view name) {
  if (cursor_ != nodes_.end()) {
    if (cursor_->first == name) return cursor_;
    if (const auto next = std::next(cursor_); next != nodes_.end() && next->first == name) return cursor_ = next;
  }
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) cursor_ = found;
  return found;
}

void ScanningMonitor::refresh(const api::Node& node, Memory& memory) const {
  const std::string& version = node.metadata.resource_version;
  if (!version.empty() && version == memory.resource_version) return;
  memory.resource_version = version;
  memory.zone = zone_key(node.metadata.labels, profile_.facts.zone_labels);
  memory.excluded = is_excluded_from_zone(node.metadata, profile_.facts.zone_exclusion);
}

ScanningMonitor::Memory& ScanningMonitor::memory_of(const api::Node& node) {
  auto entry = find(node.metadata.name);
  if (entry == nodes_.end()) entry = cursor_ = nodes_.try_emplace(node.metadata.name).first;
  refresh(node, entry->second);
  return entry->second;
}

bool ScanningMonitor::knows(std::string_view node) const {
  const auto entry = nodes_.find(node);
  return entry != nodes_.end() && entry->second.known;
}

/// A zone without a state starts over: Initial, and a queue of its own behind a full bucket.
ScanningMonitor::Zone& ScanningMonitor::open_zone(const std::string& key, Now now) {
  const auto it = zones_.find(key);
  if (it != zones_.end() && (it->second.state || profile_.remedies.keep_queue_while_nodes_exist)) {
    if (!it->second.state) it->second.state = ZoneState::kInitial;
    return it->second;
  }
  Zone fresh{ZoneState::kInitial,
             {},
             RateLimitedQueue(RateLimiter(profile_.facts.bucket, config_.zones.node_eviction_rate, 1, now.mono,
                                          profile_.remedies.stopped_limiter))};
  return zones_.insert_or_assign(key, std::move(fresh)).first->second;
}

ScanningMonitor::Zone& ScanningMonitor::find_or_open_zone(const api::Node& node, Now now) {
  const std::string& key = memory_of(node).zone;
  const auto it = zones_.find(key);
  return it != zones_.end() ? it->second : open_zone(key, now);
}

RateLimitedQueue* ScanningMonitor::find_queue(const api::Node& node) {
  const auto it = zones_.find(memory_of(node).zone);
  return it == zones_.end() ? nullptr : &it->second.queue;
}

/// Moves on to the next entry.
void ScanningMonitor::forget(MemoryMap::iterator& entry) {
  mark_pods_again_.erase(entry->first);
  if (profile_.remedies.drop_record_of_deleted) {
    if (cursor_ == entry) cursor_ = nodes_.end();
    entry = nodes_.erase(entry);
  } else {
    entry->second.known = false;
    entry->second.eviction = EvictionStatus::kUnmarked;
    ++entry;
  }
}

ScanningMonitor::Opening ScanningMonitor::begin_pass(Snapshot snapshot, Now now) {
  for (auto& [key, zone] : zones_) zone.counts = {};
  Opening opening;
  // Both are in name order: one walk over them finds added and removed nodes.
  auto entry = nodes_.begin();
  const auto drop_before = [&](const std::string* name) {
    while (entry != nodes_.end() && (name == nullptr || entry->first < *name)) {
      if (entry->second.known) {
        opening.deleted.push_back(entry->first);
        forget(entry);
      } else {
        ++entry;
      }
    }
  };
  for (const api::Node* node : snapshot) {
    const std::string& name = node->metadata.name;
    drop_before(&name);
    const bool present = entry != nodes_.end() && entry->first == name;
    const bool recreated = present && entry->second.known && profile_.remedies.drop_record_of_deleted &&
                           entry->second.uid != node->metadata.uid;
    if (recreated) {
      opening.deleted.push_back(name);
      forget(entry);
    }
    if (!present || recreated) entry = nodes_.try_emplace(entry, name);
    Memory& memory = entry->second;
    refresh(*node, memory);
    if (!memory.known) {
      opening.added.push_back(node);
    } else if (profile_.facts.zone_of_known_nodes) {
      open_zone(memory.zone, now);
    }
    ++entry;
  }
  drop_before(nullptr);
  for (const api::Node* node : opening.added) {
    Memory& memory = memory_of(*node);
    open_zone(memory.zone, now);
    memory.known = true;
    memory.uid = node->metadata.uid;
    if (profile_.mode == EvictionMode::kLegacy) {
      cancel_eviction(*node);
    } else if (!profile_.remedies.keep_taints_of_failing) {
      opening.untaint.push_back(node);
    }
    if (profile_.remedies.remark_pods_at_start && readiness_of(*node) != Readiness::kTrue) {
      mark_pods_again_.insert(node->metadata.name);
    }
  }
  return opening;
}

Assessment ScanningMonitor::assess(const api::Node& node, const api::Lease* lease, Now now) {
  return assess_node_health(node, lease, memory_of(node).record, config_.health, profile_, now);
}

void ScanningMonitor::confirm_written(const api::Node& node, const Assessment& assessment, Now now) {
  Memory& memory = memory_of(node);
  if (memory.record) record_written_conditions(assessment, *memory.record, now);
}

void ScanningMonitor::count(const api::Node& node, const Assessment& assessment) {
  const Memory& memory = memory_of(node);
  if (memory.excluded) return;
  const auto it = zones_.find(memory.zone);
  if (it == zones_.end()) return;
  ZoneCounts& counts = it->second.counts;
  ++(assessment.current == Readiness::kTrue ? counts.ready : counts.unready);
}

TaintAction ScanningMonitor::queue_for_tainting(const api::Node& node, std::string_view wanted,
                                                std::string_view opposite, TaintAction swap, Now now) {
  if (has_no_execute(node, opposite)) return swap;  // at once: the node is tainted already
  RateLimitedQueue& queue = find_or_open_zone(node, now).queue;
  const bool tainted = has_no_execute(node, wanted);
  if (tainted && profile_.remedies.keep_taints_of_failing) {
    queue.remove(node.metadata.name);
    return TaintAction::kNone;
  }
  if (!tainted && profile_.facts.requeue_every_pass) queue.remove(node.metadata.name);
  queue.add(node.metadata.name, node.metadata.uid, now.mono);
  return TaintAction::kNone;
}

TaintAction ScanningMonitor::decide_taint(const api::Node& node, const Assessment& assessment, Now now) {
  if (!assessment.current) return TaintAction::kNone;
  const Readiness readiness = profile_.remedies.decide_on_current ? *assessment.current : *assessment.observed;
  if (master_disruption_ && profile_.remedies.sweep_while_disrupted && readiness != Readiness::kTrue)
    return TaintAction::kNone;
  switch (taint_action_for(readiness)) {
    case TaintAction::kBecomeNotReady:
      return queue_for_tainting(node, profile_.facts.not_ready_taint, profile_.facts.unreachable_taint,
                                TaintAction::kBecomeNotReady, now);
    case TaintAction::kBecomeUnreachable:
      return queue_for_tainting(node, profile_.facts.unreachable_taint, profile_.facts.not_ready_taint,
                                TaintAction::kBecomeUnreachable, now);
    case TaintAction::kRemoveBoth: {
      const RateLimitedQueue* queue = find_queue(node);
      const bool waits = queue != nullptr && queue->knows(node.metadata.name);
      const bool tainted = has_no_execute(node, profile_.facts.not_ready_taint) ||
                           has_no_execute(node, profile_.facts.unreachable_taint);
      return waits || tainted ? TaintAction::kRemoveBoth : TaintAction::kNone;
    }
    case TaintAction::kNone:
      break;
  }
  return TaintAction::kNone;
}

ScanningMonitor::PodEviction ScanningMonitor::decide_eviction(const api::Node& node, const Assessment& assessment,
                                                              Now now) {
  if (!assessment.current) return PodEviction::kNone;
  return decide_eviction(node, *assessment.observed, now);
}

ScanningMonitor::PodEviction ScanningMonitor::decide_eviction_of_new_pod(const api::Node& node, Now now) {
  const HealthRecord* record = find_record(node.metadata.name);
  if (record == nullptr || !record->ready) return PodEviction::kNone;
  return decide_eviction(node, record->ready->status, now);
}

ScanningMonitor::PodEviction ScanningMonitor::decide_eviction(const api::Node& node, Readiness readiness, Now now) {
  if (readiness == Readiness::kTrue) {
    cancel_eviction(node);
    return PodEviction::kNone;
  }
  const HealthRecord* record = find_record(node.metadata.name);
  if (record == nullptr) return PodEviction::kNone;
  const Instant since = readiness == Readiness::kFalse ? record->transition : record->probe;
  if (now.mono <= since + config_.pod_eviction_timeout) return PodEviction::kNone;
  if (profile_.facts.eviction_status_per_node) {
    Memory& memory = memory_of(node);
    if (memory.known) {
      if (memory.eviction == EvictionStatus::kEvicted) return PodEviction::kDeleteAgain;
      memory.eviction = EvictionStatus::kToBeEvicted;
    }
  }
  const bool added = find_or_open_zone(node, now).queue.add(node.metadata.name, node.metadata.uid, now.mono);
  return added ? PodEviction::kQueued : PodEviction::kNone;
}

void ScanningMonitor::cancel_eviction(const api::Node& node) {
  memory_of(node).eviction = EvictionStatus::kUnmarked;
  dequeue(node);
}

void ScanningMonitor::evicted(std::string_view node) {
  const auto entry = find(node);
  if (entry != nodes_.end() && entry->second.known) entry->second.eviction = EvictionStatus::kEvicted;
}

ScanningMonitor::PodMarking ScanningMonitor::decide_marking(const api::Node& node, const Assessment& assessment) {
  const std::string& name = node.metadata.name;
  const bool turned =
      assessment.current && *assessment.current != Readiness::kTrue && *assessment.observed == Readiness::kTrue;
  const bool again = assessment.current && *assessment.observed != Readiness::kTrue && mark_pods_again_.contains(name);
  if (!turned && !again) mark_pods_again_.erase(name);
  return {turned, turned || again};
}

void ScanningMonitor::pods_unknown(const api::Node& node, const Assessment& assessment) {
  if (!profile_.facts.mark_pods_retry) return;
  if (assessment.current != Readiness::kTrue && assessment.observed == Readiness::kTrue) {
    mark_pods_again_.insert(node.metadata.name);
  }
}

void ScanningMonitor::pods_marked(std::string_view node, bool all) {
  if (all || !profile_.facts.mark_pods_retry) {
    if (const auto it = mark_pods_again_.find(node); it != mark_pods_again_.end()) mark_pods_again_.erase(it);
  } else {
    mark_pods_again_.emplace(node);
  }
}

/// Zones without counted nodes lose their state; those without any node vanish. True if every zone that is left was in
/// full disruption.
bool ScanningMonitor::drop_vanished_zones(Snapshot snapshot) {
  std::set<std::string_view> in_use;
  if (profile_.remedies.keep_queue_while_nodes_exist) {
    for (const api::Node* node : snapshot) {
      const std::string& zone = memory_of(*node).zone;
      if (!in_use.contains(zone)) in_use.insert(zone);
    }
  }
  bool all_were_disrupted = true;
  for (auto it = zones_.begin(); it != zones_.end();) {
    Zone& zone = it->second;
    if (zone.counts.size() > 0) {
      all_were_disrupted = all_were_disrupted && zone.state == ZoneState::kFullDisruption;
    } else if (!profile_.remedies.keep_queue_while_nodes_exist) {
      zone.state.reset();
    } else if (!in_use.contains(it->first)) {
      it = zones_.erase(it);
      continue;
    }
    ++it;
  }
  return all_were_disrupted;
}

void ScanningMonitor::apply_state(const std::string& key, Zone& zone, ZoneState state, Verdict& verdict, Now now) {
  if (const auto rate = eviction_rate(state, zone.counts.size(), config_.zones)) {
    zone.queue.limiter().set_rate(*rate, now.mono);
  }
  verdict.changes.push_back(
      {key, std::exchange(zone.state, state), state, zone.counts, zone.queue.limiter().effective_rate()});
}

ScanningMonitor::Verdict ScanningMonitor::finish_pass(Snapshot snapshot, Now now) {
  Verdict verdict;
  std::map<std::string, ZoneState> states;
  bool all_disrupted = true;
  for (const auto& [key, zone] : zones_) {
    if (zone.counts.size() == 0) continue;
    const ZoneState state = zone_state(zone.counts, config_.zones.unhealthy_zone_threshold);
    all_disrupted = all_disrupted && state == ZoneState::kFullDisruption;
    states.emplace(key, state);
  }
  const bool all_were_disrupted = drop_vanished_zones(snapshot);
  verdict.master_disruption = all_disrupted && !states.empty();
  verdict.entered_master_disruption = all_disrupted && !all_were_disrupted;
  verdict.left_master_disruption = !all_disrupted && all_were_disrupted;
  master_disruption_ = verdict.master_disruption;

  const bool sweep =
      verdict.entered_master_disruption || (verdict.master_disruption && profile_.remedies.sweep_while_disrupted);
  if (sweep && profile_.mode == EvictionMode::kTaint) verdict.untaint.assign(snapshot.begin(), snapshot.end());
  if (verdict.entered_master_disruption) {
    if (profile_.mode == EvictionMode::kLegacy) {
      for (const api::Node* node : snapshot) cancel_eviction(*node);
    }
    for (auto& [key, zone] : zones_) {
      if (!zone.state) continue;
      zone.queue.limiter().set_rate(0, now.mono);
      verdict.changes.push_back({key, std::exchange(zone.state, ZoneState::kFullDisruption), ZoneState::kFullDisruption,
                                 zone.counts, zone.queue.limiter().effective_rate()});
    }
    return verdict;
  }
  if (all_disrupted) return verdict;
  if (verdict.left_master_disruption) {
    for (const api::Node* node : snapshot) {
      std::optional<HealthRecord>& record = memory_of(*node).record;
      if (!record) continue;
      record->probe = now.mono;
      record->transition = now.mono;
    }
  }
  for (auto& [key, zone] : zones_) {
    const auto state = states.find(key);
    if (state == states.end()) continue;
    if (verdict.left_master_disruption && profile_.remedies.clear_queues_on_leaving) zone.queue.clear();
    if (verdict.left_master_disruption || zone.state != state->second) {
      apply_state(key, zone, state->second, verdict, now);
    }
  }
  return verdict;
}

bool ScanningMonitor::dequeue(const api::Node& node) {
  RateLimitedQueue* queue = find_queue(node);
  return queue != nullptr && queue->remove(node.metadata.name);
}

void ScanningMonitor::process_queues(
    Now now, const std::function<Answer(const std::string& zone, const RateLimitedQueue::Entry&)>& handle) {
  for (auto& [key, zone] : zones_) {
    // Every take of the head is a nanosecond later than the one before, as it would be by a clock: an entry with an
    // immediate retry has its turn if there is another token.
    Instant at = now.mono;
    for (auto entry = zone.queue.take(at); entry; entry = zone.queue.take(at)) {
      const Answer answer = handle(key, *entry);
      if (answer.handled == Handled::kRetry) zone.queue.put_back(*std::move(entry), answer.wait, at);
      at += nanoseconds(1);
    }
  }
}

void ScanningMonitor::requeue(const std::string& zone, RateLimitedQueue::Entry entry, Duration wait, Now now) {
  const auto it = zones_.find(zone);
  if (it != zones_.end()) it->second.queue.put_back(std::move(entry), wait, now.mono);
}

const HealthRecord* ScanningMonitor::find_record(std::string_view node) const {
  const auto entry = nodes_.find(node);
  return entry == nodes_.end() || !entry->second.record ? nullptr : &*entry->second.record;
}

}  // namespace spillway::lifecycle
