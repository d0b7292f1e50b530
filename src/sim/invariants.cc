#include "sim/invariants.h"

#include "sim/node_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::sim {
namespace {

constexpr std::size_t kViolationsMax = 100;

}  // namespace

void Invariants::violate(Now now, std::string text) {
  if (violations_.size() >= kViolationsMax) return;
  const double at = std::chrono::duration<double>(now.mono.time_since_epoch()).count();
  violations_.push_back(fmt::format("t={:.3f}s {}", at, text));
}

void Invariants::on_pod(const api::Pod* before, const api::Pod* after, Now now) {
  const std::string name = (after != nullptr ? *after : *before).key().text();
  if (after != nullptr && gone_uids_.contains(after->metadata.uid)) {
    violate(now, fmt::format("pod {} came back with the uid of a deleted pod", name));
  }
  if (after == nullptr) gone_uids_.insert(before->metadata.uid);
  if (before == nullptr || after == nullptr || before->metadata.uid != after->metadata.uid) return;
  if (!before->spec.node_name.empty() && before->spec.node_name != after->spec.node_name) {
    violate(now, fmt::format("pod {} was moved from {} to {}", name, before->spec.node_name, after->spec.node_name));
  }
  if (api::is_terminal(*before) && !api::is_terminal(*after)) {
    violate(now, fmt::format("pod {} left phase {} for {}", name, before->status.phase, after->status.phase));
  }
  if (before->metadata.deletion_timestamp && !after->metadata.deletion_timestamp) {
    violate(now, fmt::format("deletion of pod {} was undone", name));
  }
  if (after->status.reason == "Evicted" && before->status.reason != "Evicted" && api::is_critical(*after)) {
    violate(now, fmt::format("critical pod {} was evicted", name));
  }
}

void Invariants::on_node(const api::Node* before, const api::Node* after, Now now) {
  if (after == nullptr) return;
  const bool was_tainted = before != nullptr && has_silence_taint(*before);
  if (!was_tainted && has_silence_taint(*after)) check_taint_rate(zone_of(*after), now);
}

void Invariants::check_taint_rate(const std::string& zone, Now now) {
  std::deque<Instant>& times = tainted_at_[zone];
  times.push_back(now.mono);
  // Every window that ends now: n taints since times[i] need n - allowance tokens refilled in it.
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double window = std::chrono::duration<double>(now.mono - times[i]).count();
    const double latency = std::chrono::duration<double>(limits_.write_latency_max).count();
    const double allowed = bucket_allowance_ + limits_.node_eviction_rate * (window + latency);
    if (static_cast<double>(times.size() - i) > allowed) {
      violate(now, fmt::format("zone \"{}\": {} nodes tainted within {:.1f} s, allowed {:.1f}", zone, times.size() - i,
                               window, allowed));
      return;
    }
  }
}

void Invariants::on_start(const std::string& node, const std::string& uid, Now now) {
  const auto [known, fresh] = node_of_uid_.emplace(uid, node);
  if (!fresh && known->second != node) {
    violate(now, fmt::format("pod {} runs on {} and on {}", uid, known->second, node));
  }
}

}  // namespace spillway::sim
