#include "policy/lifecycle/brakes.h"

#include "api/text/duration.h"
#include "policy/lifecycle/zone.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

namespace spillway::lifecycle {
namespace {

constexpr Duration kAskAgain = seconds(1);
constexpr std::int32_t kActsMax = 100'000;

std::int64_t to_ms(Duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

Result<ActLimit> parse_limit(std::string_view text) {
  const std::size_t slash = text.find('/');
  ActLimit limit;
  const std::string_view number = text.substr(0, slash);
  const auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), limit.acts);
  if (slash == std::string_view::npos || ec != std::errc{} || end != number.data() + number.size() || limit.acts < 1 ||
      limit.acts > kActsMax) {
    return make_error(ErrorCode::kInvalid, "expected ACTS/DURATION with 1 to {} acts, for example 20/1m, got \"{}\"",
                      kActsMax, text);
  }
  SPILLWAY_TRY(window, api::parse_duration(std::string(text.substr(slash + 1))));
  if (window <= Duration::zero()) return make_error(ErrorCode::kInvalid, "the window of \"{}\" is not positive", text);
  limit.window = window;
  return limit;
}

policy::Reason limit_reason(const std::tuple<ActKind, char, std::string>& scope, const ActLimit& limit) {
  const auto& [kind, what, name] = scope;
  policy::Reason reason{policy::ReasonCode::kActLimitReached, {{"act", std::string(to_string(kind))}}};
  if (what == 'z') reason.facts.push_back({"zone", readable_zone(name)});
  if (what == 'o') reason.facts.push_back({"owner", name});
  reason.facts.push_back({"acts_max", std::int64_t{limit.acts}});
  reason.facts.push_back({"window_ms", to_ms(limit.window)});
  return reason;
}

}  // namespace

std::string_view to_string(ActKind kind) {
  switch (kind) {
    case ActKind::kMarkNotReady:
      return "mark-not-ready";
    case ActKind::kTaint:
      return "taint";
    case ActKind::kDeletePod:
      return "delete-pod";
    case ActKind::kDeleteNode:
      return "delete-node";
  }
  return {};
}

Result<ActLimits> parse_act_limits(std::string_view text) {
  ActLimits limits;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    std::optional<ActLimit>* into = &limits.global;
    if (const std::size_t equals = part.find('='); equals != std::string_view::npos) {
      const std::string_view scope = part.substr(0, equals);
      if (scope != "zone" && scope != "owner") {
        return make_error(ErrorCode::kInvalid, "expected zone= or owner=, got \"{}\"", part);
      }
      into = scope == "zone" ? &limits.per_zone : &limits.per_owner;
      part.remove_prefix(equals + 1);
    }
    if (*into) return make_error(ErrorCode::kInvalid, "\"{}\" repeats an earlier limit", part);
    SPILLWAY_TRY(limit, parse_limit(part));
    *into = limit;
  }
  return limits;
}

const ActLimits& Brakes::limits_of(ActKind kind) const {
  switch (kind) {
    case ActKind::kMarkNotReady:
      return config_.mark_not_ready;
    case ActKind::kTaint:
      return config_.taint;
    case ActKind::kDeletePod:
      return config_.delete_pod;
    case ActKind::kDeleteNode:
      break;
  }
  return config_.delete_node;
}

std::vector<Brakes::Limited> Brakes::limits_on(const Act& act) const {
  const ActLimits& limits = limits_of(act.kind);
  std::vector<Limited> result;
  if (limits.global) result.push_back({{act.kind, 'g', {}}, *limits.global});
  if (limits.per_zone) result.push_back({{act.kind, 'z', act.zone}, *limits.per_zone});
  if (limits.per_owner && !act.owner.empty()) result.push_back({{act.kind, 'o', act.owner}, *limits.per_owner});
  return result;
}

