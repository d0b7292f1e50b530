#include "policy/lifecycle/node_monitor.h"

#include "base/check.h"
#include "base/rng.h"

#include <algorithm>
#include <utility>

namespace spillway::lifecycle {
namespace {

bool has_no_execute(const api::Node& node, std::string_view key) {
  return std::ranges::any_of(
      node.spec.taints, [&](const api::Taint& taint) { return taint.key == key && taint.effect == api::kNoExecute; });
}

}  // namespace

std::string_view to_string(TaintAction action) {
  switch (action) {
    case TaintAction::kNone:
      return "none";
    case TaintAction::kRemoveBoth:
      return "remove-both";
    case TaintAction::kBecomeNotReady:
      return "become-not-ready";
    case TaintAction::kBecomeUnreachable:
      return "become-unreachable";
  }
  return {};
}

TaintAction taint_action_for(Readiness readiness) {
  switch (readiness) {
    case Readiness::kTrue:
      return TaintAction::kRemoveBoth;
    case Readiness::kFalse:
      return TaintAction::kBecomeNotReady;
    case Readiness::kUnknown:
      return TaintAction::kBecomeUnreachable;
  }
  return TaintAction::kNone;
}

NodeMonitor::NodeMonitor(MonitorConfig config, Profile profile)
    : config_(config), profile_(profile), zones_(config_.zones, profile_) {}

NodeRecords::Entry* NodeMonitor::find_entry(std::string_view name) {
  const Id id = records_.find(name);
  return id == NodeRecords::kNone ? nullptr : &records_[id];
}

bool NodeMonitor::knows(std::string_view node) const {
  const Id id = records_.find(node);
  return id != NodeRecords::kNone && records_[id].known;
}

std::optional<Instant> NodeMonitor::first_deadline(Instant now) const {
  return records_.first_deadline(now, config_.health.node_monitor_grace_period);
}

void NodeMonitor::touch(std::string_view name) {
  records_.touch(records_.find_or_add(name));
}

/// The zone of the node when it was last synced; nullptr: it has none.
NodeMonitor::Zone* NodeMonitor::find_zone(const api::Node& node) {
  const NodeRecords::Entry* entry = find_entry(node.metadata.name);
  if (entry != nullptr && entry->zone != nullptr) return zones_.find(*entry->zone);
  return zones_.find(zone_key(node.metadata.labels, profile_.facts.zone_labels));
}

/// Updates the parts of the entry that depend on the node object alone.
void NodeMonitor::refresh(const api::Node& node, NodeRecords::Entry& entry) {
  const std::string key = zone_key(node.metadata.labels, profile_.facts.zone_labels);
  if (entry.zone == nullptr || *entry.zone != key) {
    uncount(entry);
    const std::string* joined = zones_.join(key);
    if (entry.zone != nullptr) zones_.release(*entry.zone);
    entry.zone = joined;
  }
  entry.excluded = is_excluded_from_zone(node.metadata, profile_.facts.zone_exclusion);
  entry.tainted =
      has_no_execute(node, profile_.facts.not_ready_taint) || has_no_execute(node, profile_.facts.unreachable_taint);
}

NodeMonitor::Zone& NodeMonitor::find_or_open_zone(const api::Node& node, Now now) {
  Zone* zone = find_zone(node);
  return zone != nullptr ? *zone : zones_.open(zone_key(node.metadata.labels, profile_.facts.zone_labels), now);
}

/// True if nothing changes for this node until it has an event or falls silent.
bool NodeMonitor::rests(const NodeRecords::Entry& entry) const {
  if (!entry.known || entry.touched || !entry.quiet || entry.tainted || entry.mark_pods_again || entry.kept_due)
    return false;
  if (entry.counted == NodeRecords::Counted::kNot && !entry.excluded) return false;
  const auto zone = zones_.all().find(*entry.zone);
  return zone == zones_.all().end() || !zone->second.queue.knows(entry.name);
}

void NodeMonitor::uncount(NodeRecords::Entry& entry) {
  const NodeRecords::Counted as = std::exchange(entry.counted, NodeRecords::Counted::kNot);
  if (as == NodeRecords::Counted::kNot) return;
  Zone* zone = zones_.find(*entry.zone);
  SPILLWAY_CHECK(zone != nullptr);
  --(as == NodeRecords::Counted::kReady ? zone->counts.ready : zone->counts.unready);
}

void NodeMonitor::forget(Id id, Opening& opening) {
  NodeRecords::Entry& entry = records_[id];
  opening.deleted.push_back(entry.name);
  uncount(entry);
  if (entry.zone != nullptr) zones_.release(*std::exchange(entry.zone, nullptr));
  records_.retire(id);
  entry.mark_pods_again = entry.kept_due = false;
  entry.touched = entry.quiet = entry.counting = false;
}

/// The entry of an existing node, cleared if it belonged to an earlier node of the name.
NodeMonitor::Id NodeMonitor::renew(Id id, const api::Node& node, Opening& opening) {
  const bool recreated = records_[id].known && profile_.remedies.drop_record_of_deleted &&
                         records_[id].uid_hash != fnv1a64(node.metadata.uid);
  if (recreated) {
    forget(id, opening);
    records_.erase(id);
    id = records_.find_or_add(node.metadata.name);
    records_.touch(id);
  }
  records_[id].touched = false;
  refresh(node, records_[id]);
  return id;
}

void NodeMonitor::register_node(const api::Node& node, Now now) {
  NodeRecords::Entry& entry = *find_entry(node.metadata.name);
  zones_.open(*entry.zone, now);
  entry.known = true;
  entry.uid_hash = fnv1a64(node.metadata.uid);
  if (profile_.remedies.remark_pods_at_start && readiness_of(node) != Readiness::kTrue) entry.mark_pods_again = true;
}

NodeMonitor::Opening NodeMonitor::begin_pass(const Find& find, Now now) {
  Opening opening;
  records_.touch_silent(now.mono, config_.health.node_monitor_grace_period);
  NodeRecords::Agenda& agenda = records_.agenda();
  std::vector<Id> gone;
  for (auto next = agenda.begin(); next != agenda.end();) {
    const auto [name, id] = *next++;  // handling this entry does not invalidate the later ones
    if (rests(records_[id])) {
      agenda.erase(std::prev(next));
      continue;
    }
    const api::Node* node = find(name);
    if (node == nullptr) {
      agenda.erase(std::prev(next));
      if (records_[id].known) {
        forget(id, opening);
        if (profile_.remedies.drop_record_of_deleted) gone.push_back(id);
      } else if (records_.record(id)) {
        records_[id].touched = false;
      } else {
        gone.push_back(id);
      }
      continue;
    }
    NodeRecords::Entry& entry = records_[renew(id, *node, opening)];
    entry.counting = true;
    opening.due.push_back(node);
    if (!entry.known) opening.added.push_back(node);
  }
  for (const Id id : gone) records_.erase(id);
  if (profile_.facts.zone_of_known_nodes) zones_.reopen(now);
  for (const api::Node* node : opening.added) register_node(*node, now);
  return opening;
}

Assessment NodeMonitor::assess(const api::Node& node, const api::Lease* lease, Now now) {
  const Id id = records_.find(node.metadata.name);
  std::optional<HealthRecord> record = id == NodeRecords::kNone ? std::nullopt : records_.record(id);
  Assessment assessment = assess_node_health(node, lease, record, config_.health, profile_, now);
  if (id == NodeRecords::kNone) return assessment;
  records_.set_record(id, *record);
  NodeRecords::Entry& entry = records_[id];
  const bool quiet =
      assessment.current == Readiness::kTrue && !assessment.silent && is_settled(*record, lease, profile_);
  const bool was_quiet = std::exchange(entry.quiet, quiet);
  if (quiet && !was_quiet && !entry.counting) records_.touch(id);  // the pass must notice that the node has returned
  return assessment;
}

void NodeMonitor::confirm_written(const api::Node& node, const Assessment& assessment, Now now) {
  const Id id = records_.find(node.metadata.name);
  std::optional<HealthRecord> record = id == NodeRecords::kNone ? std::nullopt : records_.record(id);
  if (!record) return;
  record_written_conditions(assessment, *record, now);
  records_.set_record(id, *record);
}

void NodeMonitor::count(const api::Node& node, const Assessment& assessment) {
  NodeRecords::Entry* entry = find_entry(node.metadata.name);
  if (entry == nullptr || !entry->counting) return;
  entry->counting = false;
  uncount(*entry);
  Zone* zone = zones_.find(*entry->zone);
  if (entry->excluded || zone == nullptr) return;
  const bool ready = assessment.current == Readiness::kTrue;
  entry->counted = ready ? NodeRecords::Counted::kReady : NodeRecords::Counted::kUnready;
  ++(ready ? zone->counts.ready : zone->counts.unready);
}

TaintAction NodeMonitor::queue_for_tainting(const api::Node& node, std::string_view wanted, std::string_view opposite,
                                            TaintAction swap, Now now) {
  if (has_no_execute(node, opposite)) return swap;  // at once: the node is tainted already
  RateLimitedQueue& queue = find_or_open_zone(node, now).queue;
  const bool tainted = has_no_execute(node, wanted);
  if (tainted && profile_.remedies.keep_taints_of_failing) {
    queue.remove(node.metadata.name);
    return TaintAction::kNone;
  }
  if (!tainted && profile_.facts.requeue_every_pass) {
    queue.requeue(node.metadata.name, node.metadata.uid, now.mono);
  } else {
    queue.add(node.metadata.name, node.metadata.uid, now.mono);
  }
  return TaintAction::kNone;
}

TaintAction NodeMonitor::decide_taint(const api::Node& node, const Assessment& assessment, Now now) {
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
      const Zone* zone = find_zone(node);
      const bool waits = zone != nullptr && zone->queue.knows(node.metadata.name);
      const bool tainted = has_no_execute(node, profile_.facts.not_ready_taint) ||
                           has_no_execute(node, profile_.facts.unreachable_taint);
      return waits || tainted ? TaintAction::kRemoveBoth : TaintAction::kNone;
    }
    case TaintAction::kNone:
      break;
  }
  return TaintAction::kNone;
}

