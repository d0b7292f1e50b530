// Taints, tolerations and the one function that matches them.
// Thread: any. Source: Kubernetes docs, "Taints and Tolerations"; vectors admission/taints_tolerations.
#pragma once

#include "base/time.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

inline constexpr std::string_view kTaintNodeNotReady = "node.kubernetes.io/not-ready";
inline constexpr std::string_view kTaintNodeUnreachable = "node.kubernetes.io/unreachable";
/// The names of these taints before 1.8. A toleration of the taint tolerates it under its old name.
inline constexpr std::string_view kTaintNodeNotReadyAlpha = "node.alpha.kubernetes.io/notReady";
inline constexpr std::string_view kTaintNodeUnreachableAlpha = "node.alpha.kubernetes.io/unreachable";
inline constexpr std::string_view kTaintNodeMemoryPressure = "node.kubernetes.io/memory-pressure";
inline constexpr std::string_view kTaintNodeDiskPressure = "node.kubernetes.io/disk-pressure";
inline constexpr std::string_view kTaintNodePidPressure = "node.kubernetes.io/pid-pressure";
inline constexpr std::string_view kTaintNodeNetworkUnavailable = "node.kubernetes.io/network-unavailable";
inline constexpr std::string_view kTaintNodeUnschedulable = "node.kubernetes.io/unschedulable";

inline constexpr std::string_view kNoSchedule = "NoSchedule";
inline constexpr std::string_view kPreferNoSchedule = "PreferNoSchedule";
inline constexpr std::string_view kNoExecute = "NoExecute";

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
  std::optional<WallTime> time_added;

  friend bool operator==(const Taint&, const Taint&) = default;
};

struct Toleration {
  std::string key;
  std::string op;  // "operator": "", Equal or Exists
  std::string value;
  std::string effect;
  std::optional<std::int64_t> toleration_seconds;

  friend bool operator==(const Toleration&, const Toleration&) = default;
};

/// Effect empty or equal; key empty, equal, or today's name of a taint with a name from before 1.8; Exists, or
/// Equal/empty with an equal value; other operators never match.
bool tolerates(const Toleration& toleration, const Taint& taint);

/// The first taint with one of `effects` that no toleration matches; nullptr if there is none.
const Taint* find_untolerated(std::span<const Taint> taints, std::span<const Toleration> tolerations,
                              std::span<const std::string_view> effects);

}  // namespace spillway::api
