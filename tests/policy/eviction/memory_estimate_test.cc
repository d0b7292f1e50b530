// Goal: three ways to say what is left, one of which counts; the others show where they would have said otherwise.
#include "policy/eviction/memory_estimate.h"

#include "policy/eviction/decide.h"
#include "policy/eviction/small_pods.h"
#include "policy/eviction/threshold_parse.h"
#include "policy/eviction/whole_pass.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::eviction {
namespace {

constexpr WallTime kAt = WallTime(seconds(1'700'000'000));
constexpr Now kNow{Instant(hours(1)), kAt};

/// 90Mi by the working set, 400Mi by the kernel (much of it is page cache), 290Mi with swap.
api::Summary cached_node() {
  api::Summary summary = node_with(90, kAt);
  summary.node.memory->mem_available_bytes = static_cast<std::uint64_t>(mebibytes(400).count());
  summary.node.memory->swap_left_bytes = mebibytes(200).count();
  return summary;
}

PassResult run_pass(const api::Summary& summary, MemoryEstimator by, std::vector<Threshold> more = {}) {
  PassConfig config{.thresholds = parse_thresholds({.hard = {{"memory.available", "100Mi"}}}).value(),
                    .memory_estimator = by,
                    .node = "n1"};
  config.thresholds.insert(config.thresholds.end(), more.begin(), more.end());
  PassState state;
  adopt_layout(config, {}, state);
  static const api::Pod kPod = make_pod({.used_mib = {}, .request_mib = 0, .priority = 0}, 0);
  const api::Pod* const active[] = {&kPod};
  return run_whole_pass(config, std::move(state), summary, active, kNow);
}

std::vector<std::string> estimators_that_disagree(const policy::Decision& decision) {
  std::vector<std::string> names;
  for (const policy::Reason& reason : decision.reasons) {
    if (reason.code == policy::ReasonCode::kEstimateDisagrees)
      names.push_back(std::string(policy::text_fact(reason, "estimator").value()));
  }
  return names;
}

std::int64_t fact(const policy::Reason& reason, std::string_view name) {
  return std::get<std::int64_t>(std::ranges::find(reason.facts, name, &policy::Fact::name)->value);
}

TEST(MemoryEstimator, HasNames) {
  for (const MemoryEstimator by : kMemoryEstimators) EXPECT_EQ(parse_memory_estimator(to_string(by)), by);
  EXPECT_EQ(parse_memory_estimator("WorkingSet"), std::nullopt);
  EXPECT_EQ(parse_memory_estimator(""), std::nullopt);
}

TEST(MemoryEstimator, SaysWhatIsLeftAndNeverMovesTheCapacity) {
  const api::Summary summary = cached_node();
  for (const auto& [by, mib] :
       {std::pair(MemoryEstimator::kWorkingSet, 90), std::pair(MemoryEstimator::kAvailable, 400),
        std::pair(MemoryEstimator::kWorkingSetAndSwap, 290)}) {
    const auto seen = observe(summary, by)[Signal::kMemoryAvailable];
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->available, mebibytes(mib).count()) << to_string(by);
    EXPECT_EQ(seen->capacity, mebibytes(1000).count()) << to_string(by);
  }
}

TEST(MemoryEstimator, WithoutItsFigureThereIsNoObservation) {
  const api::Summary summary = node_with(90, kAt);
  EXPECT_TRUE(observe(summary, MemoryEstimator::kWorkingSet)[Signal::kMemoryAvailable]);
  EXPECT_FALSE(observe(summary, MemoryEstimator::kAvailable)[Signal::kMemoryAvailable]);
  EXPECT_FALSE(observe(summary, MemoryEstimator::kWorkingSetAndSwap)[Signal::kMemoryAvailable]);
  EXPECT_EQ(memory_estimates(summary, {}).size(), 1u);
  EXPECT_TRUE(run_pass(summary, MemoryEstimator::kAvailable).actions.empty()) << "absent is not zero";
}

TEST(MemoryEstimator, MoreSwappedOutThanThereIsRoomForCountsAgainstTheNode) {
  api::Summary summary = node_with(90, kAt);
  summary.node.memory->swap_left_bytes = -mebibytes(30).count();
  EXPECT_EQ(observe(summary, MemoryEstimator::kWorkingSetAndSwap)[Signal::kMemoryAvailable]->available,
            mebibytes(60).count());
}

TEST(MemoryEstimator, TheChosenOneDecidesAndTheOthersReportTheirDisagreement) {
  const PassResult upstream = run_pass(cached_node(), MemoryEstimator::kWorkingSet);
  EXPECT_EQ(upstream.actions.size(), 1u);
  EXPECT_EQ(estimators_that_disagree(upstream.decision), (std::vector<std::string>{"available", "workingset+swap"}));
  const auto reason =
      std::ranges::find(upstream.decision.reasons, policy::ReasonCode::kEstimateDisagrees, &policy::Reason::code);
  EXPECT_EQ(fact(*reason, "estimate_bytes"), mebibytes(400).count());
  EXPECT_EQ(fact(*reason, "difference_bytes"), mebibytes(310).count());

  const PassResult kernel = run_pass(cached_node(), MemoryEstimator::kAvailable);
  EXPECT_TRUE(kernel.actions.empty());
  EXPECT_EQ(estimators_that_disagree(kernel.decision), std::vector<std::string>{"workingset"});
  EXPECT_FALSE(kernel.state.conditions.contains(Condition::kMemoryPressure));
}

TEST(MemoryEstimator, WhoAgreesIsNotMentionedInADecision) {
  api::Summary summary = cached_node();
  summary.node.memory->mem_available_bytes = 1;
  summary.node.memory->swap_left_bytes = 1;
  EXPECT_TRUE(estimators_that_disagree(run_pass(summary, MemoryEstimator::kWorkingSet).decision).empty());
}

TEST(MemoryEstimator, AllPodsTogetherAreMeasuredInTheSameWay) {
  api::Summary summary = cached_node();
  api::ContainerStats& pods = summary.node.system_containers.emplace_back();
  pods.name = "pods";
  pods.memory = summary.node.memory;
  EXPECT_EQ(observe(summary, MemoryEstimator::kAvailable)[Signal::kAllocatableMemoryAvailable]->available,
            mebibytes(400).count());
}

TEST(MemAvailableGuard, ActsWhereMemoryAvailableSeesNothing) {
  api::Summary summary = node_with(300, kAt);
  summary.node.memory->mem_available_bytes = static_cast<std::uint64_t>(mebibytes(20).count());
  const Threshold floor{.signal = Signal::kMemAvailable,
                        .value = api::Quantity::of_bytes(mebibytes(50)),
                        .grace_period = {},
                        .min_reclaim = {}};
  EXPECT_TRUE(run_pass(summary, MemoryEstimator::kWorkingSet).actions.empty());
  const PassResult guarded = run_pass(summary, MemoryEstimator::kWorkingSet, {floor});
  ASSERT_EQ(guarded.actions.size(), 1u);
  EXPECT_EQ(guarded.actions.front().message,
            "The node was low on resource: memory. Threshold quantity: 50Mi, available: 20Mi. ");
  EXPECT_EQ(guarded.actions.front().metric_label, "memory.memAvailable");
  EXPECT_EQ(guarded.actions.front().grace_period_seconds, kHardGraceSeconds);
  EXPECT_TRUE(guarded.state.conditions.contains(Condition::kMemoryPressure));
}

TEST(MemAvailableGuard, CannotBeNamedInAConfiguration) {
  const auto parsed = parse_thresholds({.hard = {{"memory.memAvailable", "50Mi"}}});
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().text().find("unsupported eviction signal memory.memAvailable"), std::string::npos);
}

}  // namespace
}  // namespace spillway::eviction
