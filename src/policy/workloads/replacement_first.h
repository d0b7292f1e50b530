// A pod of a failed node that is replaced before it is deleted: how that is written on it, which pods qualify, and when
// it may go. The mark is an annotation, so that whoever comes after a crash, and the controller of the set in another
// process, reads the same. A set does not count what carries it and makes another pod instead; the pod goes once the
// others are whole without it.
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

/// On a pod: when its replacement was asked for, as metav1.Time.
inline constexpr std::string_view kReplacementAnnotation = "spillway.dev/replacement-asked-at";

/// How long a replacement has to become ready, and to be made at all. Then one that is placed will do, and the pod of a
/// set that nobody fills goes as it would upstream.
inline constexpr Duration kReplacementPatience = minutes(2);

/// It is bound, has not ended, is not on its way out, and carries the mark.
bool is_being_replaced(const api::Pod& pod);
/// nullopt: it is not being replaced. A time that cannot be read was long ago.
std::optional<WallTime> replacement_asked_at(const api::Pod& pod);

/// A bound pod of a ReplicaSet that is here to stay: any other pod of the set is as good. Pods of StatefulSets have a
/// name that only one may have, those of DaemonSets a node; a Job would run work twice; nobody makes a lone pod anew.
bool is_replaceable(const api::Pod& pod);

/// Pods of a set that are not being replaced, and how many it asks for.
struct ReplicaStanding {
  std::int64_t wanted = 0;
  std::int64_t made = 0;    // active
  std::int64_t placed = 0;  // of these: bound
  std::int64_t ready = 0;   // of these: ready

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
  kMayGo,      // the set is whole without it, or nobody makes the pod it waits for
  kNotReady,   // its replacement has a node and does not serve yet
  kNotPlaced,  // its replacement has no node: it stays for as long as that is so
  kNotMade,    // its set has not made one
};

/// "not-ready".
std::string_view to_string(ReplacementStage stage);

/// Of `pod`, one of `replaced`, which are those of its set. Each pod that the others are short of keeps one of them:
/// the ones of lower priority, asked for later, then by name.
ReplacementStage stage_of(const api::PodKey& pod, std::span<const ReplacedPod> replaced, const ReplicaStanding& others,
                          WallTime now);

/// Of a pod that stays. Code no-replacement; facts: replacement, wanted, made, placed, ready.
policy::Reason reason_of(ReplacementStage stage, const ReplicaStanding& others);

/// How many of `replaced` have no replacement with a node yet: for so many room is to be kept.
std::int64_t unplaced(std::int64_t replaced, const ReplicaStanding& others);

}  // namespace spillway::workloads
