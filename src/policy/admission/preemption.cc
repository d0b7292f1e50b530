#include "policy/admission/preemption.h"

#include "api/object/pod_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compare>
#include <utility>

namespace spillway::admission {

namespace {

using policy::Reason;
using policy::ReasonCode;

double squared_share(std::int64_t needed, std::int64_t freed) {
  const double left = static_cast<double>(std::max<std::int64_t>(0, needed - freed)) / static_cast<double>(needed);
  return left * left;
}

/// A pod that may be preempted, with the resources that its end frees, counted once.
struct Candidate {
  std::size_t index = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t milli_cpu = 0;
  std::vector<std::int64_t> freed;  // by requirement, in the order given
};

/// The amounts still missing, one per requirement. A covered requirement is zero and no longer counts.
using Needs = std::vector<std::int64_t>;

bool is_covered(const Needs& needs) {
  return std::ranges::all_of(needs, [](std::int64_t each) { return each == 0; });
}

void subtract(Needs& needs, const Candidate& candidate) {
  for (std::size_t i = 0; i < needs.size(); ++i) {
    needs[i] = needs[i] > candidate.freed[i] ? needs[i] - candidate.freed[i] : 0;
  }
}

Needs without(Needs needs, const std::vector<Candidate>& victims) {
  for (const Candidate& candidate : victims) subtract(needs, candidate);
  return needs;
}

/// Ties between equally distant pods: true if `later` is chosen. The smaller request wins; with equal requests the
/// later pod.
bool goes_before(const Candidate& later, const Candidate& earlier) {
  if (later.memory_bytes != earlier.memory_bytes) return later.memory_bytes < earlier.memory_bytes;
  return later.milli_cpu <= earlier.milli_cpu;
}

class Search {
 public:
  Search(const api::Pod& preemptor, std::span<const api::Pod* const> pods, std::vector<Requirement> requirements)
      : requirements_(std::move(requirements)) {
    for (const Requirement& each : requirements_) needs_.push_back(std::max<std::int64_t>(0, each.quantity));
    for (std::size_t i = 0; i < pods.size(); ++i) {
      if (!api::may_preempt(preemptor, *pods[i])) continue;
      const std::string& set = pods[i]->status.qos_class;
      if (!set.empty() && !api::parse_qos(set)) continue;
      of(api::qos_of(*pods[i])).push_back(candidate_of(*pods[i], i));
      ++choice_.candidates;
    }
  }

  Choice run() {
    const std::vector<Candidate>& best_effort = of(api::QosClass::kBestEffort);
    const Needs uncovered =
        without(without(without(needs_, best_effort), of(api::QosClass::kBurstable)), of(api::QosClass::kGuaranteed));
    if (!is_covered(uncovered)) {
      choice_.uncovered = named(uncovered);
      return std::move(choice_);
    }
    const Needs beyond_burstable = without(without(needs_, best_effort), of(api::QosClass::kBurstable));
    const std::vector<Candidate> guaranteed = choose(api::QosClass::kGuaranteed, beyond_burstable);
    const Needs beyond_best_effort = without(without(needs_, best_effort), guaranteed);
    const std::vector<Candidate> burstable = choose(api::QosClass::kBurstable, beyond_best_effort);
    const std::vector<Candidate> rest =
        choose(api::QosClass::kBestEffort, without(without(needs_, burstable), guaranteed));
    for (const auto* chosen : {&rest, &burstable, &guaranteed}) {
      for (const Candidate& each : *chosen) choice_.victims.push_back(each.index);
    }
    return std::move(choice_);
  }

 private:
  std::vector<Candidate>& of(api::QosClass qos) { return by_class_[static_cast<std::size_t>(qos)]; }

  Candidate candidate_of(const api::Pod& pod, std::size_t index) const {
    Candidate candidate{
        .index = index, .memory_bytes = freed_by(pod, "memory"), .milli_cpu = freed_by(pod, "cpu"), .freed = {}};
    candidate.freed.reserve(requirements_.size());
    for (const Requirement& each : requirements_) {
      if (each.resource == "memory") {
        candidate.freed.push_back(candidate.memory_bytes);
      } else if (each.resource == "cpu") {
        candidate.freed.push_back(candidate.milli_cpu);
      } else {
        candidate.freed.push_back(freed_by(pod, each.resource));
      }
    }
    return candidate;
  }

  std::vector<Requirement> named(const Needs& needs) const {
    std::vector<Requirement> result;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (needs[i] > 0) result.push_back({requirements_[i].resource, needs[i]});
    }
    return result;
  }

