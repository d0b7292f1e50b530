// The comparisons of an eviction pass, as reasons: each threshold with what was observed, each pod with the numbers it
// was ranked by and the key that put it before the next one.
// Thread: any (pure). Names of facts end in the unit of the signal: _bytes, _inodes or _processes.
#pragma once

#include "policy/eviction/containerfs.h"
#include "policy/eviction/ranking.h"
#include "policy/eviction/threshold.h"
#include "policy/reason.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::eviction {

/// The reason with the threshold and the observed value of its signal.
policy::Reason threshold_reason(policy::ReasonCode code, const Threshold& threshold, const Observations& seen);

policy::Subject subject_of(const api::Pod& pod);

/// The evaluated part of a ranking, from the top.
struct EvaluatedRanking {
  MeasuredPod victim;                         // the first pod that is not critical; its pod is null if there is none
  std::vector<policy::Candidate> candidates;  // the first few, and the victim wherever it ranks
};

/// Ranks all pods for the signal, with the reasons for each pod's place. `candidates_max`: how many candidates are
/// recorded, besides the victim.
EvaluatedRanking evaluate_ranking(Signal signal, StorageLayout layout, std::span<const MeasuredPod> pods,
                                  std::size_t candidates_max);

/// The sort key that puts `a` before `b`: "missing-stats", "exceeds-request", "priority", "above-request", "processes",
/// "name".
std::string_view deciding_key(const UsageRank& a, const UsageRank& b);
std::string_view deciding_key(const PidRank& a, const PidRank& b);

}  // namespace spillway::eviction
