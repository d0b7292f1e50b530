// vectors/eviction: relief. The rows are this project's own; tests/policy/eviction/relief_rows.py has a second
// implementation of the rule, in Python, and writes them.
#include "policy/eviction/reading.h"
#include "policy/eviction/relief.h"
#include "policy/eviction/threshold_parse.h"
#include "support/vectors.h"

#include <string>
#include <vector>

namespace spillway::eviction {
namespace {

using api::Json;
using support::add_vector_check;
using support::compare;
using support::Mismatch;

/// A node whose readings are given one by one.
class ReliefRow {
 public:
  explicit ReliefRow(const Json& in) : memory_(integer(in, "memory")) {
    ThresholdConfig thresholds{.hard = {}, .enforce_pods = EnforcePods::kNo};
    for (const auto& [signal, value] : *in.find("hard")->if_object()) thresholds.hard[signal] = *value.if_string();
    for (const auto& [signal, value] : *in.find("minimumReclaim")->if_object())
      thresholds.minimum_reclaim[signal] = *value.if_string();
    config_.thresholds = parse_thresholds(thresholds).value();
    config_.node = "n1";
    if (in.string_at({"estimator"}) == "available") config_.memory_estimator = MemoryEstimator::kAvailable;
    for (const Json& each : array(in, "pods")) pods_.push_back(read_pod(each));
  }

  Json step(const Json& in) {
    const Now now{at_seconds(integer(in, "second")), WallTime(seconds(1'700'000'000 + integer(in, "second")))};
    if (in.find("relieved") != nullptr) {
      record_relief(bounds_, state_, read_outcomes(in), now);
      return Json::object();
    }
    if (is_resting(bounds_, state_, now)) return Json::object({{"resting", true}});
    const api::Summary summary = read_summary(in, now);
    std::vector<const api::Pod*> active;
    for (const api::Pod& pod : pods_) {
      if (in.at({"pods", pod.metadata.uid}) != nullptr) active.push_back(&pod);
    }
    const auto plan = plan_relief(config_, bounds_, state_, config_.thresholds, summary, active, now);
    if (!plan) return Json::object({{"near", false}});
    return carry_out(*plan, now);
  }

 private:
  static api::Pod read_pod(const Json& in) {
    api::Pod pod;
    pod.metadata.ns = "shop";
    pod.metadata.name = in.string_at({"name"});
    pod.metadata.uid = in.string_at({"name"});
    pod.spec.priority = static_cast<std::int32_t>(integer(in, "priority"));
    api::Container& container = pod.spec.containers.emplace_back();
    container.name = "c";
    if (const std::int64_t request = integer(in, "request"); request > 0)
      container.resources.requests["memory"] = api::Quantity::of_bytes(Bytes{request});
    return pod;
  }

  api::Summary read_summary(const Json& in, Now now) const {
    api::Summary summary;
    api::MemoryStats& node = summary.node.memory.emplace();
    node.time = now.wall;
    node.available_bytes = static_cast<std::uint64_t>(integer(in, "available"));
    node.working_set_bytes = static_cast<std::uint64_t>(memory_ - integer(in, "available"));
    for (const auto& [uid, measured] : *in.find("pods")->if_object()) {
      api::PodStats& pod = summary.pods.emplace_back();
      pod.uid = uid;
      pod.memory.emplace().working_set_bytes = static_cast<std::uint64_t>(integer(measured, "workingSet"));
      if (measured.find("active") == nullptr) continue;
      pod.file_cache = api::FileCache{.inactive_bytes = static_cast<std::uint64_t>(integer(measured, "inactive")),
                                      .active_bytes = static_cast<std::uint64_t>(integer(measured, "active"))};
      if (measured.find("refaulted") != nullptr)
        pod.file_cache->refaulted_bytes = static_cast<std::uint64_t>(integer(measured, "refaulted"));
    }
    return summary;
  }

  static std::vector<ReliefOutcome> read_outcomes(const Json& in) {
    std::vector<ReliefOutcome> outcomes;
    for (const Json& each : array(in, "relieved")) {
      ReliefOutcome& outcome = outcomes.emplace_back();
      outcome.uid = each.string_at({"pod"});
      outcome.asked = Bytes{integer(each, "asked")};
      outcome.freed = Bytes{integer(each, "freed")};
      if (each.find("refaulted") != nullptr) outcome.refaulted = Bytes{integer(each, "refaulted")};
    }
    return outcomes;
  }

  /// As the engine does: a plan with something to reclaim is a round, and an eviction that is due waits for it or not.
  Json carry_out(const ReliefPlan& plan, Now now) {
    Json reclaim = Json::array();
    for (const CacheReclaim& each : plan.reclaim)
      reclaim.if_array()->push_back(Json::object({{"pod", each.uid}, {"bytes", each.bytes.count()}}));
    Json reasons = Json::object();
    for (const policy::Candidate& each : plan.decision.candidates)
      reasons[each.subject.name] = std::string(policy::to_string(each.reason.code));
    const bool waits = is_worth_waiting(state_, plan);
    if (!plan.reclaim.empty()) state_.last_round = now.mono;
    if (waits) state_.has_waited = true;
    return Json::object({{"near", true},
                         {"reclaim", std::move(reclaim)},
                         {"pods", std::move(reasons)},
                         {"expected", plan.expected.count()},
                         {"shortBy", plan.short_by.count()},
                         {"waits", waits}});
  }

  std::int64_t memory_;
  PassConfig config_;
  ReliefBounds bounds_;
  ReliefState state_;
  std::vector<api::Pod> pods_;
};

std::optional<Mismatch> relief(const Json& row) {
  ReliefRow node(*row.find("in"));
  Json got = Json::array();
  for (const Json& step : array(*row.find("in"), "steps")) got.if_array()->push_back(node.step(step));
  return compare(*row.find("out"), Json::object({{"steps", std::move(got)}}));
}

const bool kRelief = add_vector_check("eviction/relief", relief);

}  // namespace
}  // namespace spillway::eviction
