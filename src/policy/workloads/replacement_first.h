// A pod of a failed node that is replaced before it is deleted: how it is marked, which pods qualify, and when it may
// be deleted. The mark is an annotation, so that it survives a crash and the set's controller in another process reads
// it, too. A set does not count a marked pod and makes another one; the marked pod is deleted once the set is complete
// without it.
// Thread: any (pure). Source: our own; upstream deletes first. ADR-0059.
#pragma once

#include "api/object/meta.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "policy/reason.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace spillway::workloads {

/// Annotation of a pod: when its replacement was requested, as metav1.Time.
inline constexpr std::string_view kReplacementAnnotation = "spillway.dev/replacement-asked-at";

/// The longest wait for a replacement to become ready, and to be created at all. After that a replacement with a node
/// suffices, and the pod of a set whose controller creates none is deleted as upstream would.
inline constexpr Duration kReplacementPatience = minutes(2);

/// True if the pod is bound, has not ended, is not being deleted, and carries the mark.
bool is_being_replaced(const api::Pod& pod);
/// nullopt: the pod is not being replaced. A malformed time counts as long ago.
std::optional<WallTime> replacement_asked_at(const api::Pod& pod);

/// True for a bound pod of a ReplicaSet that is not ending: any other pod of the set is as good. Not replaceable: pods
/// of StatefulSets, whose names must be unique; those of DaemonSets, which belong to their node; those of Jobs, which
/// would run work twice; and pods without a controller.
bool is_replaceable(const api::Pod& pod);

/// Pods of a set that are not being replaced, and the set's size.
struct ReplicaStanding {
  std::int64_t wanted = 0;
  std::int64_t made = 0;    // active
  std::int64_t placed = 0;  // the bound part of `made`
  std::int64_t ready = 0;   // the ready part of `placed`

  void count(const api::Pod& pod);

  friend bool operator==(const ReplicaStanding&, const ReplicaStanding&) = default;
};

/// A pod that is being replaced.
struct ReplacedPod {
  std::int32_t priority = 0;
  WallTime asked_at;
  api::PodKey pod;

  friend bool operator==(const ReplacedPod&, const ReplacedPod&) = default;
};

enum class ReplacementStage {
  kMayGo,      // the set is complete without it, or no controller creates its replacement
  kNotReady,   // the replacement has a node and is not ready yet
  kNotPlaced,  // the replacement has no node: the pod stays until it has one
  kNotMade,    // the set has not made a replacement
};

/// "not-ready".
std::string_view to_string(ReplacementStage stage);

/// The stage of `pod`, one of `replaced`, which are all marked pods of its set. Each pod that the set still lacks keeps
/// one of them: first those of lower priority, then those marked later, then by name.
ReplacementStage stage_of(const api::PodKey& pod, std::span<const ReplacedPod> replaced, const ReplicaStanding& others,
                          WallTime now);

/// The reason why a marked pod stays. Code no-replacement; facts: replacement, wanted, made, placed, ready.
policy::Reason reason_of(ReplacementStage stage, const ReplicaStanding& others);

/// The number of `replaced` pods whose replacement has no node yet: room is to be kept for so many.
std::int64_t unplaced(std::int64_t replaced, const ReplicaStanding& others);

}  // namespace spillway::workloads
