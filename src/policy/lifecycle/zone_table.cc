#include "policy/lifecycle/zone_table.h"

#include "base/check.h"

#include <utility>

namespace spillway::lifecycle {

ZoneTable::Zone* ZoneTable::find(std::string_view key) {
  const auto it = zones_.find(key);
  return it == zones_.end() ? nullptr : &it->second;
}

ZoneTable::Zone& ZoneTable::open(const std::string& key, Now now) {
  const auto it = zones_.find(key);
  if (it != zones_.end() && (it->second.state || profile_.remedies.keep_queue_while_nodes_exist)) {
    if (!it->second.state) it->second.state = ZoneState::kInitial;
    return it->second;
  }
  Zone fresh{ZoneState::kInitial, it == zones_.end() ? ZoneCounts{} : it->second.counts,
             RateLimitedQueue(RateLimiter(profile_.facts.bucket, config_.node_eviction_rate, 1, now.mono,
                                          profile_.remedies.stopped_limiter))};
  return zones_.insert_or_assign(key, std::move(fresh)).first->second;
}

void ZoneTable::reopen(Now now) {
  for (const auto& [key, nodes] : nodes_) {
    const Zone* zone = find(key);
    if (zone == nullptr || !zone->state) open(key, now);
  }
}

const std::string* ZoneTable::join(const std::string& key) {
  const auto it = nodes_.try_emplace(key).first;
  ++it->second;
  return &it->first;
}

void ZoneTable::release(const std::string& key) {
  const auto it = nodes_.find(key);
  SPILLWAY_CHECK(it != nodes_.end());
  if (--it->second == 0) nodes_.erase(it);
}

/// Zones without counted nodes lose their state; those without any node vanish. True if every zone that is left was in
/// full disruption.
bool ZoneTable::drop_vanished() {
  bool all_were_disrupted = true;
  for (auto it = zones_.begin(); it != zones_.end();) {
    Zone& zone = it->second;
    if (zone.counts.size() > 0) {
      all_were_disrupted = all_were_disrupted && zone.state == ZoneState::kFullDisruption;
    } else if (!profile_.remedies.keep_queue_while_nodes_exist) {
      zone.state.reset();
    } else if (!nodes_.contains(it->first)) {
      it = zones_.erase(it);
      continue;
    }
    ++it;
  }
  return all_were_disrupted;
}

void ZoneTable::apply(const std::string& key, Zone& zone, ZoneState state, Evaluation& evaluation, Now now) {
  if (const auto rate = eviction_rate(state, zone.counts.size(), config_)) {
    zone.queue.limiter().set_rate(*rate, now.mono);
  }
  evaluation.changes.push_back(
      {key, std::exchange(zone.state, state), state, zone.counts, zone.queue.limiter().effective_rate()});
}

ZoneTable::Evaluation ZoneTable::evaluate(Now now) {
  Evaluation evaluation;
  std::map<std::string_view, ZoneState> states;
  bool all_disrupted = true;
  for (const auto& [key, zone] : zones_) {
    if (zone.counts.size() == 0) continue;
    const ZoneState state = zone_state(zone.counts, config_.unhealthy_zone_threshold);
    all_disrupted = all_disrupted && state == ZoneState::kFullDisruption;
    states.emplace(key, state);
  }
  const bool all_were_disrupted = drop_vanished();  // drops zones without counted nodes only
  evaluation.master_disruption = all_disrupted && !states.empty();
  evaluation.entered_master_disruption = all_disrupted && !all_were_disrupted;
  evaluation.left_master_disruption = !all_disrupted && all_were_disrupted;

  if (evaluation.entered_master_disruption) {
    for (auto& [key, zone] : zones_) {
      if (!zone.state) continue;
      zone.queue.limiter().set_rate(0, now.mono);
      evaluation.changes.push_back({key, std::exchange(zone.state, ZoneState::kFullDisruption),
                                    ZoneState::kFullDisruption, zone.counts, zone.queue.limiter().effective_rate()});
    }
    return evaluation;
  }
  if (all_disrupted) return evaluation;
  for (auto& [key, zone] : zones_) {
    const auto state = states.find(key);
    if (state == states.end()) continue;
    if (evaluation.left_master_disruption && profile_.remedies.clear_queues_on_leaving) zone.queue.clear();
    if (evaluation.left_master_disruption || zone.state != state->second)
      apply(key, zone, state->second, evaluation, now);
  }
  return evaluation;
}

}  // namespace spillway::lifecycle
