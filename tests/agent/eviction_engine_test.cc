// Goal: under pressure the right pod goes, one at a time, in time; and the reason is visible to users.
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;

/// A hog without request, a modest pod within its request, and a critical one above everything.
struct Pressured : ScriptedCluster {
  explicit Pressured(AgentOptions options = node_options()) : ScriptedCluster(std::move(options)) {
    put(pod_document({.name = "hog"}));
    put(pod_document({.name = "modest", .memory_request = "200Mi"}));
    put(pod_document({.name = "system", .priority = 2'000'000'000}));
    host.set_working_set("uid-hog", mebibytes(400));
    host.set_working_set("uid-modest", mebibytes(5));
    host.set_working_set("uid-system", mebibytes(420));
    start();
    run(seconds(2));
    host.set_available(mebibytes(110));
    run(seconds(20));  // long enough for the earlier fall to be forgotten
  }

  /// Memory falls by 10 MiB/s until that much is available.
  void fall_to(std::int64_t available_mib) {
    for (std::int64_t mib = 109; mib >= available_mib; --mib) {
      host.set_available(mebibytes(mib));
      run(mib > available_mib ? milliseconds(100) : milliseconds(10));
    }
  }

  /// Memory falls by 2 MiB/s, in small steps, until less than that is available: it would last for the grace.
  void fall_slowly_below(std::int64_t threshold_mib) {
    Bytes available = mebibytes(110);
    while (available >= mebibytes(threshold_mib)) {
      available = available - kibibytes(100);
      host.set_available(available);
      run(available >= mebibytes(threshold_mib) ? milliseconds(50) : milliseconds(10));
    }
  }
};

AgentOptions soft_options() {
  AgentOptions options = node_options();
  options.eviction.thresholds.hard = {};
  options.eviction.thresholds.soft = {{"memory.available", "100Mi"}};
  options.eviction.thresholds.soft_grace_period = {{"memory.available", "30s"}};
  options.eviction.max_pod_grace_period_seconds = 5;
  return options;
}

TEST(Eviction, EndsTheHogAndSaysWhy) {
  Pressured cluster;
  cluster.fall_to(99);
  cluster.run(seconds(2));
  const Json hog = cluster.pod("hog");
  EXPECT_EQ(cluster.phase("hog"), "Failed");
  EXPECT_EQ(hog.string_at({"status", "reason"}), "Evicted");
  EXPECT_EQ(hog.string_at({"status", "message"}),
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 99Mi. ");
  const Json& first = hog.at({"status", "conditions"})->if_array()->front();
  EXPECT_EQ(first.string_at({"type"}), "DisruptionTarget");
  EXPECT_EQ(first.string_at({"reason"}), "TerminationByKubelet");
  EXPECT_EQ(cluster.phase("modest"), "Running");
  EXPECT_EQ(cluster.phase("system"), "Running");
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "True");
  ASSERT_NE(cluster.host.last<RemovePod>(), nullptr) << "its cgroup and directory do not pile up";
  EXPECT_EQ(cluster.host.last<RemovePod>()->uid, "uid-hog");

  const std::vector<Json> events = cluster.events("Evicted");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events.front().string_at({"metadata", "annotations", "starved_resource"}), "memory");
  EXPECT_EQ(cluster.events("EvictionThresholdMet").size(), 1u);

  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  const JournalEntry& entry = cluster.journal.entries.front();
  EXPECT_EQ(entry.eviction->pod.text(), "shop/hog");
  ASSERT_GE(entry.decision.candidates.size(), 2u);
  EXPECT_EQ(entry.decision.candidates.front().reason.code, policy::ReasonCode::kRankedFirst);
  EXPECT_EQ(entry.decision.candidates[1].reason.code, policy::ReasonCode::kCriticalPodSpared) << "above its request";
}

TEST(Eviction, SeesACrossingWithinMilliseconds) {
  AgentOptions options = node_options();
  options.eviction.observe = {};
  Pressured cluster(options);
  cluster.host.set_available(mebibytes(104));
  cluster.run(seconds(2));
  cluster.host.set_available(mebibytes(99));
  cluster.run(milliseconds(10));
  EXPECT_EQ(cluster.journal.entries.size(), 1u);
}

TEST(Eviction, ObservesAtOnceWhenThePressureSourceWakesIt) {
  Pressured cluster;
  cluster.host.set_available(mebibytes(50));
  cluster.send(PressureWake{"psi"});
  cluster.run(milliseconds(5));
  EXPECT_EQ(cluster.journal.entries.size(), 1u);
}

/// A whole answer to the question `id`: 50 MiB are available, and `pod` has 400.
void answer(Pressured& cluster, std::uint64_t id, const std::string& pod) {
  api::Summary seen;
  api::MemoryStats& memory = seen.node.memory.emplace();
  memory.time = cluster.now().wall;
  memory.available_bytes = static_cast<std::uint64_t>(mebibytes(50).count());
  memory.working_set_bytes = static_cast<std::uint64_t>((ScriptedHost::kCapacity - mebibytes(50)).count());
  api::PodStats& stats = seen.pods.emplace_back();
  stats.uid = pod;
  stats.memory.emplace().working_set_bytes = static_cast<std::uint64_t>(mebibytes(400).count());
  cluster.send(Observed{id, std::move(seen)});
  cluster.run(milliseconds(5));
}

/// The machine answers an observation that was given up: its old figures must evict no pod now.
TEST(Eviction, TakesNoAnswerThatItNoLongerWaitsFor) {
  Pressured cluster;
  ASSERT_NE(cluster.host.last<Observe>(), nullptr);
  const std::uint64_t last = cluster.host.last<Observe>()->id;
  cluster.host.set_silent(true);
  cluster.run(seconds(15));  // the next is given up after ten, and the one after it is waited for
  answer(cluster, last + 1, "uid-hog");
  EXPECT_TRUE(cluster.journal.entries.empty());
  EXPECT_TRUE(cluster.agent().state(cluster.now()).at({"eviction", "observing"})->if_bool().value_or(false));
  answer(cluster, last + 2, "uid-hog");
  EXPECT_EQ(cluster.journal.entries.size(), 1u);
}

/// An observation that was begun while the victim lived arrives when it is gone: it does not show the freed memory.
TEST(Eviction, TakesNoSecondVictimForWhatWasSeenWhileTheFirstLived) {
  Pressured cluster;
  cluster.host.set_immortal("uid-hog");
  cluster.fall_to(99);
  cluster.run(milliseconds(100));
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  const std::uint64_t last = cluster.host.last<Observe>()->id;
  cluster.host.set_silent(true);
  cluster.run(seconds(1));
  cluster.send(PodStopped{"uid-hog"});
  cluster.run(milliseconds(5));
  answer(cluster, last + 1, "uid-modest");
  EXPECT_EQ(cluster.journal.entries.size(), 1u);
  answer(cluster, last + 2, "uid-modest");
  ASSERT_EQ(cluster.journal.entries.size(), 2u) << "pressure goes on without the first";
  EXPECT_EQ(cluster.journal.entries.back().eviction->uid, "uid-modest");
}

TEST(Eviction, AWakeAloneKillsNoPod) {
  Pressured cluster;
  for (int i = 0; i < 100; ++i) {
    cluster.send(PressureWake{"psi"});
    cluster.run(milliseconds(3));
  }
  EXPECT_TRUE(cluster.journal.entries.empty());
}

TEST(Eviction, WorksFromLightObservationsToo) {
  ScriptedCluster cluster;
  cluster.host.set_light(true);
  cluster.put(pod_document({.name = "hog"}));
  cluster.host.set_working_set("uid-hog", mebibytes(400));
  cluster.start();
  cluster.run(seconds(2));
  cluster.host.set_available(mebibytes(90));
  cluster.run(seconds(1));
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  EXPECT_EQ(cluster.journal.entries.front().decision.candidates.front().reason.facts.back().name,
            "above_request_bytes");
}

TEST(Eviction, WaitsForOneVictimBeforeTheNext) {
  Pressured cluster;
  cluster.host.set_stubborn(true);
  cluster.host.set_working_set("uid-hog", mebibytes(0));
  cluster.fall_slowly_below(100);
  cluster.run(milliseconds(1900));
  EXPECT_EQ(cluster.journal.entries.size(), 1u) << "the first has two seconds";
  cluster.run(milliseconds(200));
  EXPECT_EQ(cluster.journal.entries.size(), 2u) << "still under pressure: the next goes at once";
  EXPECT_EQ(cluster.journal.entries.back().eviction->pod.name, "modest");
  cluster.run(seconds(60));
  EXPECT_EQ(cluster.journal.entries.size(), 2u) << "the critical one stays";
  EXPECT_EQ(cluster.phase("system"), "Running");
}

TEST(Eviction, TakesTheGraceWhenMemoryWouldNotLastThatLong) {
  Pressured cluster;
  cluster.host.set_stubborn(true);
  for (std::int64_t available = 300; available > 60; available -= 20) {  // 200 MiB/s
    cluster.host.set_available(mebibytes(available));
    cluster.run(milliseconds(100));
  }
  ASSERT_FALSE(cluster.journal.entries.empty());
  EXPECT_TRUE(cluster.journal.entries.front().emergency);
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, Duration{});
}

TEST(Eviction, HasPatienceWhileMemoryFallsSlowly) {
  Pressured cluster;
  cluster.fall_slowly_below(100);
  ASSERT_FALSE(cluster.journal.entries.empty());
  EXPECT_FALSE(cluster.journal.entries.front().emergency);
}

TEST(Eviction, GivesSoftThresholdsTheirGrace) {
  Pressured cluster(soft_options());
  cluster.fall_to(99);
  cluster.run(seconds(29));
  EXPECT_TRUE(cluster.journal.entries.empty());
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "True");
  cluster.run(seconds(2));
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  EXPECT_EQ(cluster.journal.entries.front().eviction->grace_period_seconds, 5);
}

