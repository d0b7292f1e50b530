#include "policy/lifecycle/node_health.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::lifecycle {
namespace {

constexpr std::string_view kReady = "Ready";
constexpr WallTime kNoLease = WallTime::min();
constexpr WallTime kNeverRenewed = kNoLease + microseconds(1);  // a lease without a time is seen once

/// Whole seconds, as metav1.Time keeps them.
WallTime whole_seconds(WallTime time) {
  return std::chrono::floor<seconds>(time);
}

/// The instant at which the node object was created, by the wall clock of this process; not later than now.
Instant creation_instant(const api::Node& node, Now now) {
  if (!node.metadata.creation_timestamp) return now.mono;
  const Duration age = now.wall - *node.metadata.creation_timestamp;
  return now.mono - std::max(age, Duration::zero());
}

HealthRecord::Ready recorded(const api::NodeCondition& condition) {
  return {readiness_of(condition), condition.last_heartbeat_time, condition.last_transition_time};
}

std::vector<std::string_view> monitored_conditions(const Profile& profile) {
  std::vector<std::string_view> types{kReady};
  if (profile.facts.out_of_disk) types.push_back("OutOfDisk");
  types.push_back("MemoryPressure");
  types.push_back("DiskPressure");
  if (profile.facts.pid_pressure) types.push_back("PIDPressure");
  return types;
}

std::vector<api::NodeCondition> silent_conditions(const api::Node& node, const Profile& profile, Now now) {
  std::vector<api::NodeCondition> conditions = node.status.conditions;
  for (const std::string_view type : monitored_conditions(profile)) {
    const auto known = std::ranges::find(conditions, type, &api::NodeCondition::type);
    if (known == conditions.end()) {
      conditions.push_back({.type = std::string(type),
                            .status = "Unknown",
                            .reason = "NodeStatusNeverUpdated",
                            .message = "Kubelet never posted node status.",
                            .last_heartbeat_time = node.metadata.creation_timestamp,
                            .last_transition_time = whole_seconds(now.wall)});
    } else if (known->status != "Unknown") {
      known->status = "Unknown";
      known->reason = "NodeStatusUnknown";
      known->message = "Kubelet stopped posting node status.";
      known->last_transition_time = whole_seconds(now.wall);
    }
  }
  return conditions;
}

/// Steps 1 and 2: reads the heartbeat from the status.
void observe_status(const api::Node& node, const api::NodeCondition* ready, std::optional<HealthRecord>& record,
                    const Profile& profile, Now now) {
  if (ready == nullptr) {
    const Instant created = creation_instant(node, now);
    if (!record || profile.facts.never_posted_overwrites_record) {
      record = HealthRecord{.probe = created, .transition = created};
    }
    record->ready.reset();
    return;
  }
  const HealthRecord::Ready seen = recorded(*ready);
  if (!record || !record->ready) {
    record = HealthRecord{.probe = now.mono, .transition = now.mono, .ready = seen};
  } else if (record->ready->heartbeat != seen.heartbeat) {
    const bool turned = record->ready->transition != seen.transition;
    record = HealthRecord{.probe = now.mono, .transition = turned ? now.mono : record->transition, .ready = seen};
  }
}

/// Step 3: a lease that moved is a sign of life.
void observe_lease(const api::Lease* lease, WallTime remembered, HealthRecord& record, const Profile& profile,
                   Now now) {
  record.lease_seen = lease != nullptr ? lease->renew_time : std::nullopt;
  if (lease == nullptr) return;
  const WallTime renewed = lease->renew_time.value_or(kNeverRenewed);
  if (profile.remedies.lease_may_step_back ? remembered == renewed : remembered >= renewed) return;
  record.lease_renewed = renewed;
  record.probe = now.mono;
}

}  // namespace

std::string_view to_string(Readiness readiness) {
  switch (readiness) {
    case Readiness::kTrue:
      return "True";
    case Readiness::kFalse:
      return "False";
    case Readiness::kUnknown:
      return "Unknown";
  }
  return {};
}

Readiness readiness_of(const api::NodeCondition& condition) {
  if (condition.status == "True") return Readiness::kTrue;
  if (condition.status == "False") return Readiness::kFalse;
  return Readiness::kUnknown;
}

std::optional<Readiness> readiness_of(const api::Node& node) {
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, kReady);
  if (ready == nullptr) return std::nullopt;
  return readiness_of(*ready);
}

Assessment assess_node_health(const api::Node& node, const api::Lease* lease, std::optional<HealthRecord>& record,
                              const HealthConfig& config, const Profile& profile, Now now) {
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, kReady);
  // Rebuilding the record below forgets the remembered lease, so on the pass after a status post even an old lease
  // counts as fresh once.
  const WallTime remembered = record && record->lease_renewed ? *record->lease_renewed : kNoLease;
  observe_status(node, ready, record, profile, now);
  if (profile.facts.leases) observe_lease(lease, remembered, *record, profile, now);

  Assessment result;
  result.posted = ready != nullptr;
  if (ready != nullptr) result.current = readiness_of(*ready);
  result.observed = result.current.value_or(Readiness::kUnknown);
  result.silence = now.mono - record->probe;
  const Duration grace = ready != nullptr ? config.node_monitor_grace_period : config.node_startup_grace_period;
  result.silent = now.mono > record->probe + grace;
  if (!result.silent) return result;
  const bool changes_ready = ready == nullptr || ready->status != "Unknown";
  if (changes_ready) result.write = silent_conditions(node, profile, now);
  const bool hidden = ready == nullptr && profile.facts.never_posted_hides_current;
  if (!hidden) result.current = Readiness::kUnknown;
  return result;
}

bool is_settled(const HealthRecord& record, const api::Lease* lease, const Profile& profile) {
  if (!profile.facts.leases || lease == nullptr) return true;
  return record.lease_renewed.value_or(kNoLease) >= lease->renew_time.value_or(kNeverRenewed);
}

void record_written_conditions(const Assessment& assessment, HealthRecord& record, Now now) {
  const api::NodeCondition* ready = api::find_condition(*assessment.write, kReady);
  record.ready = recorded(*ready);
  record.transition = now.mono;
  record.lease_renewed = record.lease_seen;
}

policy::Reason Assessment::reason(const HealthConfig& config) const {
  const auto in_ms = [](Duration d) { return std::chrono::duration_cast<milliseconds>(d).count(); };
  const Duration grace = posted ? config.node_monitor_grace_period : config.node_startup_grace_period;
  const policy::ReasonCode code = !silent  ? policy::ReasonCode::kHeartbeatFresh
                                  : posted ? policy::ReasonCode::kHeartbeatStale
                                           : policy::ReasonCode::kNeverPosted;
  return {code, {{"silence_ms", in_ms(silence)}, {"grace_period_ms", in_ms(grace)}}};
}

}  // namespace spillway::lifecycle
