// autoscaling/v2 HorizontalPodAutoscaler: what its controller reads and writes. Metrics and behavior are read by
// policy/autoscaling. Thread: any. Source: Kubernetes API reference, HorizontalPodAutoscaler v2.
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// Names the object that an autoscaler scales; it is in the autoscaler's namespace.
struct ScaleTarget {
  std::string kind;
  std::string name;
  std::string api_version;

  friend bool operator==(const ScaleTarget&, const ScaleTarget&) = default;
};

struct AutoscalerCondition {
  std::string type;
  std::string status;
  std::optional<WallTime> last_transition_time;
  std::string reason;
  std::string message;

  friend bool operator==(const AutoscalerCondition&, const AutoscalerCondition&) = default;
};

struct AutoscalerStatus {
  std::optional<WallTime> last_scale_time;
  std::int32_t current_replicas = 0;
  std::int32_t desired_replicas = 0;
  Json current_metrics;  // null if absent
  std::vector<AutoscalerCondition> conditions;

  friend bool operator==(const AutoscalerStatus&, const AutoscalerStatus&) = default;
};

struct HorizontalPodAutoscaler {
  static constexpr std::string_view kKind = "HorizontalPodAutoscaler";
  static constexpr std::string_view kApiVersion = "autoscaling/v2";
  ObjectMeta metadata;
  ScaleTarget target;
  std::optional<std::int32_t> min_replicas;
  std::int32_t max_replicas = 0;
  Json metrics;   // null if absent
  Json behavior;  // null if absent
  AutoscalerStatus status;

  friend bool operator==(const HorizontalPodAutoscaler&, const HorizontalPodAutoscaler&) = default;
};

}  // namespace spillway::api