TEST(Eviction, GoesByTheEstimatorItWasGiven) {
  AgentOptions options = node_options();
  options.eviction.memory_watch.estimator = eviction::MemoryEstimator::kAvailable;
  Pressured cluster(options);
  cluster.host.set_mem_available(mebibytes(400));
  cluster.host.set_available(mebibytes(50));
  cluster.run(seconds(20));
  EXPECT_TRUE(cluster.journal.entries.empty()) << "the kernel has enough";
  cluster.host.set_mem_available(mebibytes(99));
  cluster.run(seconds(2));
  ASSERT_FALSE(cluster.journal.entries.empty());
  EXPECT_EQ(cluster.journal.entries.front().eviction->message,
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 99Mi. ");
}

TEST(Eviction, TheGuardActsOnMemAvailableAlone) {
  AgentOptions options = node_options();
  options.eviction.memory_watch.mem_available_floor = mebibytes(40);
  Pressured cluster(options);
  cluster.host.set_mem_available(mebibytes(41));
  cluster.host.set_available(mebibytes(300));
  cluster.run(seconds(20));
  EXPECT_TRUE(cluster.journal.entries.empty());
  cluster.host.set_mem_available(mebibytes(39));
  cluster.run(seconds(2));
  ASSERT_FALSE(cluster.journal.entries.empty());
  EXPECT_EQ(cluster.journal.entries.front().eviction->metric_label, "memory.memAvailable");
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "True");
}

