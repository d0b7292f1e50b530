// Goal: whatever the pods and the signal, the order does not depend on the order of the input, the key that is named as
// deciding does decide, and a pass without a victim says why. Method: every multiset of two to four small pods.
#include "policy/eviction/reasons.h"

#include "policy/eviction/decide.h"
#include "policy/eviction/small_pods.h"
#include "policy/eviction/threshold_parse.h"
#include "policy/eviction/whole_pass.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::eviction {
namespace {

/// Fewer kinds than all_pod_kinds(), with disk and processes as well: enough to differ in every key of every ranking.
std::vector<PodKind> differing_kinds() {
  return {{.used_mib = {}, .request_mib = 0, .priority = 0},
          {.used_mib = 50, .request_mib = 0, .priority = 0},
          {.used_mib = 50, .request_mib = 100, .priority = 0},
          {.used_mib = 150, .request_mib = 100, .priority = 0},
          {.used_mib = 150, .request_mib = 100, .priority = 9},
          {.used_mib = 50, .request_mib = 100, .priority = 9},
          {.used_mib = 150, .request_mib = 0, .priority = 2'000'000'000}};
}

struct Group {
  explicit Group(const std::vector<PodKind>& kinds) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      pods.push_back(make_pod(kinds[i], i));
      auto measured = make_stats(kinds[i], i);
      if (!measured) continue;
      const auto used = static_cast<std::uint64_t>(*kinds[i].used_mib);
      measured->process_count = used;
      api::ContainerStats& container = measured->containers.emplace_back();
      container.name = "c";
      container.rootfs.emplace().used_bytes = used << 20;
      container.rootfs->inodes_used = used;
      stats.push_back(std::move(*measured));
    }
    for (const api::Pod& pod : pods) active.push_back(&pod);
  }

  std::vector<std::string> order(Signal signal, bool reversed) const {
    std::vector<const api::Pod*> listed = active;
    if (reversed) std::ranges::reverse(listed);
    std::vector<std::string> uids;
    for (const auto& each : evaluate_ranking(signal, {}, join_stats(listed, stats), listed.size()).candidates) {
      uids.push_back(each.subject.uid);
    }
    return uids;
  }

  std::vector<api::Pod> pods;
  std::vector<api::PodStats> stats;
  std::vector<const api::Pod*> active;
};

std::int64_t fact(const policy::Reason& reason, std::string_view name, std::int64_t otherwise) {
  const auto found = std::ranges::find(reason.facts, name, &policy::Fact::name);
  return found == reason.facts.end() ? otherwise : std::get<std::int64_t>(found->value);
}

bool is_missing(const policy::Reason& reason) {
  return std::ranges::find(reason.facts, "stats", &policy::Fact::name) != reason.facts.end();
}

/// The key named by the candidate distinguishes the two, in the right direction.
void expect_decides(const policy::Candidate& a, const policy::Candidate& b, std::string_view above) {
  const std::int64_t above_a = fact(a.reason, above, 0);
  const std::int64_t above_b = fact(b.reason, above, 0);
  if (a.decided_by == "missing-stats") {
    ASSERT_TRUE(is_missing(a.reason) && !is_missing(b.reason));
  } else if (a.decided_by == "exceeds-request") {
    ASSERT_TRUE(above_a > 0 && above_b <= 0);
  } else if (a.decided_by == "priority") {
    ASSERT_LT(fact(a.reason, "priority", 0), fact(b.reason, "priority", 0));
  } else if (a.decided_by == "above-request" || a.decided_by == "processes") {
    ASSERT_GT(above_a, above_b);
  } else {
    ASSERT_EQ(a.decided_by, "name");
    ASSERT_LT(a.subject.uid, b.subject.uid);
  }
}

TEST(Reasons, TheKeySaidToDecideDoes) {
  const std::vector<PodKind> kinds = differing_kinds();
  const std::vector<std::pair<Signal, std::string_view>> signals{{Signal::kMemoryAvailable, "above_request_bytes"},
                                                                 {Signal::kNodeFsAvailable, "above_request_bytes"},
                                                                 {Signal::kPidAvailable, "processes"}};
  int sets = 0;
  for_each_set(kinds.size(), 4, [&](const std::vector<std::size_t>& set) {
    ++sets;
    std::vector<PodKind> chosen;
    for (const std::size_t kind : set) chosen.push_back(kinds[kind]);
    const Group group(chosen);
    for (const auto& [signal, above] : signals) {
      const auto candidates = evaluate_ranking(signal, {}, join_stats(group.active, group.stats), 10).candidates;
      ASSERT_EQ(candidates.size(), chosen.size());
      for (std::size_t i = 0; i + 1 < candidates.size(); ++i) expect_decides(candidates[i], candidates[i + 1], above);
      ASSERT_TRUE(candidates.back().decided_by.empty());
      ASSERT_EQ(group.order(signal, false), group.order(signal, true));
    }
  });
  EXPECT_GT(sets, 300);
}

TEST(Reasons, OnlyTheHeadOfALongRankingIsRecordedAndTheVictimWhereverItIs) {
  std::vector<PodKind> kinds(12, {.used_mib = 150, .request_mib = 0, .priority = 2'000'000'000});
  kinds.push_back({.used_mib = 10, .request_mib = 100, .priority = 0});
  const Group group(kinds);
  const EvaluatedRanking ranking =
      evaluate_ranking(Signal::kMemoryAvailable, {}, join_stats(group.active, group.stats), 10);
  ASSERT_EQ(ranking.candidates.size(), 11u);
  EXPECT_EQ(ranking.candidates.back().subject.uid, "uid-12");
  EXPECT_EQ(ranking.candidates.back().reason.code, policy::ReasonCode::kRankedFirst);
}

TEST(Reasons, APassWithoutAVictimSaysWhy) {
  const PassConfig config{.thresholds = parse_thresholds({.hard = {{"memory.available", "100Mi"}}}).value()};
  for (const std::int64_t available : {50, 99, 100, 500}) {
    for (const bool critical : {false, true}) {
      const Group group({{.used_mib = 150, .request_mib = 0, .priority = critical ? 2'000'000'000 : 0}});
      api::Summary summary = node_with(available, WallTime(seconds(1)));
      summary.pods = group.stats;
      PassState state;
      adopt_layout(config, {}, state);
      const Now now{Instant(hours(1)), WallTime(seconds(2))};
      const PassResult result = run_whole_pass(config, std::move(state), summary, group.active, now);
      const bool acts = available < 100 && !critical;
      EXPECT_EQ(result.actions.size(), acts ? 1u : 0u);
      EXPECT_EQ(result.decision.verdict, acts              ? policy::Verdict::kActs
                                         : available < 100 ? policy::Verdict::kWaits
                                                           : policy::Verdict::kRests);
      EXPECT_FALSE(result.decision.reasons.empty());
      EXPECT_EQ(result.decision.subject.kind, acts ? "Pod" : "Node");
    }
  }
}

TEST(CurrentDecision, ListsAllPodsAndChangesNothing) {
  const PassConfig config{.thresholds = parse_thresholds({.hard = {{"memory.available", "100Mi"}}}).value()};
  const Group group(differing_kinds());
  api::Summary summary = node_with(500, WallTime(seconds(1)));
  summary.pods = group.stats;
  PassState state;
  adopt_layout(config, {}, state);
  const Now now{Instant(hours(1)), WallTime(seconds(2))};
  const policy::Decision decision =
      current_decision(config, state, summary, group.active, Signal::kMemoryAvailable, now);
  EXPECT_EQ(decision.verdict, policy::Verdict::kRests);
  EXPECT_EQ(decision.candidates.size(), group.pods.size());
  EXPECT_EQ(decision.reasons.front().code, policy::ReasonCode::kThresholdNotMet);
}

}  // namespace
}  // namespace spillway::eviction
