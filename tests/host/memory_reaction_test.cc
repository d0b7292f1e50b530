// Goal: between two observations of the engine the machine ends the pod the plan names, once, reports it before
// anything else, and leaves a line in the journal. Method: a real slice of 128Mi, a hog, plans made by hand.
#include "host/reaction/memory_reaction.h"

#include "host/real_machine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace spillway::host {
namespace {

class MemoryReactionTest : public RealMachine {
 protected:
  void SetUp() override {
    RealMachine::SetUp();
    if (!slice_) return;
    make_journal();
    Result<std::unique_ptr<JournalFile>> journal = JournalFile::open(journal_path(), {});
    ASSERT_TRUE(journal) << journal.error().text();
    journal_ = *std::move(journal);
    auto made =
        MemoryReaction::create(loop_, *slice_,
                               {.receiver = *this,
                                .find_target = [this](const std::string& uid) { return runtime_->find_target(uid); },
                                .journal = journal_.get()},
                               telemetry::Log());
    ASSERT_TRUE(made) << made.error().text();
    reaction_ = *std::move(made);
    runtime_->listen([this] { reaction_->report(); }, [this] { reaction_->refresh_targets(); });
  }

  void TearDown() override {
    if (runtime_) runtime_->listen({}, {});
    reaction_.reset();
    RealMachine::TearDown();
  }

  std::string journal_path() const { return (state_ / "journal.jsonl").string(); }

  /// Called before the journal is opened, which creates its file.
  virtual void make_journal() {}

  static agent::ReactionPlan::Candidate candidate(const std::string& uid, bool spared = false) {
    agent::JournalEntry entry;
    entry.decision.by = "n1";
    entry.intent = true;
    entry.eviction = eviction::EvictPod{.uid = uid,
                                        .pod = {"default", "pod-" + uid},
                                        .message = {},
                                        .annotations = {},
                                        .metric_label = "memory.available"};
    agent::ReactionPlan::Candidate made;
    made.uid = uid;
    made.key.spared = spared;
    made.entry = agent::PreparedEntry(entry);
    return made;
  }

  static agent::ReactionPlan plan_for(Bytes below, std::vector<agent::ReactionPlan::Candidate> candidates) {
    agent::ReactionPlan plan;
    plan.act = {{eviction::Signal::kMemoryAvailable, below}};
    plan.candidates = std::move(candidates);
    return plan;
  }

  void start_hog(const std::string& uid, int megabytes) {
    create_pod(uid);
    start_shell(uid, fmt::format("dd if=/dev/zero bs={}000000 count=1 2>/dev/null | sleep 1000", megabytes));
  }

  const agent::Reacted* reacted() const {
    for (const agent::HostEvent& event : events_)
      if (const auto* found = std::get_if<agent::Reacted>(&event)) return found;
    return nullptr;
  }