Brakes::Answer Brakes::ask(const Act& act, Now now) {
  if (auto held = hold_in(act.zone, now)) return {std::move(held), now.mono + kAskAgain};
  const std::vector<Limited> limits = limits_on(act);
  for (const auto& [scope, limit] : limits) {
    std::deque<Instant>& times = acts_[scope];
    while (!times.empty() && times.front() + limit.window <= now.mono) times.pop_front();
    if (std::cmp_greater_equal(times.size(), limit.acts)) {
      return {limit_reason(scope, limit), times.front() + limit.window};
    }
  }
  for (const auto& [scope, limit] : limits) acts_[scope].push_back(now.mono);
  return {};
}

bool Brakes::stalls(Instant now) const {
  return stall_since_ && now < *stall_since_ + config_.stall_max;
}

std::optional<policy::Reason> Brakes::hold(Now now) const {
  using policy::ReasonCode;
  if (manual_hold_.everything) return policy::Reason{ReasonCode::kManualHold, {{"why", *manual_hold_.everything}}};
  if (now.mono < clock_hold_until_) {
    return policy::Reason{ReasonCode::kClockJumped,
                          {{"error_ms", to_ms(clock_error_)}, {"left_ms", to_ms(clock_hold_until_ - now.mono)}}};
  }
  if (config_.watch_age_max && watch_age_ && *watch_age_ > *config_.watch_age_max) {
    return policy::Reason{ReasonCode::kWatchStale,
                          {{"age_ms", to_ms(*watch_age_)}, {"age_max_ms", to_ms(*config_.watch_age_max)}}};
  }
  if (stalls(now.mono)) {
    return policy::Reason{ReasonCode::kHeartbeatStall,
                          {{"nodes", nodes_},
                           {"late_nodes", late_},
                           {"share_max", *config_.stall_share},
                           {"left_ms", to_ms(*stall_since_ + config_.stall_max - now.mono)}}};
  }
  if (now.mono < cool_until_) {
    return policy::Reason{ReasonCode::kStormCoolDown, {{"left_ms", to_ms(cool_until_ - now.mono)}}};
  }
  return std::nullopt;
}

std::optional<policy::Reason> Brakes::hold_in(std::string_view zone, Now now) const {
  if (!manual_hold_.zones.empty()) {
    const std::string name = readable_zone(zone);
    if (const auto held = manual_hold_.zones.find(name); held != manual_hold_.zones.end()) {
      return policy::Reason{policy::ReasonCode::kManualHold, {{"zone", name}, {"why", held->second}}};
    }
  }
  return hold(now);
}

void Brakes::on_clock(Now now, Duration expected_gap) {
  const std::optional<Now> last = std::exchange(last_clock_, now);
  for (auto it = acts_.begin(); it != acts_.end();) {  // forget scopes without recent acts
    const ActKind kind = std::get<0>(it->first);
    const ActLimits& limits = limits_of(kind);
    const auto& limit = std::get<1>(it->first) == 'g'   ? limits.global
                        : std::get<1>(it->first) == 'z' ? limits.per_zone
                                                        : limits.per_owner;
    it = it->second.empty() || it->second.back() + limit->window <= now.mono ? acts_.erase(it) : std::next(it);
  }
  if (!last || !config_.clock_jump_max) return;
  const Duration moved = now.mono - last->mono;
  const Duration disagreement = std::chrono::abs(Duration(now.wall - last->wall) - moved);
  const Duration error = std::max(disagreement, moved - expected_gap);
  if (error <= *config_.clock_jump_max) return;
  clock_error_ = error;
  clock_hold_until_ = now.mono + config_.clock_hold;
}

void Brakes::on_heartbeats(std::int64_t nodes, std::int64_t late, Now now) {
  nodes_ = nodes;
  late_ = late;
  if (!config_.stall_share) return;
  // A single late node does not count as a stall, whatever its share.
  const bool storm = late > 1 && static_cast<double>(late) > *config_.stall_share * static_cast<double>(nodes);
  if (storm) {
    if (!stall_since_) stall_since_ = now.mono;
  } else if (stall_since_) {
    if (stalls(now.mono)) cool_from(now);  // the nodes have returned, or were given up and are marked
    stall_since_.reset();
  }
}

void Brakes::cool_from(Now now) {
  if (config_.cool_down > Duration::zero()) cool_until_ = now.mono + config_.cool_down;
}

}  // namespace spillway::lifecycle
