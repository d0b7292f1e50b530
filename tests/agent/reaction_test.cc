// Goal: an act of the machine between two passes is evaluated, journalled and reported like any other eviction.
#include "agent/eviction/reaction.h"

#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

class RecordedReaction final : public Reaction {
 public:
  void publish(ReactionPlan plan) override {
    EXPECT_TRUE(claimed) << "the plan before was not claimed";
    claimed = false;
    last = std::move(plan);
  }

  bool claim() override {
    if (acting) return false;
    claimed = true;
    return true;
  }

  std::optional<ReactionPlan> last;
  bool claimed = true;
  bool acting = false;  // the machine was quicker
};

struct Watched : ScriptedCluster {
  explicit Watched(AgentOptions options = node_options(), std::optional<Bytes> mem_available = {})
      : ScriptedCluster(std::move(options)) {
    reaction = &machine;
    host.set_mem_available(mem_available);
    put(pod_document({.name = "hog"}));
    put(pod_document({.name = "modest", .memory_request = "200Mi"}));
    put(pod_document({.name = "system", .priority = 2'000'000'000}));
    host.set_working_set("uid-hog", mebibytes(100));
    host.set_working_set("uid-modest", mebibytes(5));
    host.set_working_set("uid-system", mebibytes(420));
    host.set_available(mebibytes(500));
    start();
    run(seconds(2));
  }

  /// The machine has seen 90 MiB and ended a pod.
  Reacted acted_on(const std::string& uid, bool emergency) {
    machine.acting = true;
    return {.uid = uid,
            .emergency = emergency,
            .escalated = false,
            .node = MemoryLeft{.available = mebibytes(90), .mem_available = {}, .swap_left = {}},
            .pods = MemoryLeft{.available = mebibytes(90), .mem_available = {}, .swap_left = {}},
            .working_sets = {{"uid-hog", mebibytes(500)}, {"uid-modest", mebibytes(5)}, {"uid-system", mebibytes(420)}},
            .containers = {{"c", mebibytes(500)}},
            .at = now().wall,
            .took = microseconds(200)};
  }

  void report(const Reacted& event) {
    machine.acting = false;
    machine.claimed = true;
    send(event);
    run(milliseconds(1));
  }

  RecordedReaction machine;
};

TEST(Reaction, ThePlanHasThresholdsAndAllPodsInOrder) {
  Watched cluster;
  ASSERT_TRUE(cluster.machine.last);
  const ReactionPlan& plan = *cluster.machine.last;
  ASSERT_FALSE(plan.act.empty());
  EXPECT_EQ(plan.act.front().signal, eviction::Signal::kMemoryAvailable);
  EXPECT_EQ(plan.act.front().below, mebibytes(100));
  ASSERT_EQ(plan.candidates.size(), 3u);
  EXPECT_EQ(plan.candidates[0].uid, "uid-hog");
  EXPECT_TRUE(plan.candidates[2].key.spared);
}

TEST(Reaction, TheMachineMeasuresByTheEnginesEstimator) {
  AgentOptions options = node_options();
  options.eviction.memory_watch.estimator = eviction::MemoryEstimator::kAvailable;
  options.eviction.memory_watch.mem_available_floor = mebibytes(40);
  Watched cluster(options, mebibytes(500));
  ASSERT_TRUE(cluster.machine.last);
  EXPECT_EQ(cluster.machine.last->memory_estimator, eviction::MemoryEstimator::kAvailable);
  const auto guard =
      std::ranges::find(cluster.machine.last->act, eviction::Signal::kMemAvailable, &ReactionPlan::Trigger::signal);
  ASSERT_NE(guard, cluster.machine.last->act.end());
  EXPECT_EQ(guard->below, mebibytes(40));

  Reacted event = cluster.acted_on("uid-hog", false);
  event.node = MemoryLeft{.available = mebibytes(300), .mem_available = mebibytes(90), .swap_left = {}};
  cluster.report(event);
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  const policy::Decision& decision = cluster.journal.entries.front().decision;
  const auto other = std::ranges::find(decision.reasons, policy::ReasonCode::kEstimateDisagrees, &policy::Reason::code);
  ASSERT_NE(other, decision.reasons.end());
  EXPECT_EQ(policy::text_fact(*other, "estimator"), "workingset") << "it would have seen 300Mi";
}

TEST(Reaction, IsJournalledAndReportedAsAnEviction) {
  Watched cluster;
  cluster.report(cluster.acted_on("uid-hog", false));
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  const JournalEntry& entry = cluster.journal.entries.front();
  EXPECT_EQ(entry.eviction->uid, "uid-hog");
  EXPECT_FALSE(entry.emergency);
  EXPECT_EQ(entry.eviction->message,
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container c was using "
            "500Mi, request is 0, has larger consumption of memory. ");
  ASSERT_NE(cluster.host.last<StopPod>(), nullptr);
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, seconds(2));
  EXPECT_TRUE(cluster.machine.last->act.empty()) << "one at a time";
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.phase("hog"), "Failed");
  EXPECT_EQ(cluster.events("Evicted").size(), 1u);
  EXPECT_FALSE(cluster.machine.last->act.empty()) << "the next one may go";
}

TEST(Reaction, NamesTheContainersThatWereAboveTheirRequests) {
  Watched cluster;
  Reacted event = cluster.acted_on("uid-hog", false);
  event.containers = {{"c", mebibytes(500)}, {"gone-from-the-spec", mebibytes(9)}};
  cluster.report(event);
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  const eviction::EvictPod& action = *cluster.journal.entries.front().eviction;
  EXPECT_EQ(action.annotations.at("offending_containers"), "c");
  EXPECT_EQ(action.annotations.at("offending_containers_usage"), "500Mi");
  EXPECT_EQ(action.annotations.at("starved_resource"), "memory");
}

TEST(Reaction, BlamesNoContainerThatCouldNotBeMeasured) {
  Watched cluster;
  Reacted event = cluster.acted_on("uid-hog", false);
  event.containers.clear();
  cluster.report(event);
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  EXPECT_EQ(cluster.journal.entries.front().eviction->annotations.at("offending_containers"), "");
}

TEST(Reaction, AnEmergencyLeavesNoGrace) {
  Watched cluster;
  cluster.report(cluster.acted_on("uid-hog", true));
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  EXPECT_TRUE(cluster.journal.entries.front().emergency);
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, Duration{});
}

