#include "sim/properties/act_audit.h"

#include "api/object/taint.h"
#include "sim/properties/object_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::sim {
namespace {

bool is_marked(const api::Node& node) {
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
  return ready != nullptr && ready->status == "Unknown";
}

bool is_driven_out(const api::Pod& pod) {
  const api::PodCondition* target = api::find_condition(pod.status.conditions, "DisruptionTarget");
  return target != nullptr && target->status == "True" && target->reason == "DeletionByTaintManager";
}

}  // namespace

void ActAudit::on_restart(Now now) {
  bucket_allowance_ += 1;
  restarts_.push_back(now.mono);
}

void ActAudit::on_node(const api::Node* before, const api::Node& after, Now now) {
  const bool same = before != nullptr && before->metadata.uid == after.metadata.uid;
  const std::string zone = zone_of(after);
  if (has_silence_taint(after) && !(same && has_silence_taint(*before))) {
    check_rate(zone, now);
    count("taints", limits_.taint, now);
    count("taints in zone " + zone, limits_.taint_in_zone, now);
  }
  if (!same || is_marked(*before) || !is_marked(after)) return;
  count("nodes marked", limits_.mark, now);
  count("nodes marked in zone " + zone, limits_.mark_in_zone, now);
}

void ActAudit::on_pod(const api::Pod& before, const api::Pod& after, Now now) {
  if (!is_driven_out(before) && is_driven_out(after)) count("pods driven out", limits_.delete_pod, now);
}

void ActAudit::count(const std::string& scope, const std::optional<Limit>& limit, Now now) {
  if (!limit || limit->window <= limits_.late_max) return;
  std::deque<Instant>& times = acts_[scope];
  times.push_back(now.mono);
  const Duration window = limit->window - limits_.late_max;
  while (now.mono - times.front() >= window) times.pop_front();
  while (!restarts_.empty() && now.mono - restarts_.front() > limit->window) restarts_.pop_front();
  const auto allowed = static_cast<std::size_t>(limit->acts) * (1 + restarts_.size());
  if (times.size() <= allowed) return;
  verdicts_.violate({Property::kActLimits, scope.substr(0, scope.find(" in zone"))}, now,
                    fmt::format("{} {} within {:.1f} s, allowed {}", times.size(), scope,
                                std::chrono::duration<double>(now.mono - times.front()).count(), allowed));
}

void ActAudit::check_rate(const std::string& zone, Now now) {
  std::deque<Instant>& times = tainted_at_[zone];
  times.push_back(now.mono);
  // Every window that ends now: n taints since times[i] need n - allowance tokens refilled in it.
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double window = std::chrono::duration<double>(now.mono - times[i]).count();
    const double latency = std::chrono::duration<double>(limits_.late_max).count();
    const double allowed = bucket_allowance_ + limits_.node_eviction_rate * (window + latency);
    if (static_cast<double>(times.size() - i) > allowed) {
      verdicts_.violate(Property::kTaintRate, now,
                        fmt::format("zone \"{}\": {} nodes tainted within {:.1f} s, allowed {:.1f}", zone,
                                    times.size() - i, window, allowed));
      return;
    }
  }
}

}  // namespace spillway::sim
