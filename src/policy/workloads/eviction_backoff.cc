#include "policy/workloads/eviction_backoff.h"

#include <algorithm>

namespace spillway::workloads {

const EvictionBackoff::Node& EvictionBackoff::evicted(const std::string& node, const std::string& pod, Duration age,
                                                      Instant now) {
  const auto [entry, first] = nodes_.try_emplace(node);
  Node& known = entry->second;
  const Instant began = known.until - known.wait;
  if (first || now - known.until > kForgottenAfter) {
    known = {Duration::zero(), now, 1, {}};
  } else if (now >= known.until && now - age >= began) {
    known.wait = std::clamp(2 * known.wait, kMin, kMax);
    known.until = now + known.wait;
    ++known.in_a_row;
    known.pods.clear();
  }
  if (now < known.until) known.pods.insert(pod);
  return known;
}

std::size_t EvictionBackoff::held(Instant now) const {
  std::size_t pods = 0;
  for (const auto& [name, node] : nodes_) pods += now < node.until ? node.pods.size() : 0;
  return pods;
}

std::optional<Instant> EvictionBackoff::node_held_until(const std::string& node, Instant now) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || now >= found->second.until) return std::nullopt;
  return found->second.until;
}

std::optional<Instant> EvictionBackoff::pod_held_until(const std::string& pod, Instant now) const {
  std::optional<Instant> until;
  for (const auto& [name, node] : nodes_) {
    if (now < node.until && node.pods.contains(pod)) until = std::max(until.value_or(node.until), node.until);
  }
  return until;
}

std::optional<Instant> EvictionBackoff::next_end(Instant now) const {
  std::optional<Instant> end;
  for (const auto& [name, node] : nodes_) {
    if (now < node.until) end = std::min(end.value_or(node.until), node.until);
  }
  return end;
}

void EvictionBackoff::tidy(Instant now) {
  std::erase_if(nodes_, [now](const auto& entry) { return now - entry.second.until > kForgottenAfter; });
}

}  // namespace spillway::workloads
