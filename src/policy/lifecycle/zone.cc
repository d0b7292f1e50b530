#include "policy/lifecycle/zone.h"

namespace spillway::lifecycle {
namespace {

constexpr std::string_view kBetaZone = "failure-domain.beta.kubernetes.io/zone";
constexpr std::string_view kBetaRegion = "failure-domain.beta.kubernetes.io/region";
constexpr std::string_view kTopologyZone = "topology.kubernetes.io/zone";
constexpr std::string_view kTopologyRegion = "topology.kubernetes.io/region";
constexpr std::string_view kExcludeDisruption = "node.kubernetes.io/exclude-disruption";
constexpr std::string_view kSeparator(":\0:", 3);

std::string_view label(const api::StringMap& labels, std::string_view beta, std::string_view topology,
                       ZoneLabels rule) {
  if (const auto it = labels.find(beta); it != labels.end()) return it->second;
  if (rule == ZoneLabels::kBetaOnly) return {};
  const auto it = labels.find(topology);
  return it == labels.end() ? std::string_view() : std::string_view(it->second);
}

bool is_master_name(std::string_view name) {
  if (name.ends_with("master")) return true;
  return name.size() >= 10 && name.substr(0, name.size() - 3).ends_with("master-");
}

float rate_of(FullDisruption policy, const ZoneConfig& config) {
  switch (policy) {
    case FullDisruption::kNormal:
      return config.node_eviction_rate;
    case FullDisruption::kSlow:
      return config.secondary_node_eviction_rate;
    case FullDisruption::kHold:
      break;
  }
  return 0;
}

}  // namespace

std::string_view to_string(ZoneState state) {
  switch (state) {
    case ZoneState::kInitial:
      return "Initial";
    case ZoneState::kNormal:
      return "Normal";
    case ZoneState::kPartialDisruption:
      return "PartialDisruption";
    case ZoneState::kFullDisruption:
      return "FullDisruption";
  }
  return {};
}

std::string zone_key(const api::StringMap& labels, ZoneLabels rule) {
  const std::string_view region = label(labels, kBetaRegion, kTopologyRegion, rule);
  const std::string_view zone = label(labels, kBetaZone, kTopologyZone, rule);
  if (region.empty() && zone.empty()) return {};
  std::string key(region);
  key += kSeparator;
  key += zone;
  return key;
}

std::string readable_zone(std::string_view key) {
  std::string text(key);
  if (const auto at = text.find(kSeparator); at != std::string::npos) text.replace(at, kSeparator.size(), "::");
  return text;
}

bool is_excluded_from_zone(const api::ObjectMeta& node, ZoneExclusion rule) {
  const bool by_label = node.labels.contains(kExcludeDisruption);
  switch (rule) {
    case ZoneExclusion::kLabel:
      return by_label;
    case ZoneExclusion::kName:
      return is_master_name(node.name);
    case ZoneExclusion::kLabelOrName:
      return by_label || is_master_name(node.name);
  }
  return false;
}

ZoneState zone_state(const ZoneCounts& counts, float unhealthy_zone_threshold) {
  if (counts.ready == 0 && counts.unready > 0) return ZoneState::kFullDisruption;
  // Single precision on both sides: 11 of 20 with 0.55 is partial.
  if (counts.unready > 2 &&
      static_cast<float>(counts.unready) / static_cast<float>(counts.size()) >= unhealthy_zone_threshold) {
    return ZoneState::kPartialDisruption;
  }
  return ZoneState::kNormal;
}

std::optional<float> eviction_rate(ZoneState state, std::int32_t zone_nodes, const ZoneConfig& config) {
  switch (state) {
    case ZoneState::kInitial:
      return std::nullopt;
    case ZoneState::kNormal:
      return config.node_eviction_rate;
    case ZoneState::kFullDisruption:
      return rate_of(config.full_disruption, config);
    case ZoneState::kPartialDisruption:
      return zone_nodes > config.large_cluster_size_threshold ? config.secondary_node_eviction_rate : 0.0F;
  }
  return std::nullopt;
}

}  // namespace spillway::lifecycle
