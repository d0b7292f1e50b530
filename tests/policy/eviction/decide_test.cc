// Goal: a pass ends exactly one pod or says why not, whatever the pods; soft thresholds wait, conditions linger.
// Method: every multiset of two to four small pods; time by argument.
#include "policy/eviction/decide.h"

#include "base/rng.h"
#include "policy/eviction/quiet_pass.h"
#include "policy/eviction/small_pods.h"
#include "policy/eviction/threshold_parse.h"
#include "policy/eviction/whole_pass.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::eviction {
namespace {

constexpr WallTime kStart = WallTime(seconds(1'700'000'000));

Now at(Duration elapsed) {
  return {Instant(elapsed), kStart + std::chrono::duration_cast<microseconds>(elapsed)};
}

PassConfig config_with(const SignalMap& hard, const SignalMap& soft = {}) {
  SignalMap grace;
  for (const auto& [signal, value] : soft) grace[signal] = "30s";
  return {.thresholds = parse_thresholds({.hard = hard, .soft = soft, .soft_grace_period = grace}).value(),
          .max_pod_grace_period_seconds = 20};
}

PassState fresh_state(const PassConfig& config) {
  PassState state;
  adopt_layout(config, {}, state);
  return state;
}

bool has_reason(const PassResult& result, policy::ReasonCode code) {
  return std::ranges::any_of(result.decision.reasons,
                             [&](const policy::Reason& reason) { return reason.code == code; });
}

struct Cluster {
  explicit Cluster(const std::vector<PodKind>& kinds, std::int64_t available_mib, Duration elapsed)
      : summary(node_with(available_mib, at(elapsed).wall)) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      pods.push_back(make_pod(kinds[i], i));
      if (auto stats = make_stats(kinds[i], i)) summary.pods.push_back(std::move(*stats));
    }
    for (const api::Pod& pod : pods) active.push_back(&pod);
  }

  std::vector<api::Pod> pods;
  api::Summary summary;
  std::vector<const api::Pod*> active;
};

TEST(DecideEviction, EndsExactlyOneOrdinaryPodAndNeverACriticalOne) {
  const std::vector<PodKind> kinds = all_pod_kinds();
  const PassConfig config = config_with({{"memory.available", "100Mi"}});
  int sets = 0;
  for_each_set(kinds.size(), 4, [&](const std::vector<std::size_t>& set) {
    ++sets;
    std::vector<PodKind> chosen;
    for (const std::size_t kind : set) chosen.push_back(kinds[kind]);
    const Cluster cluster(chosen, 50, {});
    const PassResult result = run_whole_pass(config, fresh_state(config), cluster.summary, cluster.active, at({}));
    const bool anybody = std::ranges::any_of(chosen, [](const PodKind& kind) { return !kind.critical(); });
    ASSERT_EQ(result.actions.size(), anybody ? 1u : 0u);
    if (!anybody) {
      ASSERT_TRUE(has_reason(result, policy::ReasonCode::kNoCandidate));
      return;
    }
    const EvictPod& action = result.actions.front();
    const auto victim =
        std::ranges::find(cluster.pods, action.uid, [](const api::Pod& pod) { return pod.metadata.uid; });
    ASSERT_NE(victim, cluster.pods.end());
    ASSERT_FALSE(api::is_critical(*victim));
    ASSERT_EQ(action.grace_period_seconds, kHardGraceSeconds);
    ASSERT_TRUE(has_reason(result, policy::ReasonCode::kRankedFirst));
    // No pod that ranks before the victim was passed over, unless it is critical.
    for (const policy::Candidate& candidate : result.decision.candidates) {
      if (candidate.subject.uid == action.uid) break;
      ASSERT_EQ(candidate.reason.code, policy::ReasonCode::kCriticalPodSpared);
    }
  });
  EXPECT_GT(sets, 7000);
}

TEST(DecideEviction, EvictsNoPodAtTheThreshold) {
  const PassConfig config = config_with({{"memory.available", "100Mi"}});
  const Cluster cluster({{.used_mib = 150, .request_mib = 0, .priority = 0}}, 100, {});
  const PassResult result = run_whole_pass(config, fresh_state(config), cluster.summary, cluster.active, at({}));
  EXPECT_TRUE(result.actions.empty());
  EXPECT_TRUE(result.state.conditions.empty());
  EXPECT_TRUE(has_reason(result, policy::ReasonCode::kNoThresholdMet));
}

TEST(DecideEviction, WaitsForTheGraceOfASoftThreshold) {
  const PassConfig config = config_with({}, {{"memory.available", "100Mi"}});
  PassState state = fresh_state(config);
  for (const Duration elapsed : {seconds(0), seconds(29)}) {
    const Cluster cluster({{.used_mib = 150, .request_mib = 0, .priority = 0}}, 50, elapsed);
    PassResult result = run_whole_pass(config, std::move(state), cluster.summary, cluster.active, at(elapsed));
    EXPECT_TRUE(result.actions.empty());
    EXPECT_TRUE(has_reason(result, policy::ReasonCode::kGraceNotOver));
    EXPECT_TRUE(result.state.conditions.contains(Condition::kMemoryPressure)) << "conditions do not wait";
    state = std::move(result.state);
  }
  Cluster cluster({{.used_mib = 150, .request_mib = 0, .priority = 0}}, 50, seconds(30));
  cluster.pods.front().spec.termination_grace_period_seconds = 7;
  const PassResult result = run_whole_pass(config, std::move(state), cluster.summary, cluster.active, at(seconds(30)));
  ASSERT_EQ(result.actions.size(), 1u);
  EXPECT_EQ(result.actions.front().grace_period_seconds, 7);
}

TEST(DecideEviction, DoesNotActTwiceOnOneObservation) {
  const PassConfig config = config_with({{"memory.available", "100Mi"}});
  const Cluster cluster(
      {{.used_mib = 150, .request_mib = 0, .priority = 0}, {.used_mib = 150, .request_mib = 0, .priority = 0}}, 50, {});
  PassResult first = run_whole_pass(config, fresh_state(config), cluster.summary, cluster.active, at({}));
  ASSERT_EQ(first.actions.size(), 1u);
  const PassResult second =
      run_whole_pass(config, std::move(first.state), cluster.summary, cluster.active, at(seconds(1)));
  EXPECT_TRUE(second.actions.empty());
  EXPECT_TRUE(has_reason(second, policy::ReasonCode::kObservationStale));
}

TEST(DecideEviction, ReportsAConditionForTheTransitionPeriodAfterItsEnd) {
  const PassConfig config = config_with({{"memory.available", "100Mi"}});
  PassState state = fresh_state(config);
  const auto reported_at = [&](std::int64_t available_mib, Duration elapsed) {
    const Cluster cluster({}, available_mib, elapsed);
    PassResult result = run_whole_pass(config, std::move(state), cluster.summary, cluster.active, at(elapsed));
    state = std::move(result.state);
    return state.conditions.contains(Condition::kMemoryPressure);
  };
  EXPECT_TRUE(reported_at(50, seconds(0)));
  EXPECT_TRUE(reported_at(500, seconds(299)));
  EXPECT_FALSE(reported_at(500, seconds(300)));
}

bool same_state(const PassState& a, const PassState& b, Instant now) {
  const auto seen = [](const PassState& state, Condition condition) {
    return state.condition_clock.last_seen(condition);
  };
  return a.conditions == b.conditions && a.crossed_before.empty() == b.crossed_before.empty() && a.last == b.last &&
         a.grace.next_end(now) == b.grace.next_end(now) &&
         std::ranges::all_of(kConditions, [&](Condition each) { return seen(a, each) == seen(b, each); });
}

/// Random falls and recoveries: a pass that can be quiet is, and leaves the state that the pass would have left.
TEST(PassQuietly, IsExactlyThePassThatDoesNothing) {
  PassConfig config = config_with({{"memory.available", "100Mi"}}, {{"memory.available", "200Mi"}});
  config.pressure_transition_period = seconds(60);
  Rng rng(11);
  int quiet_passes = 0;
  int others = 0;
  for (int run = 0; run < 200; ++run) {
    PassState state = fresh_state(config);
    Duration elapsed{};
    for (int pass = 0; pass < 40; ++pass) {
      elapsed += seconds(static_cast<std::int64_t>(1 + rng.below(30)));
      const std::int64_t available = rng.below(4) == 0 ? static_cast<std::int64_t>(rng.below(250)) : 600;
      const Cluster cluster({{.used_mib = 150, .request_mib = 0, .priority = 0}}, available, elapsed);
      const Observations seen = observe(cluster.summary, config.memory_estimator);
      PassState after = state;
      const bool is_quiet = pass_quietly(config, after, seen, cluster.summary, cluster.active, at(elapsed));
      PassResult result = observe_pressure(config, state, cluster.summary, cluster.active, at(elapsed));
      const bool nothing_met = thresholds_met(state.thresholds, seen, Reclaim::kWithout).empty();
      const bool does_nothing = nothing_met && state.crossed_before.empty() && result.actions.empty() &&
                                !result.pending && result.state.conditions == state.conditions;
      ASSERT_EQ(is_quiet, does_nothing);
      ASSERT_TRUE(same_state(after, is_quiet ? result.state : state, at(elapsed).mono));
      ++(is_quiet ? quiet_passes : others);
      state = std::move(result.state);
    }
  }
  EXPECT_GT(quiet_passes, 1'000);
  EXPECT_GT(others, 1'000);
}

/// No memory is short, but a pod has filled its disk: that pass is not quiet.
TEST(PassQuietly, NotWhileAPodExceedsItsLocalStorage) {
  const PassConfig config = config_with({{"memory.available", "100Mi"}});
  Cluster cluster({{.used_mib = 150, .request_mib = 0, .priority = 0}}, 600, {});
  cluster.pods[0].spec.containers[0].resources.limits["ephemeral-storage"] = api::Quantity::of_bytes(mebibytes(1));
  api::FsStats& disk = cluster.summary.pods[0].ephemeral_storage.emplace();
  const auto passes = [&](Bytes used) {
    disk.used_bytes = static_cast<std::uint64_t>(used.count());
    PassState state = fresh_state(config);
    return pass_quietly(config, state, observe(cluster.summary), cluster.summary, cluster.active, at({}));
  };
  EXPECT_TRUE(passes(mebibytes(1)));
  EXPECT_FALSE(passes(mebibytes(2)));
}

TEST(DecideEviction, AnUnreadableSignalDoesNotStopTheOthers) {
  const PassConfig config = config_with({{"memory.available", "100Mi"}, {"nodefs.available", "10%"}});
  const Cluster cluster({{.used_mib = 150, .request_mib = 0, .priority = 0}}, 50, {});
  const PassResult result = run_whole_pass(config, fresh_state(config), cluster.summary, cluster.active, at({}));
  EXPECT_EQ(result.actions.size(), 1u);
  EXPECT_TRUE(has_reason(result, policy::ReasonCode::kObservationMissing));
}

TEST(Reasons, EveryCodeHasANameOfItsOwn) {
  for (int i = 0; i <= static_cast<int>(policy::kLastReasonCode); ++i) {
    const auto code = static_cast<policy::ReasonCode>(i);
    EXPECT_EQ(policy::parse_reason_code(policy::to_string(code)), code);
  }
  EXPECT_EQ(policy::parse_reason_code("because"), std::nullopt);
}

TEST(Reasons, RenderAsFacts) {
  const policy::Reason reason{policy::ReasonCode::kThresholdMet,
                              {{"signal", std::string("memory.available")}, {"available", std::int64_t{1}}}};
  EXPECT_EQ(policy::render(reason), "threshold-met signal=memory.available available=1");
}

}  // namespace
}  // namespace spillway::eviction