  std::unique_ptr<JournalFile> journal_;
  std::unique_ptr<MemoryReaction> reaction_;
};

TEST_F(MemoryReactionTest, EndsTheHogAndReportsBeforeItsExit) {
  create_pod("small");
  start_shell("small", "exec sleep 1000");
  start_hog("hog", 60);
  reaction_->publish(plan_for(mebibytes(90), {candidate("hog"), candidate("small")}));
  ASSERT_TRUE(run_until([&] { return reacted() != nullptr; }));
  EXPECT_EQ(reacted()->uid, "hog");
  EXPECT_LT(reacted()->node->available, mebibytes(90));
  ASSERT_EQ(reacted()->working_sets.size(), 2u);
  EXPECT_GT(reacted()->working_sets.front().second, mebibytes(20));
  ASSERT_EQ(reacted()->containers.size(), 1u);
  EXPECT_EQ(reacted()->containers.front().second, reacted()->working_sets.front().second);

  const auto entries = journal_->read();
  ASSERT_TRUE(entries) << entries.error().text();
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_TRUE(entries->front().intent);
  EXPECT_EQ(entries->front().eviction->uid, "hog");

  EXPECT_FALSE(reaction_->claim()) << "until the engine has published what follows";
  runtime_->execute(agent::StopPod{"hog", Duration{}});
  ASSERT_TRUE(wait_for<agent::ContainerExited>("hog"));
  const auto order = std::ranges::find_if(events_, [](const auto& event) {
    return std::holds_alternative<agent::Reacted>(event) || std::holds_alternative<agent::ContainerExited>(event);
  });
  EXPECT_TRUE(std::holds_alternative<agent::Reacted>(*order));
  EXPECT_TRUE(run_until([&] { return !pod_pids("small").empty(); }));
}

TEST_F(MemoryReactionTest, ReportsWhatEachContainerOfTheVictimUsed) {
  create_pod("hog");
  start("hog", "idle", {"/bin/sh", "-c", "exec sleep 1000"});
  start_shell("hog", "dd if=/dev/zero bs=60000000 count=1 2>/dev/null | sleep 1000");
  reaction_->publish(plan_for(mebibytes(90), {candidate("hog")}));
  ASSERT_TRUE(run_until([&] { return reacted() != nullptr; }));
  std::map<std::string, Bytes> used(reacted()->containers.begin(), reacted()->containers.end());
  ASSERT_EQ(used.size(), 2u);
  EXPECT_GT(used.at("c"), mebibytes(20));
  EXPECT_LT(used.at("idle"), mebibytes(10));
}

TEST_F(MemoryReactionTest, EveryEstimatorAndTheGuardEndTheHog) {
  for (const auto& [signal, by] :
       {std::pair(eviction::Signal::kMemAvailable, eviction::MemoryEstimator::kWorkingSet),
        std::pair(eviction::Signal::kMemoryAvailable, eviction::MemoryEstimator::kAvailable),
        std::pair(eviction::Signal::kMemoryAvailable, eviction::MemoryEstimator::kWorkingSetAndSwap)}) {
    const std::string uid = fmt::format("hog-{}-{}", static_cast<int>(signal), static_cast<int>(by));
    events_.clear();
    start_hog(uid, 60);
    agent::ReactionPlan plan = plan_for(mebibytes(90), {candidate(uid)});
    plan.act.front().signal = signal;
    plan.memory_estimator = by;
    reaction_->publish(std::move(plan));
    ASSERT_TRUE(run_until([&] { return reacted() != nullptr; })) << uid;
    EXPECT_TRUE(reacted()->node->mem_available) << "a decision has all estimates";
    EXPECT_FALSE(reaction_->claim());
    runtime_->execute(agent::StopPod{uid, Duration{}});
    ASSERT_TRUE(wait_for<agent::PodStopped>(uid));
  }
}

TEST_F(MemoryReactionTest, WhatTheEngineHasClaimedIsNotCarriedOut) {
  start_hog("hog", 60);
  reaction_->publish(plan_for(mebibytes(1), {candidate("hog")}));
  ASSERT_TRUE(reaction_->claim());
  reaction_->publish(plan_for(mebibytes(90), {candidate("hog")}));
  const bool claimed = reaction_->claim();  // before or after the thread has seen it: one of the two acts
  if (!claimed) {
    EXPECT_TRUE(run_until([&] { return reacted() != nullptr; }));
  } else {
    EXPECT_FALSE(run_until([&] { return reacted() != nullptr; }, milliseconds(300))) << "two acted";
  }
}

TEST_F(MemoryReactionTest, WatchesAllPodsTogetherWhereTheyHaveLessThanTheNode) {
  runtime_->execute(agent::LimitGroup{.cgroup = {}, .limits = {.memory = mebibytes(100)}});
  start_hog("hog", 60);
  agent::ReactionPlan plan = plan_for(mebibytes(50), {candidate("hog")});  // the node has more left
  plan.act.push_back({eviction::Signal::kAllocatableMemoryAvailable, mebibytes(50)});
  reaction_->publish(std::move(plan));
  ASSERT_TRUE(run_until([&] { return reacted() != nullptr; }));
  EXPECT_LT(reacted()->pods->available, mebibytes(50));
  EXPECT_GT(reacted()->node->available, mebibytes(50));
}

TEST_F(MemoryReactionTest, SparesTheCriticalAndWakesTheEngine) {
  start_hog("hog", 60);
  reaction_->publish(plan_for(mebibytes(120), {candidate("hog", true)}));
  ASSERT_TRUE(run_until([&] { return count<agent::PressureWake>() > 0; }));
  EXPECT_EQ(reacted(), nullptr);
  EXPECT_TRUE(run_until([&] { return !pod_pids("hog").empty(); }));
}

TEST_F(MemoryReactionTest, ReservesAPodItCannotMeasureForThePass) {
  start_hog("hog", 60);
  reaction_->publish(plan_for(mebibytes(120), {candidate("hog"), candidate("without-cgroup")}));
  ASSERT_TRUE(run_until([&] { return count<agent::PressureWake>() > 0; }));
  EXPECT_EQ(reacted(), nullptr);
}

TEST_F(MemoryReactionTest, AFailingNodeIsAnEmergency) {
  start_hog("hog", 100);  // far below the blind zone, whatever the rate
  agent::ReactionPlan plan = plan_for(mebibytes(110), {candidate("hog")});
  plan.blind_zone = mebibytes(200);
  reaction_->publish(std::move(plan));
  ASSERT_TRUE(run_until([&] { return reacted() != nullptr; }));
  EXPECT_TRUE(reacted()->emergency);
  ASSERT_TRUE(wait_for<agent::ContainerExited>("hog"));
}

TEST_F(MemoryReactionTest, AThresholdThatOnlyWakesDoesNotAct) {
  agent::ReactionPlan plan = plan_for(mebibytes(1), {});
  plan.wake = {{eviction::Signal::kMemoryAvailable, mebibytes(90)}};
  reaction_->publish(std::move(plan));
  start_hog("hog", 60);
  EXPECT_TRUE(run_until([&] { return count<agent::PressureWake>() > 0; }));
  EXPECT_EQ(reacted(), nullptr);
}

TEST_F(MemoryReactionTest, AContainerThatStartsLaterIsReached) {
  create_pod("hog");
  reaction_->publish(plan_for(mebibytes(90), {candidate("hog")}));
  start_shell("hog",
              "while [ ! -e go ]; do sleep 0.01; done; dd if=/dev/zero bs=60000000 count=1 2>/dev/null | sleep 1000");
  ASSERT_TRUE(wait_for<agent::ContainerStarted>("hog"));
  bool turned = false;  // by then the loop has refreshed the plan's targets
  loop_.post([&] { turned = true; });
  ASSERT_TRUE(run_until([&] { return turned; }));
  std::ofstream(state_ / "pods/default_pod-hog_hog/_work/go") << "on";
  ASSERT_TRUE(run_until([&] { return reacted() != nullptr; }));
  EXPECT_TRUE(wait_for<agent::ContainerExited>("hog")) << "it got the signal";
}

/// The journal is a pipe without room: a write waits until it is read.
class FullJournal : public MemoryReactionTest {
 protected:
  void make_journal() override {
    ASSERT_EQ(::mkfifo(journal_path().c_str(), 0600), 0);
    pipe_ = UniqueFd(::open(journal_path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(pipe_);
    const std::string block(4096, '.');
    while (::write(pipe_.get(), block.data(), block.size()) > 0) {
    }
  }

  void TearDown() override {
    drain();
    MemoryReactionTest::TearDown();
  }

  void drain() const {
    std::string block(4096, ' ');
    while (::read(pipe_.get(), block.data(), block.size()) > 0) {
    }
  }

  UniqueFd pipe_;
};

/// The machine may fail between any two lines.
TEST_F(FullJournal, NoPodIsEndedBeforeTheLineIsWritten) {
  create_pod("hog");
  start_shell("hog", "trap 'exit 0' TERM; dd if=/dev/zero bs=60000000 count=1 2>/dev/null | sleep 1000 & wait");
  ASSERT_TRUE(run_until(
      [&] { return *observe().node.memory->available_bytes < static_cast<std::uint64_t>(mebibytes(85).count()); }));
  reaction_->publish(plan_for(mebibytes(90), {candidate("hog")}));
  EXPECT_FALSE(run_until([&] { return count<agent::ContainerExited>() > 0; }, milliseconds(500)));
  EXPECT_EQ(reacted(), nullptr);
  drain();
  EXPECT_TRUE(wait_for<agent::ContainerExited>("hog"));
}

TEST(MemoryGauge, ReadsMemAvailableBeside) {
  const auto reading = estimate_from_meminfo(
      "MemTotal: 1000 kB\nMemAvailable: 400 kB\nBuffers: 1 kB\nCached: 100 kB\nSwapCached: 0 kB\nInactive(file): 50 "
      "kB\n"
      "AnonPages: 300 kB\n");
  ASSERT_TRUE(reading) << reading.error().text();
  EXPECT_EQ(reading->available, kibibytes(1000 - 351));
  EXPECT_EQ(reading->mem_available, kibibytes(400));
}

}  // namespace
}  // namespace spillway::host
