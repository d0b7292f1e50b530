// A companion between a scripted API server, a scripted machine and a kubelet that is the test, on virtual time.
#include "agent/companion/companion.h"

#include "agent/scripted_api.h"
#include "agent/scripted_cluster.h"
#include "agent/scripted_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace spillway::agent {
namespace {

using api::Json;

class BesideAKubelet : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(recording_.replay_problem(), ""); }

  void start(Consequence consequence = Consequence::kActs, std::vector<JournalEntry> history = {}) {
    CompanionOptions options;
    options.node_name = "n1";
    options.eviction = node_options().eviction;
    options.eviction.local_storage_limits = eviction::LocalStorageLimits::kIgnored;
    options.eviction.thresholds.hard.insert(disk_thresholds_.begin(), disk_thresholds_.end());
    options.eviction.memory_watch = memory_watch_;
    options.consequence = consequence;
    companion_ =
        Companion::create(options, machine_info(), Rng(7),
                          {.log = {}, .metrics = &metrics_, .journal = &journal_, .recording = &recording_}, history)
            .value();
    companion_->start(now_);
    after_step();
    run(seconds(1));
  }

  void put_pod(const std::string& name, std::int32_t priority = 0) {
    Json pod = pod_document({.name = name, .memory_request = "100Mi", .priority = priority});
    pod.make({"status", "phase"}) = "Running";
    deliver(api_.put(std::move(pod)));
    // The machine starts the kubelet's pod as any other pod.
    CreatePod create;
    create.uid = "uid-" + name;
    create.pod = {"shop", name};
    host_.execute(create, now_);
    StartContainer container;
    container.uid = create.uid;
    container.name = "c";
    host_.execute(container, now_);
    host_.take_commands();
  }

  void deliver(std::vector<client::ApiEvent> events) {
    for (client::ApiEvent& event : events) {
      later(milliseconds(1), [this, event = std::move(event)] { companion_->on_api_event(event, now_); });
    }
  }

  void later(Duration delay, std::function<void()> what) { queue_.emplace(now_.mono + delay, std::move(what)); }

  void after_step() {
    if (auto places = companion_->take_places()) places_ = *places;
    for (client::ApiCommand& command : companion_->take_api_commands()) deliver(api_.handle(command));
    for (HostCommand& command : companion_->take_host_commands()) {
      for (auto& [delay, event] : host_.execute(command, now_)) {
        later(delay, [this, happened = std::move(event)] { companion_->on_host_event(happened, now_); });
      }
    }
  }

  void run(Duration duration) {
    const Instant end = now_.mono + duration;
    for (int steps = 0; steps < 1'000'000; ++steps) {
      Instant next = end;
      if (!queue_.empty()) next = std::min(next, queue_.begin()->first);
      const auto wakeup = companion_->next_wakeup();
      if (wakeup) next = std::min(next, std::max(*wakeup, now_.mono));
      now_.wall += std::chrono::duration_cast<microseconds>(next - now_.mono);
      now_.mono = next;
      if (!queue_.empty() && queue_.begin()->first <= next) {
        auto node = queue_.extract(queue_.begin());
        node.mapped()();
      } else if (wakeup && *wakeup <= next) {
        companion_->on_wakeup(now_);
      } else {
        return;
      }
      after_step();
    }
    FAIL() << "it never rests";
  }

  std::string status(const std::string& name, std::string_view field) {
    const Json* pod = api_.find("/api/v1/namespaces/shop/pods/" + name);
    return pod == nullptr ? "gone" : std::string(pod->string_at({"status", field}));
  }

  std::size_t writes() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(api_.log(), [](const std::string& line) { return !line.starts_with("GET"); }));
  }

  void pressure() {
    host_.set_working_set("uid-hog", mebibytes(400));
    host_.set_working_set("uid-calm", mebibytes(20));
    host_.set_available(mebibytes(90));
  }

  eviction::SignalMap disk_thresholds_;
  eviction::MemoryWatch memory_watch_;
  Now now_{Instant(hours(1)), WallTime(seconds(1'700'000'000))};
  ScriptedApi api_;
  ScriptedHost host_;
  MemoryJournal journal_;
  MemoryRecording recording_;
  telemetry::Registry metrics_;
  std::vector<PodPlace> places_;
  std::multimap<Instant, std::function<void()>> queue_;
  std::unique_ptr<Companion> companion_;
};

TEST_F(BesideAKubelet, EvictsTheSamePodAKubeletWould) {
  put_pod("calm");
  put_pod("hog");
  start();
  EXPECT_EQ(places_.size(), 2U);
  pressure();
  run(seconds(5));
  EXPECT_EQ(status("hog", "phase"), "Failed");
  EXPECT_EQ(status("hog", "reason"), "Evicted");
  EXPECT_TRUE(status("hog", "message").starts_with("The node was low on resource: memory. "))
      << status("hog", "message");
  EXPECT_EQ(status("calm", "phase"), "Running");
  const auto* stop = host_.last<StopPod>();
  ASSERT_NE(stop, nullptr);
  EXPECT_EQ(stop->uid, "uid-hog");
  EXPECT_FALSE(stop->storage_freed) << "memory is back with the last process";
  ASSERT_EQ(journal_.entries.size(), 1U);
  EXPECT_TRUE(journal_.entries[0].eviction);
  for (const std::string& line : api_.log()) {
    EXPECT_FALSE(line.contains("/nodes") || line.contains("/leases")) << line;
  }
}

TEST_F(BesideAKubelet, APodThatFillsADiskIsGoneWhenWhatItWroteIsDeleted) {
  put_pod("calm");
  put_pod("hog");
  disk_thresholds_ = {{"nodefs.available", "10%"}};
  start();
  host_.set_working_set("uid-hog", mebibytes(20));
  host_.set_working_set("uid-calm", mebibytes(20));
  host_.set_disk_used("uid-hog", gibibytes(40));
  host_.set_disk_available(mebibytes(1));
  run(seconds(15));
  EXPECT_EQ(status("hog", "phase"), "Failed");
  const auto* stop = host_.last<StopPod>();
  ASSERT_NE(stop, nullptr);
  EXPECT_TRUE(stop->storage_freed);
  EXPECT_EQ(stop->grace, seconds(2)) << "as a kubelet gives a container after a hard threshold";
}

TEST_F(BesideAKubelet, GoesByTheEstimatorItWasGiven) {
  put_pod("calm");
  put_pod("hog");
  memory_watch_.estimator = eviction::MemoryEstimator::kAvailable;
  host_.set_mem_available(mebibytes(400));
  start();
  pressure();
  run(seconds(20));
  EXPECT_EQ(status("hog", "phase"), "Running") << "the kernel has enough";
  host_.set_mem_available(mebibytes(90));
  run(seconds(5));
  EXPECT_EQ(status("hog", "phase"), "Failed");
}

TEST_F(BesideAKubelet, TheGuardActsOnMemAvailableAlone) {
  put_pod("calm");
  put_pod("hog");
  memory_watch_.mem_available_floor = mebibytes(40);
  host_.set_mem_available(mebibytes(41));
  start();
  pressure();
  host_.set_available(mebibytes(300));
  run(seconds(20));
  EXPECT_EQ(status("hog", "phase"), "Running");
  host_.set_mem_available(mebibytes(39));
  run(seconds(5));
  EXPECT_EQ(status("hog", "phase"), "Failed");
  ASSERT_FALSE(journal_.entries.empty());
  EXPECT_EQ(journal_.entries.front().eviction->metric_label, "memory.memAvailable");
}

TEST_F(BesideAKubelet, AnEvictionIsWrittenOnceTheApiServerIsBack) {
  put_pod("calm");
  put_pod("hog");
  start();
  api_.set_fault([](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (request.method == api::Method::kGet) return {};
    return Result<api::Response>(make_error(ErrorCode::kServiceUnavailable, "connection refused"));
  });
  pressure();
  run(minutes(1));
  EXPECT_EQ(status("hog", "phase"), "Running");
  EXPECT_FALSE(host_.is_running("uid-hog", "c")) << "memory does not wait for the API server";
  const std::size_t tries = writes();
  EXPECT_LT(tries, 30U) << "with back-off";
  api_.set_fault({});
  run(seconds(11));
  EXPECT_EQ(status("hog", "phase"), "Failed");
  EXPECT_EQ(status("calm", "phase"), "Running");
}

TEST_F(BesideAKubelet, AStatusThatTheKubeletTakesBackIsPutRight) {
  put_pod("calm");
  put_pod("hog");
  start();
  pressure();
  run(seconds(2));
  ASSERT_EQ(status("hog", "phase"), "Failed");
  Json pod = *api_.find("/api/v1/namespaces/shop/pods/hog");
  pod.make({"status", "phase"}) = "Running";
  deliver(api_.put(std::move(pod)));
  run(seconds(1));
  EXPECT_EQ(status("hog", "phase"), "Failed");
}

TEST_F(BesideAKubelet, FinishesWhatAnEarlierInstanceDecided) {
  put_pod("hog");
  eviction::EvictPod action{.uid = "uid-hog", .pod = {"shop", "hog"}, .message = "m", .disruption_target = true};
  JournalEntry recent{.decision = {.at = now_.wall - minutes(1)}, .eviction = action};
  start(Consequence::kActs, {recent});
  EXPECT_EQ(status("hog", "phase"), "Failed");
}

TEST_F(BesideAKubelet, DoesNotFinishWhatWasLongAgo) {
  put_pod("hog");
  eviction::EvictPod action{.uid = "uid-hog", .pod = {"shop", "hog"}, .message = "m", .disruption_target = true};
  JournalEntry old{.decision = {.at = now_.wall - hours(1)}, .eviction = action};
  start(Consequence::kActs, {old});
  EXPECT_EQ(status("hog", "phase"), "Running");
  EXPECT_EQ(host_.last<StopPod>(), nullptr);
}

TEST_F(BesideAKubelet, APodThatWasNotFoundOnTheMachineIsNoVictim) {
  deliver(api_.put(pod_document({.name = "coming"})));  // no cgroup yet: to rank it first would evict an innocent
  put_pod("hog");
  start();
  host_.set_working_set("uid-hog", mebibytes(400));
  host_.set_available(mebibytes(90));
  run(seconds(5));
  EXPECT_EQ(status("hog", "phase"), "Failed");
  EXPECT_EQ(status("coming", "phase"), "Pending");
}

TEST_F(BesideAKubelet, NothingIsEvictedWhileThereIsAHold) {
  put_pod("hog");
  start();
  companion_->set_hold("the kubelet's thresholds are as early", now_);
  pressure();
  run(seconds(10));
  EXPECT_EQ(status("hog", "phase"), "Running");
  EXPECT_TRUE(api::to_text(companion_->decisions(now_)).contains("\"held\""));
  companion_->set_hold({}, now_);
  run(seconds(5));
  EXPECT_EQ(status("hog", "phase"), "Failed");
}

TEST_F(BesideAKubelet, AShadowOnlySaysWhatItWouldHaveDone) {
  put_pod("calm");
  put_pod("hog");
  start(Consequence::kShadow);
  pressure();
  run(seconds(30));
  EXPECT_EQ(writes(), 0U);
  EXPECT_EQ(host_.last<StopPod>(), nullptr);
  ASSERT_EQ(journal_.entries.size(), 1U) << "one at a time";
  EXPECT_FALSE(journal_.entries[0].eviction) << "nothing to be finished after a crash";
  EXPECT_EQ(journal_.entries[0].decision.subject.name, "hog");
  Json pod = *api_.find("/api/v1/namespaces/shop/pods/hog");
  pod.make({"status", "phase"}) = "Failed";
  pod.make({"status", "reason"}) = "Evicted";
  pod.make({"status", "message"}) = "The node was low on resource: memory. ";
  host_.set_available(mebibytes(900));
  deliver(api_.put(std::move(pod)));
  run(seconds(2));
  EXPECT_TRUE(metrics_.text().contains("spillway_shadow_agreements_total{eviction_signal=\"memory.available\"} 1"));
  ASSERT_EQ(journal_.aftermaths.size(), 1U);
  EXPECT_EQ(journal_.aftermaths[0].facts.at(0), (policy::Fact{"shadow_outcome", std::string("agreed")}));
}

TEST_F(BesideAKubelet, AShadowCountsWhatTheKubeletDoesNotDo) {
  put_pod("hog");
  start(Consequence::kShadow);
  host_.set_working_set("uid-hog", mebibytes(400));
  host_.set_available(mebibytes(90));
  run(seconds(2));
  host_.set_available(mebibytes(900));
  run(minutes(2));
  EXPECT_TRUE(metrics_.text().contains("spillway_shadow_disagreements_total{kind=\"companion-only\"} 1"));
  EXPECT_EQ(journal_.entries.size(), 1U);
}

}  // namespace
}  // namespace spillway::agent