TEST(Eviction, ForgetsTheGraceWhenPressureEnds) {
  Pressured cluster(soft_options());
  cluster.host.set_available(mebibytes(90));
  cluster.run(seconds(25));
  cluster.host.set_available(mebibytes(600));
  cluster.run(seconds(10));
  cluster.host.set_available(mebibytes(90));
  cluster.run(seconds(25));
  EXPECT_TRUE(cluster.journal.entries.empty());
}

TEST(Eviction, ReportsThePressureUntilTheTransitionPeriodIsOver) {
  Pressured cluster;
  cluster.host.set_available(mebibytes(90));
  cluster.run(seconds(1));
  cluster.run(minutes(4));
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "True");
  cluster.run(seconds(80));
  EXPECT_EQ(cluster.node_condition("MemoryPressure"), "False");
}

TEST(Eviction, TurnsBestEffortPodsAwayUnderPressure) {
  Pressured cluster;
  cluster.host.set_available(mebibytes(90));
  cluster.run(seconds(1));
  cluster.run(seconds(5));
  cluster.put(pod_document({.name = "late"}));
  cluster.put(pod_document({.name = "late-with-request", .memory_request = "10Mi"}));
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.phase("late"), "Failed");
  EXPECT_EQ(cluster.pod("late").string_at({"status", "reason"}), "Evicted");
  EXPECT_EQ(cluster.pod("late").string_at({"status", "message"}),
            "Pod was rejected: The node had condition: [MemoryPressure]. ");
  EXPECT_EQ(cluster.phase("late-with-request"), "Running");
  const std::vector<std::string> lines = cluster.logged("failed to admit pod to node");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines.front().ends_with(" pod=shop/late node_condition=[MemoryPressure]")) << lines.front();
}

