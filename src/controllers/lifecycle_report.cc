#include "controllers/lifecycle_report.h"

#include "api/text/time_text.h"
#include "policy/decision_json.h"
#include "policy/lifecycle/zone.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace spillway::controllers {

namespace {

using policy::Reason;
using policy::ReasonCode;

std::string_view state_text(const lifecycle::NodeMonitor::Zone& zone) {
  return lifecycle::to_string(zone.state.value_or(lifecycle::ZoneState::kInitial));
}

Reason conditions_reason(const api::Node& node) {
  Reason reason{ReasonCode::kNodeConditions, {}};
  for (const api::NodeCondition& condition : node.status.conditions) {
    reason.facts.push_back({condition.type, condition.status});
  }
  return reason;
}

bool is_tainted(const api::Node& node, const lifecycle::Profile& profile) {
  return std::ranges::any_of(node.spec.taints, [&](const api::Taint& taint) {
    return taint.effect == api::kNoExecute &&
           (taint.key == profile.facts.not_ready_taint || taint.key == profile.facts.unreachable_taint);
  });
}

api::Json document_of(const ZoneStanding& zone) {
  api::Json item = api::Json::object({{"zone", zone.zone},
                                      {"state", std::string(lifecycle::to_string(zone.state))},
                                      {"nodes", std::int64_t{zone.counts.size()}},
                                      {"readyNodes", std::int64_t{zone.counts.ready}},
                                      {"nodesPerSecond", std::round(zone.nodes_per_second * 1e6) / 1e6},
                                      {"waitingNodes", zone.waiting}});
  if (zone.next_token_in) item["nextTokenInSeconds"] = in_seconds(*zone.next_token_in);
  if (!zone.next_node.empty()) item["nextNode"] = zone.next_node;
  if (zone.next_act_in) item["nextActInSeconds"] = in_seconds(*zone.next_act_in);
  if (zone.brake) item["brake"] = policy::to_json(*zone.brake);
  return item;
}

}  // namespace

/// A brake over everything, or over the zone, or over its first node; then the zone's own state.
std::optional<Reason> LifecycleReport::brake_on(std::string_view zone, const Zone& details, Now now) const {
  if (auto held = gate_.brakes().hold_in(zone, now)) return held;
  const auto entries = details.queue.entries();
  if (!entries.empty()) {
    if (const ActGate::Held* held = gate_.find("node/" + entries.front()->name)) return held->reason;
  }
  if (nodes_.monitor().in_master_disruption()) return Reason{ReasonCode::kMasterDisruption, {}};
  if (details.queue.limiter().effective_rate() <= 0 && details.state) {
    return Reason{ReasonCode::kZoneHalted, {{"state", std::string(state_text(details))}}};
  }
  return std::nullopt;
}

/// The time at which the entry at `place` (from 0) gets its token: the first with the next one, each later one a token
/// later.
std::optional<Instant> LifecycleReport::due(const Zone& zone, std::size_t place, Now now) const {
  const lifecycle::RateLimiter& limiter = zone.queue.limiter();
  const auto entries = zone.queue.entries();
  const auto first = limiter.next_grant(now.mono);
  if (!first || place >= entries.size() || limiter.effective_rate() <= 0) return std::nullopt;
  const double behind = static_cast<double>(place) / static_cast<double>(limiter.effective_rate());
  Instant at = *first + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(behind));
  at = std::max(at, entries[place]->process_at);
  if (const ActGate::Held* held = gate_.find("node/" + entries[place]->name)) at = std::max(at, held->ask_again);
  return at;
}

