// Chooses the pods that are killed so that a critical pod may start: as few Guaranteed pods as possible, then as few
// Burstable ones, and within a class repeatedly the pod after which the least need remains.
// Thread: any (pure). Source: Kubernetes docs, "Guaranteed Scheduling For Critical Add-On Pods"; spec "Pod admission",
// 8; vectors admission/preemption.
#pragma once

#include "api/object/pod.h"
#include "policy/reason.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spillway::admission {

/// The amount of a resource that must become free; milli-CPU for cpu, units for everything else.
struct Requirement {
  std::string resource;
  std::int64_t quantity = 0;

  friend bool operator==(const Requirement&, const Requirement&) = default;
};

/// The amount of `resource` that the pod's end frees: the sum of its requests as the agent counts them, in whole
/// numbers.
std::int64_t freed_by(const api::Pod& pod, std::string_view resource);

/// The distance between freed and needed amounts: the sum of (still needed / needed)², in order; covered needs (zero)
/// do not count. 0: all covered; the number of needs: nothing covered.
double distance_to(std::span<const std::int64_t> needed, std::span<const std::int64_t> freed);

/// One round of choices: the candidates of one class, by their distance to the missing amounts.
struct Round {
  struct Distance {
    std::size_t candidate = 0;  // index into the pods given
    double distance = 0;
  };

  api::QosClass qos{};
  std::vector<Requirement> needs;
  std::vector<Distance> distances;  // in the order in which ties are broken
  std::size_t chosen = 0;           // index into the pods given
};

struct Choice {
  std::vector<std::size_t> victims;    // indices into the pods given, in the order in which they are killed
  std::vector<Requirement> uncovered;  // not empty: all candidates together are not enough, and no victim is chosen
  std::vector<Round> rounds;           // in the order of choosing: Guaranteed, Burstable, BestEffort
  std::size_t candidates = 0;          // pods that `preemptor` may preempt
};

/// `pods`: who runs, in an order that ends ties; a pod of an unknown quality-of-service class is left out.
/// Source: as above. Complexity: victims x candidates x requirements.
Choice choose_victims(const api::Pod& preemptor, std::span<const api::Pod* const> pods,
                      std::vector<Requirement> requirements);

/// "no set of running pods found to reclaim resources: [(res: cpu, q: 2950), ]".
std::string uncovered_text(std::span<const Requirement> uncovered);

/// One reason for each resource that stays short.
std::vector<policy::Reason> reasons_of(const Choice& choice);
/// The reason for the round's choice: the part of the need that the pod frees, and its distance.
policy::Reason reason_of(const Round& round, std::span<const api::Pod* const> pods);
/// The most pods of a round that a decision keeps.
inline constexpr std::size_t kCandidatesKept = 20;
/// The pods that were compared in the round: the chosen one first, then the nearest others, kCandidatesKept at most.
std::vector<policy::Candidate> candidates_of(const Round& round, std::span<const api::Pod* const> pods);

}  // namespace spillway::admission