NodeMonitor::PodMarking NodeMonitor::decide_marking(const api::Node& node, const Assessment& assessment) {
  NodeRecords::Entry* entry = find_entry(node.metadata.name);
  const bool asked = entry != nullptr && entry->mark_pods_again;
  const bool turned =
      assessment.current && *assessment.current != Readiness::kTrue && *assessment.observed == Readiness::kTrue;
  const bool again = asked && assessment.current && *assessment.observed != Readiness::kTrue;
  if (asked && !turned && !again) entry->mark_pods_again = false;
  return {turned, turned || again};
}

void NodeMonitor::pods_unknown(const api::Node& node, const Assessment& assessment) {
  if (!profile_.facts.mark_pods_retry) return;
  if (assessment.current == Readiness::kTrue || assessment.observed != Readiness::kTrue) return;
  pods_marked(node.metadata.name, false);
}

void NodeMonitor::pods_marked(std::string_view node, bool all) {
  if (NodeRecords::Entry* entry = find_entry(node)) entry->mark_pods_again = !all && profile_.facts.mark_pods_retry;
}

NodeMonitor::Verdict NodeMonitor::finish_pass(Now now) {
  for (const auto& [name, id] : records_.agenda()) {
    NodeRecords::Entry& entry = records_[id];
    if (!std::exchange(entry.counting, false)) continue;
    uncount(entry);  // without a result the node is left out of this pass
  }
  Verdict verdict{zones_.evaluate(now)};
  master_disruption_ = verdict.master_disruption;
  verdict.sweep = verdict.entered_master_disruption || (master_disruption_ && profile_.remedies.sweep_while_disrupted);
  if (verdict.left_master_disruption) records_.restart_all(now.mono);
  return verdict;
}