TEST(Eviction, NeedsNoApiServer) {
  Pressured cluster;
  cluster.api.set_fault([](const api::Request&) -> std::optional<Result<api::Response>> {
    return make_error(ErrorCode::kServiceUnavailable, "no answer");
  });
  cluster.fall_to(99);
  cluster.run(milliseconds(1100));
  EXPECT_FALSE(cluster.host.is_running("uid-hog", "c"));
  cluster.api.set_fault({});
  cluster.run(seconds(30));
  EXPECT_EQ(cluster.phase("hog"), "Failed");
  EXPECT_EQ(cluster.journal.entries.size(), 1u);
}

TEST(Eviction, IsFinishedNotRepeatedAfterACrash) {
  Pressured cluster;
  cluster.api.set_fault([](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (request.method != api::Method::kPatch) return {};
    return make_error(ErrorCode::kServiceUnavailable, "no answer");
  });
  cluster.host.set_available(mebibytes(90));
  cluster.run(seconds(1));
  ASSERT_GE(cluster.journal.entries.size(), 1u);
  const std::size_t decided = cluster.journal.entries.size();
  EXPECT_EQ(cluster.phase("hog"), "Running") << "nobody could be told";
  cluster.api.set_fault({});
  cluster.host = ScriptedHost();
  cluster.restart();
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.phase("hog"), "Failed");
  EXPECT_EQ(cluster.pod("hog").string_at({"status", "reason"}), "Evicted");
  EXPECT_EQ(cluster.journal.entries.size(), decided);
}

TEST(Eviction, AnUnreadableMachineEvictsNoPodAndRecovers) {
  Pressured cluster;
  cluster.host.set_unreadable(true);
  cluster.host.set_available(mebibytes(50));
  cluster.run(seconds(20));
  EXPECT_TRUE(cluster.journal.entries.empty());
  cluster.host.set_unreadable(false);
  cluster.run(seconds(2));
  EXPECT_FALSE(cluster.journal.entries.empty());
}

TEST(Eviction, AnIdleNodeIsSeldomObserved) {
  AgentOptions options = node_options();
  options.eviction.observe.fall_floor_per_second = mebibytes(100);
  Pressured cluster(options);
  cluster.host.set_available(mebibytes(900));
  cluster.run(seconds(1));
  cluster.host.take_commands();
  cluster.run(minutes(1));
  EXPECT_LE(cluster.host.count<Observe>(), 70u);
  EXPECT_GE(cluster.host.count<Observe>(), 50u);
}

AgentOptions disk_options() {
  AgentOptions options = node_options();
  options.eviction.thresholds.hard = {{"memory.available", "100Mi"}, {"nodefs.available", "10%"}};
  options.eviction.thresholds.enforce_pods = eviction::EnforcePods::kNo;
  return options;
}

bool has_reason(const policy::Decision& decision, policy::ReasonCode code) {
  return std::ranges::any_of(decision.reasons, [&](const auto& reason) { return reason.code == code; });
}

TEST(EvictionReclaim, FreesWhatTheNodeCanBeforeAnyPodGoes) {
  Pressured cluster(disk_options());
  cluster.host.set_reclaimable(gibibytes(20));
  cluster.host.set_disk_available(gibibytes(5));
  cluster.run(seconds(12));
  ASSERT_EQ(cluster.host.count<ReclaimNode>(), 1u);
  EXPECT_EQ(cluster.host.last<ReclaimNode>()->actions.size(), 2u);
  EXPECT_EQ(cluster.phase("hog"), "Running") << "20 GiB came back";
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  const policy::Decision& decision = cluster.journal.entries.front().decision;
  EXPECT_EQ(decision.action, "reclaim");
  EXPECT_TRUE(has_reason(decision, policy::ReasonCode::kReclaimSufficed));
  EXPECT_FALSE(cluster.journal.entries.front().eviction);
}

TEST(EvictionReclaim, SaysOnceThatThereIsNothingToFree) {
  Pressured cluster(disk_options());
  cluster.host.set_disk_available(gibibytes(5));
  const auto said = [&] {
    return std::ranges::count_if(cluster.log, [](const std::string& line) { return line.contains("node reclaimed"); });
  };
  cluster.run(seconds(90));
  EXPECT_GT(cluster.host.count<ReclaimNode>(), 3U);
  EXPECT_EQ(said(), 2) << "containers and images, once each";
  cluster.host.set_disk_available(gibibytes(60));
  cluster.run(hours(1));
  ASSERT_EQ(cluster.node_condition("DiskPressure"), "False");
  cluster.host.set_disk_available(gibibytes(5));
  cluster.run(seconds(30));
  EXPECT_EQ(said(), 4) << "another time of pressure";
}