std::vector<ZoneStanding> LifecycleReport::zones(Now now) const {
  std::vector<ZoneStanding> standings;
  for (const auto& [key, zone] : nodes_.monitor().zones()) {
    ZoneStanding& details = standings.emplace_back();
    details.zone = lifecycle::readable_zone(key);
    details.state = zone.state.value_or(lifecycle::ZoneState::kInitial);
    details.counts = zone.counts;
    details.nodes_per_second = static_cast<double>(zone.queue.limiter().effective_rate());
    if (const auto token = zone.queue.limiter().next_grant(now.mono))
      details.next_token_in = std::max(*token - now.mono, Duration::zero());
    const auto entries = zone.queue.entries();
    details.waiting = static_cast<std::int64_t>(entries.size());
    details.brake = brake_on(key, zone, now);
    if (entries.empty()) continue;
    details.next_node = entries.front()->name;
    if (gate_.brakes().hold_in(key, now)) continue;  // the end of a manual hold is unknown
    if (const auto at = due(zone, 0, now)) details.next_act_in = std::max(*at - now.mono, Duration::zero());
  }
  return standings;
}

/// The number of nodes that no pass has seen yet: they belong to no zone.
std::int64_t LifecycleReport::new_nodes() const {
  return std::ranges::count_if(shared_.nodes.cache().all(), [this](const auto& entry) {
    return !nodes_.monitor().find_record(entry.second->metadata.name).has_value();
  });
}

api::Json LifecycleReport::zones_document(Now now) const {
  api::Json items = api::Json::array();
  for (const ZoneStanding& zone : zones(now)) items.if_array()->push_back(document_of(zone));
  api::Json document = api::Json::object({{"kind", "ZoneList"},
                                          {"apiVersion", "spillway/v1"},
                                          {"at", api::format_micro_time(now.wall)},
                                          {"masterDisruption", nodes_.monitor().in_master_disruption()},
                                          {"newNodes", new_nodes()},
                                          {"lookEverySeconds", in_seconds(nodes_.options().node_monitor_period)},
                                          {"items", std::move(items)}});
  if (const auto held = gate_.brakes().hold(now)) document["brake"] = policy::to_json(*held);
  return document;
}

Reason LifecycleReport::health_of(const api::Node& node, Now now) const {
  const auto record = nodes_.monitor().find_record(node.metadata.name);
  const lifecycle::HealthConfig& health = nodes_.options().monitor.health;
  if (!record)
    return {ReasonCode::kNeverPosted, {{"look_every_seconds", in_seconds(nodes_.options().node_monitor_period)}}};
  const bool posted = record->ready.has_value() && record->ready->heartbeat.has_value();
  const Duration grace = posted ? health.node_monitor_grace_period : health.node_startup_grace_period;
  const Duration silence = now.mono - record->probe;
  const auto lease = shared_.leases.cache().find("kube-node-lease/" + node.metadata.name);
  const bool by_lease = nodes_.options().profile.facts.leases && lease && lease->renew_time;
  const ReasonCode code = silence <= grace ? ReasonCode::kHeartbeatFresh
                          : posted         ? ReasonCode::kHeartbeatStale
                                           : ReasonCode::kNeverPosted;
  return {code,
          {{"from", std::string(by_lease ? "lease" : "status")},
           {"silence_seconds", in_seconds(silence)},
           {"grace_seconds", in_seconds(grace)}}};
}

/// The first of its pods that is evicted because of a taint.
std::optional<Reason> LifecycleReport::deletions_of(const std::string& node, Now now) const {
  std::optional<std::pair<Instant, std::string>> first;
  std::int64_t pods = 0;
  for (const PodPtr& pod : pods_by_node_.on(node)) {
    const auto* timer = taints_.schedule().find(api::PodKey{pod->metadata.ns, pod->metadata.name});
    if (timer == nullptr) continue;
    ++pods;
    std::pair candidate(timer->due, pod->metadata.ns + "/" + pod->metadata.name);
    if (!first || candidate < *first) first = std::move(candidate);
  }
  if (!first) return std::nullopt;
  return Reason{ReasonCode::kNextDeletion,
                {{"pod", first->second}, {"due_seconds", in_seconds(first->first - now.mono)}, {"pods", pods}}};
}