bool NodeMonitor::enqueue(const api::Node& node, Now now) {
  return find_or_open_zone(node, now).queue.add(node.metadata.name, node.metadata.uid, now.mono);
}

bool NodeMonitor::dequeue(const api::Node& node) {
  Zone* zone = find_zone(node);
  return zone != nullptr && zone->queue.remove(node.metadata.name);
}

/// Every node that waits is on the agenda, so the other nodes need no visit.
void NodeMonitor::dequeue_all() {
  for (const auto& [name, id] : records_.agenda()) {
    const NodeRecords::Entry& entry = records_[id];
    if (!entry.known) continue;
    if (Zone* zone = zones_.find(*entry.zone)) zone->queue.remove(name);
  }
}

void NodeMonitor::keep_due(std::string_view node, bool keep) {
  if (NodeRecords::Entry* entry = find_entry(node)) entry->kept_due = keep;
}

void NodeMonitor::process_queues(
    Now now, const std::function<Answer(const std::string& zone, const RateLimitedQueue::Entry&)>& handle) {
  for (auto& [key, zone] : zones_.all()) {
    // Each take from the queue is a nanosecond later than the one before, as it would be by a clock, so that an entry
    // with an immediate retry is taken again if there is another token.
    Instant at = now.mono;
    for (auto entry = zone.queue.take(at); entry; entry = zone.queue.take(at)) {
      const Answer answer = handle(key, *entry);
      if (answer.handled == Handled::kRetry) zone.queue.put_back(*std::move(entry), answer.wait, at);
      at += nanoseconds(1);
    }
  }
}

void NodeMonitor::requeue(const std::string& zone, RateLimitedQueue::Entry entry, Duration wait, Now now) {
  if (Zone* found = zones_.find(zone)) found->queue.put_back(std::move(entry), wait, now.mono);
}

std::optional<HealthRecord> NodeMonitor::find_record(std::string_view node) const {
  const Id id = records_.find(node);
  return id == NodeRecords::kNone ? std::nullopt : records_.record(id);
}

}  // namespace spillway::lifecycle