TEST(EvictionReclaim, EvictsUsersOfTheDiskIfReclaimingIsNotEnough) {
  Pressured cluster(disk_options());
  cluster.host.set_disk_used("uid-modest", gibibytes(40));
  cluster.host.set_reclaimable(gibibytes(1));
  cluster.host.set_disk_available(gibibytes(5));
  cluster.run(seconds(12));
  ASSERT_FALSE(cluster.journal.entries.empty());
  const JournalEntry& entry = cluster.journal.entries.front();
  EXPECT_EQ(entry.eviction->uid, "uid-modest");
  EXPECT_EQ(entry.eviction->metric_label, "nodefs.available");
  EXPECT_TRUE(has_reason(entry.decision, policy::ReasonCode::kReclaimed));
  EXPECT_TRUE(has_reason(entry.decision, policy::ReasonCode::kReclaimFellShort));
  EXPECT_EQ(cluster.phase("hog"), "Running");
  EXPECT_EQ(cluster.events("EvictionThresholdMet").size(), 1u);
  EXPECT_EQ(cluster.node_condition("DiskPressure"), "True");
}

TEST(EvictionReclaim, ANodeThatNeverAnswersIsNotWaitedForForEver) {
  Pressured cluster(disk_options());
  cluster.host.set_silent_reclaim(true);
  cluster.host.set_disk_available(gibibytes(5));
  cluster.run(seconds(15));
  EXPECT_TRUE(cluster.journal.entries.empty());
  cluster.run(seconds(20));
  EXPECT_FALSE(cluster.journal.entries.empty());
}

TEST(EvictionReclaim, MemoryDoesNotWaitForADisk) {
  Pressured cluster(disk_options());
  cluster.host.set_silent_reclaim(true);
  cluster.host.set_disk_available(gibibytes(5));
  cluster.run(seconds(12));
  ASSERT_EQ(cluster.host.count<ReclaimNode>(), 1u);
  cluster.host.set_available(mebibytes(90));
  cluster.run(seconds(2));
  ASSERT_GE(cluster.journal.entries.size(), 2u);
  EXPECT_TRUE(has_reason(cluster.journal.entries[0].decision, policy::ReasonCode::kReclaimSuperseded));
  EXPECT_EQ(cluster.journal.entries[1].eviction->metric_label, "memory.available");
}

TEST(EvictionLayout, DisksWaitUntilItIsKnownAndMemoryDoesNot) {
  ScriptedCluster cluster(disk_options());
  cluster.host.set_layout(std::nullopt);
  cluster.put(pod_document({.name = "hog"}));
  cluster.host.set_working_set("uid-hog", mebibytes(400));
  cluster.host.set_disk_available(gibibytes(5));
  cluster.start();
  cluster.run(seconds(30));
  EXPECT_EQ(cluster.host.count<ReclaimNode>(), 0u);
  cluster.host.set_available(mebibytes(90));
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.journal.entries.size(), 1u);
  cluster.host.set_layout(eviction::StorageLayout{});
  cluster.run(seconds(15));
  EXPECT_GE(cluster.host.count<ReclaimNode>(), 1u);
}

AgentOptions soft_and_hard_options() {
  AgentOptions options = node_options();
  options.eviction.thresholds.hard = {{"memory.available", "50Mi"}};
  options.eviction.thresholds.soft = {{"memory.available", "100Mi"}};
  options.eviction.thresholds.soft_grace_period = {{"memory.available", "5s"}};
  options.eviction.max_pod_grace_period_seconds = 600;
  return options;
}