std::optional<policy::Decision> LifecycleReport::explain_pod(const std::string& key, Now now) const {
  const PodPtr pod = shared_.pods.cache().find(key);
  if (!pod) return std::nullopt;
  const ActGate::Held* held = gate_.find("pod/" + key);
  const auto* timer = taints_.schedule().find(pod->key());
  if (held == nullptr && timer == nullptr) return std::nullopt;
  policy::Decision decision;
  decision.at = now.wall;
  decision.by = "taint-eviction-controller";
  decision.area = policy::Area::kLifecycle;
  decision.action = "delete";
  decision.subject = {.kind = "Pod", .ns = pod->metadata.ns, .name = pod->metadata.name, .uid = pod->metadata.uid};
  decision.verdict = policy::Verdict::kWaits;
  if (held != nullptr) decision.reasons.push_back(held->reason);
  if (timer != nullptr) {
    decision.reasons.push_back({ReasonCode::kNextDeletion,
                                {{"pod", key},
                                 {"due_seconds", in_seconds(std::max(timer->due - now.mono, Duration::zero()))},
                                 {"pods", std::int64_t{1}}}});
  }
  return decision;
}

std::optional<policy::Decision> LifecycleReport::explain_node(const std::string& name, Now now) const {
  const auto node = shared_.nodes.cache().find(name);
  if (!node) return std::nullopt;
  policy::Decision decision;
  decision.at = now.wall;
  decision.by = "node-controller";
  decision.area = policy::Area::kLifecycle;
  decision.action = nodes_.options().profile.mode == lifecycle::EvictionMode::kLegacy ? "evict" : "taint";
  decision.subject = {.kind = "Node", .ns = {}, .name = name, .uid = node->metadata.uid};
  decision.verdict = policy::Verdict::kRests;
  decision.reasons.push_back(health_of(*node, now));

  const std::string key = lifecycle::zone_key(node->metadata.labels, nodes_.options().profile.facts.zone_labels);
  const auto zone = nodes_.monitor().zones().find(key);
  const ActGate::Held* held = gate_.find("node/" + name);
  const bool tainted = is_tainted(*node, nodes_.options().profile);
  if (zone != nodes_.monitor().zones().end()) {
    const auto entries = zone->second.queue.entries();
    const auto entry =
        std::ranges::find(entries, name, [](const auto* each) -> const std::string& { return each->name; });
    const auto place = static_cast<std::size_t>(entry - entries.begin());
    const bool waits = entry != entries.end();
    decision.verdict = waits || held != nullptr ? policy::Verdict::kWaits
                       : tainted                ? policy::Verdict::kActs
                                                : policy::Verdict::kRests;
    if (held != nullptr) {
      decision.reasons.push_back(held->reason);
    } else if (auto brake = brake_on(key, zone->second, now); brake && waits) {
      decision.reasons.push_back(*std::move(brake));
    }
    if (waits) {
      Reason queued{ReasonCode::kZoneRateLimited,
                    {{"place", static_cast<std::int64_t>(place) + 1},
                     {"waiting_nodes", static_cast<std::int64_t>(entries.size())},
                     {"nodes_per_second", static_cast<double>(zone->second.queue.limiter().effective_rate())}}};
      if (const auto at = due(zone->second, place, now); at && !gate_.brakes().hold_in(key, now)) {
        queued.facts.push_back({"due_seconds", in_seconds(std::max(*at - now.mono, Duration::zero()))});
      }
      decision.reasons.push_back(std::move(queued));
    }
    decision.reasons.push_back({ReasonCode::kZoneState,
                                {{"zone", lifecycle::readable_zone(key)},
                                 {"state", std::string(state_text(zone->second))},
                                 {"ready_nodes", std::int64_t{zone->second.counts.ready}},
                                 {"nodes", std::int64_t{zone->second.counts.size()}}}});
  }
  decision.reasons.push_back(conditions_reason(*node));
  if (auto deletions = deletions_of(name, now)) decision.reasons.push_back(*std::move(deletions));
  return decision;
}

}  // namespace spillway::controllers
