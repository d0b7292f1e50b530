#include "policy/eviction/reasons.h"

#include "api/object/pod_requests.h"
#include "base/check.h"

#include <string>
#include <utility>

namespace spillway::eviction {
namespace {

using policy::Fact;
using policy::Reason;
using policy::ReasonCode;

std::string_view unit_of(Signal signal) {
  const std::string_view resource = resource_of(signal);
  if (resource == "inodes") return "_inodes";
  return resource == "pids" ? "_processes" : "_bytes";
}

Fact amount_fact(std::string_view name, Signal signal, std::int64_t amount) {
  std::string full(name);
  full += unit_of(signal);
  return {std::move(full), amount};
}

std::string_view requested_resource(Signal signal) {
  return is_memory(signal) ? "memory" : "ephemeral-storage";
}

/// The numbers behind the key. Usage is that of the rank, so that an unknown part shows as the rank counted it.
void add_numbers(std::vector<Fact>& facts, const UsageRank& rank, Signal signal) {
  const api::Quantity request = api::agent_request(rank.measured.pod->spec, requested_resource(signal));
  const bool unmeasured =
      is_memory(signal) && !(rank.measured.stats->memory && rank.measured.stats->memory->working_set_bytes);
  if (unmeasured) {
    facts.push_back({"stats", std::string("without-memory")});
  } else {
    facts.push_back(
        amount_fact(is_memory(signal) ? "working_set" : "used", signal, (rank.above_request + request).value()));
  }
  facts.push_back({"request_bytes", request.value()});
  facts.push_back(amount_fact("above_request", signal, rank.above_request.value()));
}

void add_numbers(std::vector<Fact>& facts, const PidRank& rank, Signal) {
  facts.push_back({"processes", static_cast<std::int64_t>(rank.processes)});
}

template <typename Rank>
Reason pod_reason(ReasonCode code, const Rank& rank, Signal signal) {
  Reason reason{code, {{"priority", std::int64_t{rank.priority}}}};
  if (rank.missing_stats) {
    reason.facts.push_back({"stats", std::string("missing")});
  } else {
    add_numbers(reason.facts, rank, signal);
  }
  return reason;
}

template <typename Rank>
EvaluatedRanking evaluate(const std::vector<Rank>& ranks, Signal signal, std::size_t candidates_max) {
  EvaluatedRanking result;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Rank& rank = ranks[i];
    const bool spared = api::is_critical(*rank.measured.pod);
    const bool chosen = !spared && result.victim.pod == nullptr;
    if (chosen) result.victim = rank.measured;
    if (result.candidates.size() >= candidates_max && !chosen) {
      if (result.victim.pod != nullptr) break;
      continue;
    }
    const ReasonCode code =
        spared ? ReasonCode::kCriticalPodSpared : (chosen ? ReasonCode::kRankedFirst : ReasonCode::kRankedLater);
    result.candidates.push_back({subject_of(*rank.measured.pod), pod_reason(code, rank, signal),
                                 i + 1 < ranks.size() ? std::string(deciding_key(rank, ranks[i + 1])) : std::string()});
  }
  return result;
}

}  // namespace

Reason threshold_reason(ReasonCode code, const Threshold& threshold, const Observations& seen) {
  Reason reason{code, {{"signal", std::string(to_string(threshold.signal))}}};
  if (const std::optional<Observation>& observation = seen[threshold.signal]) {
    reason.facts.push_back(amount_fact("available", threshold.signal, observation->available));
    if (const auto limit = amount_of(threshold.value, observation->capacity)) {
      reason.facts.push_back(amount_fact("threshold", threshold.signal, limit->value()));
    }
    reason.facts.push_back(amount_fact("capacity", threshold.signal, observation->capacity));
  }
  if (!threshold.is_hard()) {
    reason.facts.push_back({"grace_seconds", std::chrono::duration_cast<seconds>(threshold.grace_period).count()});
  }
  return reason;
}

policy::Subject subject_of(const api::Pod& pod) {
  return {.kind = "Pod", .ns = pod.metadata.ns, .name = pod.metadata.name, .uid = pod.metadata.uid};
}

std::string_view deciding_key(const UsageRank& a, const UsageRank& b) {
  if (a.missing_stats != b.missing_stats) return "missing-stats";
  if (a.exceeds_request != b.exceeds_request) return "exceeds-request";
  if (a.priority != b.priority) return "priority";
  if (a.above_request != b.above_request) return "above-request";
  return "name";
}

std::string_view deciding_key(const PidRank& a, const PidRank& b) {
  if (a.priority != b.priority) return "priority";
  if (a.missing_stats != b.missing_stats) return "missing-stats";
  if (a.processes != b.processes) return "processes";
  return "name";
}

EvaluatedRanking evaluate_ranking(Signal signal, StorageLayout layout, std::span<const MeasuredPod> pods,
                                  std::size_t candidates_max) {
  switch (signal) {
    case Signal::kMemoryAvailable:
    case Signal::kAllocatableMemoryAvailable:
    case Signal::kMemAvailable:
      return evaluate(rank_for_memory(pods), signal, candidates_max);
    case Signal::kNodeFsAvailable:
    case Signal::kImageFsAvailable:
    case Signal::kContainerFsAvailable:
      return evaluate(rank_for_disk(pods, disk_parts(signal, layout), DiskResource::kBytes), signal, candidates_max);
    case Signal::kNodeFsInodesFree:
    case Signal::kImageFsInodesFree:
    case Signal::kContainerFsInodesFree:
      return evaluate(rank_for_disk(pods, disk_parts(signal, layout), DiskResource::kInodes), signal, candidates_max);
    case Signal::kPidAvailable:
      return evaluate(rank_for_pids(pods), signal, candidates_max);
  }
  check_failed("Signal in range", __FILE__, __LINE__);
}

}  // namespace spillway::eviction
