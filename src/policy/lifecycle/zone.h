// Failure domains: which zone a node is in, how badly a zone fails, how fast its nodes may be evicted.
// Thread: any (pure functions). Source: Kubernetes docs, "Nodes", rate limits on eviction; spec "Node lifecycle", S6;
// vectors lifecycle/zone_key, zone_state, eviction_rate.
#pragma once

#include "api/object/meta.h"
#include "api/object/node.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::lifecycle {

enum class ZoneState { kInitial, kNormal, kPartialDisruption, kFullDisruption };

/// "Normal", …
std::string_view to_string(ZoneState state);

/// Labels that name zone and region.
enum class ZoneLabels {
  kTopology,  // failure-domain.beta.kubernetes.io/… if present, even if empty, else topology.kubernetes.io/…
  kBetaOnly,  // before 1.17
};

/// region, NUL-separated from zone ("r1:\0:a"); empty if both are empty: all such nodes form one zone.
std::string zone_key(const api::StringMap& labels, ZoneLabels rule = ZoneLabels::kTopology);
/// The zone for people and metrics: "r1::a"; the zone without labels is empty.
std::string readable_zone(std::string_view key);

/// Nodes that do not count for the state of their zone.
enum class ZoneExclusion {
  kLabel,        // label node.kubernetes.io/exclude-disruption, any value
  kName,         // "…master" or "…master-xyz" (1.7)
  kLabelOrName,  // 1.19
};

bool is_excluded_from_zone(const api::ObjectMeta& node, ZoneExclusion rule = ZoneExclusion::kLabel);

/// Nodes of a zone by their Ready condition: True against everything else (False, Unknown, missing).
struct ZoneCounts {
  std::int32_t ready = 0;
  std::int32_t unready = 0;

  std::int32_t size() const { return ready + unready; }

  friend bool operator==(const ZoneCounts&, const ZoneCounts&) = default;
};

/// The rate for a zone in full disruption while another zone is alive.
enum class FullDisruption {
  kNormal,  // the normal rate, as upstream
  kSlow,    // the secondary rate
  kHold,    // nothing is tainted nor evicted
};

/// Rates in nodes per second and the threshold in single precision, as upstream keeps them: the comparisons show it.
struct ZoneConfig {
  float node_eviction_rate = 0.1F;
  float secondary_node_eviction_rate = 0.01F;
  std::int32_t large_cluster_size_threshold = 50;
  float unhealthy_zone_threshold = 0.55F;
  FullDisruption full_disruption = FullDisruption::kNormal;
};

/// kFullDisruption: no node is ready and at least one is not. kPartialDisruption: more than two are not ready and their
/// share reaches the threshold. Else kNormal, also for an empty zone.
ZoneState zone_state(const ZoneCounts& counts, float unhealthy_zone_threshold);

/// Nodes per second that may be evicted in a zone of `zone_nodes` counted nodes.
/// kNormal: the normal rate. kFullDisruption: by config.full_disruption. kPartialDisruption: the secondary rate in
/// zones larger than the threshold, else 0. kInitial: nullopt, the rate is unchanged. The caller stops every zone when
/// all are in kFullDisruption: silence of all nodes is more likely the controller's fault than theirs.
std::optional<float> eviction_rate(ZoneState state, std::int32_t zone_nodes, const ZoneConfig& config);

}  // namespace spillway::lifecycle