TEST(EvictionPreemption, AHardThresholdDoesNotWaitForASoftEviction) {
  Pressured cluster(soft_and_hard_options());
  cluster.put(pod_document({.name = "slow", .grace_seconds = 600}));
  cluster.host.set_working_set("uid-slow", mebibytes(500));
  cluster.run(seconds(1));
  cluster.host.set_stubborn(true);
  cluster.fall_to(99);
  cluster.run(seconds(10));
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  EXPECT_EQ(cluster.journal.entries.front().eviction->grace_period_seconds, 600);
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, seconds(600));
  for (std::int64_t kib = 99 * 1024; kib >= 50 * 1024 - 100; kib -= 100) {
    cluster.host.set_available(Bytes{kib * 1024});
    cluster.run(milliseconds(50));
  }
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, seconds(2)) << "no container has less";
  EXPECT_EQ(cluster.journal.aftermaths.size(), 1u);
  EXPECT_EQ(cluster.journal.entries.size(), 1u) << "the pod that leaves anyway leaves first";
}

/// A pod that fills a disk frees it only once it has ended, however long its runtime takes.
TEST(EvictionPreemption, OfADiskOneAfterTheOtherIsEvicted) {
  Pressured cluster(disk_options());
  cluster.host.set_disk_used("uid-modest", gibibytes(40));
  cluster.host.set_disk_used("uid-hog", gibibytes(20));
  cluster.host.set_immortal("uid-modest");
  cluster.run(seconds(1));
  cluster.host.set_disk_available(gibibytes(5));
  cluster.run(seconds(25));
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  EXPECT_EQ(cluster.journal.entries.front().eviction->uid, "uid-modest");
  cluster.run(seconds(60));
  EXPECT_EQ(cluster.journal.entries.size(), 2u) << "it is not waited for for ever";
}

TEST(EvictionPreemption, APodThatDoesNotDieDelaysNoUrgentPod) {
  Pressured cluster;
  cluster.host.set_immortal("uid-hog");
  cluster.fall_to(99);
  cluster.run(seconds(4));
  EXPECT_EQ(cluster.journal.entries.size(), 1u);
  cluster.run(seconds(2));
  ASSERT_EQ(cluster.journal.entries.size(), 2u) << "its grace was over three seconds ago, and nothing was gained";
  EXPECT_EQ(cluster.journal.entries.back().eviction->uid, "uid-modest");
  EXPECT_TRUE(has_reason(cluster.journal.entries.back().decision, policy::ReasonCode::kVictimOverdue));
  cluster.run(seconds(10));
  EXPECT_EQ(cluster.events("ExceededGracePeriod").size(), 1u);
  cluster.run(minutes(2));
  EXPECT_EQ(cluster.journal.entries.size(), 2u) << "it is not chosen again";
}

TEST(EvictionStorage, ALimitOfAPodIsEnforcedWithoutAnyThreshold) {
  ScriptedCluster cluster;
  Json pod = pod_document({.name = "writer"});
  pod["spec"]["containers"].if_array()->front()["resources"]["limits"]["ephemeral-storage"] = "1Gi";
  cluster.put(std::move(pod));
  cluster.host.set_working_set("uid-writer", mebibytes(10));
  cluster.start();
  cluster.run(seconds(12));
  EXPECT_TRUE(cluster.journal.entries.empty());
  cluster.host.set_disk_used("uid-writer", gibibytes(2));
  cluster.run(seconds(12));
  ASSERT_EQ(cluster.journal.entries.size(), 1u);
  EXPECT_EQ(cluster.pod("writer").string_at({"status", "message"}),
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ");
  EXPECT_EQ(cluster.journal.entries.front().eviction->metric_label, "ephemeralpodfs.limit");
}

TEST(EvictionDecisions, SayWhoWouldBeNextAndWhatBecameOfTheLast) {
  Pressured cluster;
  const Json before = cluster.agent().decisions(cluster.now());
  EXPECT_EQ(before.string_at({"now", "verdict"}), "rests");
  EXPECT_EQ(before.at({"now", "candidates"})->if_array()->size(), 3u);
  EXPECT_TRUE(before.find("items")->if_array()->empty());
  cluster.fall_to(99);
  cluster.run(seconds(2));
  const Json after = cluster.agent().decisions(cluster.now());
  ASSERT_EQ(after.find("items")->if_array()->size(), 1u);
  const Json& decision = after.find("items")->if_array()->front();
  EXPECT_EQ(decision.string_at({"subject", "name"}), "hog");
  EXPECT_EQ(decision.find("cost")->if_array()->back().string_at({"name"}), "gone_after_seconds");
  cluster.restart();
  cluster.run(seconds(1));
  const Json again = cluster.agent().decisions(cluster.now());
  EXPECT_EQ(again.find("items")->if_array()->size(), 1u) << "a restart forgets nothing";
}

}  // namespace
}  // namespace spillway::agent