  std::vector<Candidate> choose(api::QosClass qos, Needs needs) {
    std::vector<Candidate> left = of(qos);
    std::vector<Candidate> chosen;
    while (!is_covered(needs) && !left.empty()) {
      Round round{.qos = qos, .needs = named(needs), .distances = {}, .chosen = 0};
      round.distances.reserve(left.size());
      std::size_t best = 0;
      double smallest = static_cast<double>(needs.size()) + 1;
      for (std::size_t i = 0; i < left.size(); ++i) {
        const double distance = distance_to(needs, left[i].freed);
        round.distances.push_back({left[i].index, distance});
        if (distance < smallest || (distance == smallest && goes_before(left[i], left[best]))) {
          smallest = distance;
          best = i;
        }
      }
      round.chosen = left[best].index;
      choice_.rounds.push_back(std::move(round));
      subtract(needs, left[best]);
      chosen.push_back(std::move(left[best]));
      if (best + 1 != left.size()) left[best] = std::move(left.back());  // the last element fills the gap
      left.pop_back();
    }
    return chosen;
  }

  std::vector<Requirement> requirements_;
  Needs needs_;
  std::array<std::vector<Candidate>, 3> by_class_;
  Choice choice_;
};

double distance_in(const Round& round, std::size_t candidate) {
  return std::ranges::find(round.distances, candidate, &Round::Distance::candidate)->distance;
}

}  // namespace

std::int64_t freed_by(const api::Pod& pod, std::string_view resource) {
  const api::Quantity amount = api::agent_request(pod.spec, resource);
  return resource == "cpu" ? amount.milli_value() : amount.value();
}

double distance_to(std::span<const std::int64_t> needed, std::span<const std::int64_t> freed) {
  double sum = 0;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i] > 0) sum += squared_share(needed[i], freed[i]);
  }
  return sum;
}

Choice choose_victims(const api::Pod& preemptor, std::span<const api::Pod* const> pods,
                      std::vector<Requirement> requirements) {
  return Search(preemptor, pods, std::move(requirements)).run();
}

std::string uncovered_text(std::span<const Requirement> uncovered) {
  std::string list;
  for (const Requirement& each : uncovered) list += fmt::format("(res: {}, q: {}), ", each.resource, each.quantity);
  return fmt::format("no set of running pods found to reclaim resources: [{}]", list);
}

std::vector<Reason> reasons_of(const Choice& choice) {
  std::vector<Reason> reasons;
  for (const Requirement& each : choice.uncovered) {
    reasons.push_back({ReasonCode::kPreemptionInsufficient,
                       {{"resource", each.resource},
                        {"uncovered", each.quantity},
                        {"candidates", static_cast<std::int64_t>(choice.candidates)}}});
  }
  return reasons;
}

Reason reason_of(const Round& round, std::span<const api::Pod* const> pods) {
  const api::Pod& victim = *pods[round.chosen];
  Reason reason{ReasonCode::kPreempted,
                {{"qos", std::string(to_string(round.qos))}, {"priority", std::int64_t{api::priority_of(victim)}}}};
  for (const Requirement& need : round.needs) {
    reason.facts.push_back({"needed_" + need.resource, need.quantity});
    reason.facts.push_back({"frees_" + need.resource, freed_by(victim, need.resource)});
  }
  reason.facts.push_back({"distance", distance_in(round, round.chosen)});
  return reason;
}

std::vector<policy::Candidate> candidates_of(const Round& round, std::span<const api::Pod* const> pods) {
  std::vector<Round::Distance> order = round.distances;
  std::ranges::stable_sort(order, [&](const Round::Distance& a, const Round::Distance& b) {
    if ((a.candidate == round.chosen) != (b.candidate == round.chosen)) return a.candidate == round.chosen;
    return a.distance < b.distance;
  });
  if (order.size() > kCandidatesKept) order.resize(kCandidatesKept);
  std::vector<policy::Candidate> candidates;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const api::Pod& pod = *pods[order[i].candidate];
    policy::Candidate candidate{
        .subject = {"Pod", pod.metadata.ns, pod.metadata.name, pod.metadata.uid},
        .reason = {order[i].candidate == round.chosen ? ReasonCode::kRankedFirst : ReasonCode::kRankedLater,
                   {{"distance", order[i].distance},
                    {"qos", std::string(to_string(round.qos))},
                    {"memory_bytes", freed_by(pod, "memory")},
                    {"cpu_milli", freed_by(pod, "cpu")}}},
        .decided_by = {}};
    if (i + 1 < order.size()) {
      candidate.decided_by = order[i].distance != order[i + 1].distance ? "distance" : "request";
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace spillway::admission
