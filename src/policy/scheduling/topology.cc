#include "policy/scheduling/topology.h"

#include <algorithm>
#include <string_view>

namespace spillway::scheduling {

Topology::Topology(const std::map<std::string, policy::NodeLoad>& nodes, const Surroundings& around) {
  entries_.reserve(nodes.size());
  for (const Entry& entry : nodes) {
    if (const auto slot = around.find_slot(entry.first)) {
      if (by_slot_.size() <= *slot) by_slot_.resize(*slot + 1, kNone);
      by_slot_[*slot] = static_cast<std::uint32_t>(entries_.size());
    }
    entries_.push_back(&entry);
  }
}

std::optional<std::uint32_t> Topology::number_of(const std::string& node) const {
  const auto found = std::ranges::lower_bound(entries_, node, {}, [](const Entry* entry) { return entry->first; });
  if (found == entries_.end() || (*found)->first != node) return std::nullopt;
  return static_cast<std::uint32_t>(found - entries_.begin());
}

std::optional<std::uint32_t> Topology::number_of(Slot slot) const {
  if (slot >= by_slot_.size() || by_slot_[slot] == kNone) return std::nullopt;
  return by_slot_[slot];
}

std::shared_ptr<const Topology::Domains> Topology::domains_of(const std::string& label) {
  if (const auto known = domains_.find(label); known != domains_.end()) return known->second;
  if (domains_.size() >= kKeysMax) domains_.clear();
  auto domains = std::make_shared<Domains>();
  std::map<std::string_view, std::uint32_t> numbers;
  for (const Entry* entry : entries_) {
    const api::StringMap& labels = entry->second.node->metadata.labels;
    const auto value = labels.find(label);
    if (value == labels.end()) {
      domains->of.push_back(kNone);
      continue;
    }
    const auto number = numbers.try_emplace(value->second, static_cast<std::uint32_t>(numbers.size())).first;
    domains->of.push_back(number->second);
  }
  domains->count = static_cast<std::uint32_t>(numbers.size());
  return domains_[label] = std::move(domains);
}

}  // namespace spillway::scheduling
