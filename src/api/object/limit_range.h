// v1 LimitRange: the limits on requests of every container, pod or claim of a namespace, and the defaults of containers
// without requests. Thread: any. Source: Kubernetes API reference, LimitRange.
#pragma once

#include "api/object/meta.h"
#include "api/object/pod.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// The largest amount that LimitRanges compare in thousandths of a unit; larger ones are compared in units.
inline constexpr std::int64_t kMilliComparedMax = std::numeric_limits<std::int64_t>::max() / 1000;

struct LimitRangeItem {
  static constexpr std::string_view kContainer = "Container";
  static constexpr std::string_view kPod = "Pod";
  static constexpr std::string_view kClaim = "PersistentVolumeClaim";

  std::string type;  // one of these, or a qualified name, which nothing is held against
  ResourceList max;
  ResourceList min;
  ResourceList default_limits;    // "default"
  ResourceList default_requests;  // "defaultRequest"
  ResourceList max_ratio;         // limit to request; "maxLimitRequestRatio"

  friend bool operator==(const LimitRangeItem&, const LimitRangeItem&) = default;
};

struct LimitRange {
  static constexpr std::string_view kKind = "LimitRange";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  std::vector<LimitRangeItem> limits;

  friend bool operator==(const LimitRange&, const LimitRange&) = default;
};

}  // namespace spillway::api