TEST(Reaction, TakesTheGraceWhenTheMachineDid) {
  Watched cluster;
  cluster.host.set_stubborn(true);
  cluster.report(cluster.acted_on("uid-hog", false));
  Reacted again = cluster.acted_on("uid-hog", true);
  again.escalated = true;
  cluster.machine.acting = false;
  cluster.send(again);
  cluster.run(milliseconds(1));
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, Duration{});
  EXPECT_EQ(cluster.journal.entries.size(), 1u);
}

TEST(Reaction, AccountsForThePodThatWasEndedEvenIfAnotherWouldHaveBeenChosen) {
  Watched cluster;
  cluster.report(cluster.acted_on("uid-modest", false));
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  EXPECT_EQ(cluster.journal.entries.front().eviction->uid, "uid-modest");
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.phase("modest"), "Failed");
  EXPECT_EQ(cluster.phase("hog"), "Running");
}

TEST(Reaction, TheEngineWaitsWhenTheMachineWasQuicker) {
  Watched cluster;
  cluster.machine.acting = true;
  cluster.host.set_available(mebibytes(90));
  cluster.send(PressureWake{"watch"});
  cluster.run(milliseconds(20));
  EXPECT_TRUE(cluster.journal.entries.empty()) << "its plan was not to be had";
}

TEST(Reaction, ANewPodIsInTheNextPlan) {
  Watched cluster;
  cluster.put(pod_document({.name = "another"}));
  cluster.run(milliseconds(100));
  EXPECT_EQ(cluster.machine.last->candidates.size(), 4u);
}

TEST(PreparedEntry, IsALineOfTheJournalOnceItIsFilled) {
  JournalEntry entry;
  entry.decision.by = "n1";
  entry.intent = true;
  entry.eviction = eviction::EvictPod{.uid = "uid-1", .pod = {"shop", "at-9"}, .metric_label = "memory.available"};
  PreparedEntry prepared(entry);
  for (const std::int64_t available : {std::int64_t{0}, std::int64_t{-5}, std::int64_t{104'857'599}}) {
    const WallTime at(microseconds(1'795'237'288'123'456));
    prepared.fill(at, available < 0, available);
    ASSERT_TRUE(prepared.line().ends_with("\n"));
    const Result<JournalLine> line = parse_line(prepared.line());
    ASSERT_TRUE(line) << line.error().text() << prepared.line();
    const auto* read = &std::get<JournalEntry>(*line);
    EXPECT_EQ(read->decision.at, at);
    EXPECT_EQ(read->emergency, available < 0);
    EXPECT_TRUE(read->intent);
    EXPECT_EQ(std::get<std::int64_t>(read->decision.reasons.front().facts.back().value), available);
    EXPECT_NE(prepared.line().find("\"2026-11-21T05:01:28.123456Z\""), std::string::npos) << prepared.line();
  }
}

}  // namespace
}  // namespace spillway::agent
