// Jobs with the real API server: every pod is counted once, whatever is late, lost or refused on the way.
#include "controllers/controller_set.h"
#include "controllers/metric_line.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kPodsThere = "/api/v1/namespaces/default/pods";
const std::string kJobsThere = "/apis/batch/v1/namespaces/default/jobs";
const std::string kSum = kJobsThere + "/sum";

class Jobs : public ::testing::Test {
 protected:
  Jobs() : set(options, Rng(3), telemetry::Log(), metrics), scheduler({}, Rng(4), telemetry::Log(), metrics) {}

  ~Jobs() override {
    cluster.stop(set);
    cluster.stop(scheduler);
  }

  void start() {
    for (int i = 0; i < 2; ++i) cluster.add_node(fmt::format("n{}", i), {}, "64Gi");
    cluster.run(set);
    cluster.run(scheduler);
    cluster.advance(seconds(2));
  }

  void create_sum(std::string_view spec) {
    Json job = api::parse_json(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"sum"},"spec":{"template":
        {"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})")
                   .value();
    const Json members = api::parse_json(spec).value();
    for (const auto& [name, value] : *members.if_object()) job.make({"spec"})[name] = value;
    cluster.create(kJobsThere, job);
  }

  std::string metric(std::string_view name, std::string_view labels) {
    return metric_line(metrics, fmt::format("job_controller_{}", name), labels);
  }

  std::vector<Json> pods() { return cluster.list(kPodsThere); }

  std::vector<Json> active() {
    std::vector<Json> list = pods();
    std::erase_if(list, [](const Json& pod) {
      const std::string_view phase = pod.string_at({"status", "phase"});
      return phase == "Succeeded" || phase == "Failed" || !pod.string_at({"metadata", "deletionTimestamp"}).empty();
    });
    return list;
  }

  /// The active pods that their kubelet has started.
  std::vector<Json> running() {
    std::vector<Json> list = active();
    std::erase_if(list, [](const Json& pod) { return pod.string_at({"status", "phase"}) != "Running"; });
    return list;
  }

  /// Ends a pod as its kubelet reports it.
  void end_pod(const Json& pod, std::string_view phase) {
    cluster.merge(kPodsThere + "/" + std::string(pod.string_at({"metadata", "name"})) + "/status",
                  Json::object({{"status", Json::object({{"phase", phase}})}}));
  }

  void end_running(std::string_view phase) {
    for (const Json& pod : running()) end_pod(pod, phase);
  }

  std::int64_t count(std::string_view field) {
    const Json job = cluster.get(kSum);
    const Json* value = job.at({"status", field});
    return value == nullptr ? 0 : value->if_int64().value_or(-1);
  }

  std::string reason(std::string_view condition) {
    const Json job = cluster.get(kSum);
    const Json* conditions = job.at({"status", "conditions"});
    if (conditions == nullptr || conditions->if_array() == nullptr) return {};
    for (const Json& each : *conditions->if_array()) {
      if (each.string_at({"type"}) == condition) return std::string(each.string_at({"reason"}));
    }
    return {};
  }

  bool any_tracked() {
    return std::ranges::any_of(pods(), [](const Json& pod) {
      const Json* finalizers = pod.at({"metadata", "finalizers"});
      return finalizers != nullptr && finalizers->if_array() != nullptr && !finalizers->if_array()->empty();
    });
  }

  bool until(const std::function<bool()>& done, Duration within = seconds(60)) {
    for (Duration passed{}; passed < within; passed += milliseconds(100)) {
      if (done()) return true;
      cluster.advance(milliseconds(100));
    }
    return done();
  }

  /// Completes pods until the Job is over; checks that never more than `most` are active.
  void complete(std::size_t most) {
    ASSERT_TRUE(until([this, most] {
      EXPECT_LE(active().size(), most);
      end_running("Succeeded");
      return !reason("Complete").empty();
    }));
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  ControllerSet set;
  Scheduler scheduler;
};

TEST_F(Jobs, RunTheirPodsToCompletion) {
  start();
  create_sum(R"({"completions":5,"parallelism":2})");
  complete(2);
  EXPECT_EQ(count("succeeded"), 5);
  EXPECT_EQ(count("active"), 0);
  EXPECT_THAT(pods(), SizeIs(5));
  EXPECT_FALSE(any_tracked());
  EXPECT_THAT(cluster.events_about("sum"), Contains(Key("Completed")));
  EXPECT_EQ(metric("job_pods_finished_total", R"(completion_mode="NonIndexed",result="succeeded")"), "5");
  EXPECT_EQ(metric("job_pods_finished_total", R"(completion_mode="NonIndexed",result="failed")"), "");
  EXPECT_EQ(
      metric("jobs_finished_total", R"(completion_mode="NonIndexed",reason="CompletionsReached",result="succeeded")"),
      "1");
}

TEST_F(Jobs, SyncsAreCountedByWhatTheyDo) {
  start();
  cluster.delay_answers(api::Method::kPost, "/pods", milliseconds(500));
  create_sum(R"({"completions":1})");
  ASSERT_TRUE(until([this] { return running().size() == 1; }));
  cluster.advance(seconds(3));
  const auto syncs = [this](std::string_view action, std::string_view result) {
    return metric("job_syncs_total",
                  fmt::format(R"(action="{}",completion_mode="NonIndexed",result="{}")", action, result));
  };
  EXPECT_EQ(syncs("pods_created", "success"), "1");
  EXPECT_EQ(syncs("pods_created", "error"), "");
  EXPECT_NE(syncs("tracking", "success"), "");
  EXPECT_EQ(syncs("pods_deleted", "success"), "");
  EXPECT_EQ(
      metric("job_sync_duration_seconds_sum", R"(action="pods_created",completion_mode="NonIndexed",result="success")"),
      "0.5")
      << "until its writes are answered";
  cluster.fail(api::Method::kPatch, "/jobs/sum/status", 500, 1);
  cluster.merge(kSum, api::parse_json(R"({"spec":{"suspend":true}})").value());
  cluster.run_until_idle();
  EXPECT_EQ(syncs("pods_deleted", "error"), "1");
}

TEST_F(Jobs, CountEveryPodOnceWhateverIsLost) {
  start();
  // Requests carried out and not answered, refused, or overtaken, at every step of a sync.
  for (const api::Method method : {api::Method::kPost, api::Method::kPatch}) {
    cluster.fail(method, "/pods", TestCluster::kLostAnswer, 2);
    cluster.fail(method, "/pods", 500, 2);
  }
  cluster.fail(api::Method::kPatch, "/jobs/sum/status", TestCluster::kLostAnswer, 2);
  cluster.fail(api::Method::kPatch, "/jobs/sum/status", 409, 2);
  cluster.delay_events("/jobs", milliseconds(700));
  create_sum(R"({"completions":6,"parallelism":3})");
  ASSERT_TRUE(until(
      [this] {
        EXPECT_LE(active().size(), 3U);
        end_running("Succeeded");
        return !reason("Complete").empty();
      },
      minutes(5)));
  EXPECT_EQ(count("succeeded"), 6);
  EXPECT_EQ(count("failed"), 0);
  EXPECT_THAT(pods(), SizeIs(6));
  EXPECT_FALSE(any_tracked());
}

TEST_F(Jobs, CountOnAfterACrashBetweenTwoSteps) {
  start();
  create_sum(R"({"completions":2,"parallelism":2})");
  ASSERT_TRUE(until([this] { return running().size() == 2; }));
  cluster.advance(seconds(2));
  // The status lists the ended pods; the process ends before the first finalizer is removed.
  cluster.after(api::Method::kPatch, kSum + "/status", [this] { cluster.stop(set); });
  end_running("Succeeded");
  cluster.advance(seconds(5));
  ASSERT_EQ(count("succeeded"), 0);
  ASSERT_TRUE(any_tracked());
  ControllerSet next(options, Rng(5), telemetry::Log(), metrics);
  cluster.run(next);
  EXPECT_TRUE(until([this] { return !reason("Complete").empty(); }));
  EXPECT_EQ(count("succeeded"), 2);
  EXPECT_THAT(pods(), SizeIs(2));
  EXPECT_FALSE(any_tracked());
  cluster.stop(next);
}

TEST_F(Jobs, WaitLongerAfterEachFailureAndGiveUp) {
  start();
  create_sum(R"({"backoffLimit":2})");
  std::vector<Duration> waits;
  Instant failed = cluster.now().mono;
  ASSERT_TRUE(until(
      [&] {
        if (!running().empty()) {
          waits.push_back(cluster.now().mono - failed);
          failed = cluster.now().mono;
          end_running("Failed");
        }
        return !reason("Failed").empty();
      },
      minutes(5)));
  EXPECT_EQ(reason("Failed"), "BackoffLimitExceeded");
  EXPECT_EQ(count("failed"), 3);
  EXPECT_EQ(metric("job_pods_finished_total", R"(completion_mode="NonIndexed",result="failed")"), "3");
  EXPECT_EQ(
      metric("jobs_finished_total", R"(completion_mode="NonIndexed",reason="BackoffLimitExceeded",result="failed")"),
      "1");
  ASSERT_THAT(waits, SizeIs(3));
  EXPECT_GE(waits[1], seconds(8));
  EXPECT_GE(waits[2], seconds(18));
}

TEST_F(Jobs, SuspendedHaveNoPodsAndCountNone) {
  start();
  create_sum(R"({"completions":3,"parallelism":3})");
  ASSERT_TRUE(until([this] { return active().size() == 3; }));
  cluster.merge(kSum, api::parse_json(R"({"spec":{"suspend":true}})").value());
  ASSERT_TRUE(until([this] { return pods().empty(); }));
  EXPECT_EQ(reason("Suspended"), "JobSuspended");
  EXPECT_EQ(count("failed"), 0);
  cluster.merge(kSum, api::parse_json(R"({"spec":{"suspend":false}})").value());
  complete(3);
  EXPECT_EQ(count("succeeded"), 3);
}

TEST_F(Jobs, OfAnotherControllerAreLeftAlone) {
  start();
  create_sum(R"({"managedBy":"example.com/queue"})");
  cluster.advance(seconds(30));
  EXPECT_THAT(pods(), IsEmpty());
  EXPECT_EQ(cluster.get(kSum).at({"status", "startTime"}), nullptr);
}

TEST_F(Jobs, ThatAreGoneLetGoOfTheirPods) {
  start();
  create_sum(R"({"completions":3,"parallelism":3})");
  ASSERT_TRUE(until([this] { return active().size() == 3; }));
  cluster.remove(kSum);
  EXPECT_TRUE(until([this] { return pods().empty(); }, minutes(3)));
}

TEST_F(Jobs, ThatAreOverGoWithTheirTime) {
  start();
  create_sum(R"({"ttlSecondsAfterFinished":100})");
  complete(1);
  cluster.advance(seconds(90));
  ASSERT_FALSE(cluster.get(kSum).is_null());
  // A user extends the time to live; the cache does not show it yet.
  cluster.delay_events("/jobs", seconds(60));
  cluster.merge(kSum, api::parse_json(R"({"spec":{"ttlSecondsAfterFinished":300}})").value());
  cluster.advance(seconds(20));
  ASSERT_FALSE(cluster.get(kSum).is_null());
  EXPECT_TRUE(until([this] { return cluster.get(kSum).is_null() && pods().empty(); }, minutes(10)));
}

TEST_F(Jobs, PodsOfALimitPerIndexSayHowOftenTheirIndexFailed) {
  start();
  create_sum(R"({"completions":2,"parallelism":2,"completionMode":"Indexed","backoffLimitPerIndex":1})");
  ASSERT_TRUE(until([this] { return running().size() == 2; }));
  for (const Json& pod : running()) {
    const bool first = pod.string_at({"metadata", "labels", "batch.kubernetes.io/job-completion-index"}) == "0";
    end_pod(pod, first ? "Failed" : "Succeeded");
  }
  ASSERT_TRUE(until([this] { return running().size() == 1; }));
  const Json again = running().front();
  EXPECT_EQ(again.string_at({"metadata", "annotations", "batch.kubernetes.io/job-index-failure-count"}), "1");
  end_pod(again, "Failed");
  ASSERT_TRUE(until([this] { return !reason("Failed").empty(); }));
  EXPECT_EQ(reason("Failed"), "FailedIndexes");
  EXPECT_EQ(cluster.get(kSum).string_at({"status", "completedIndexes"}), "1");
  EXPECT_EQ(cluster.get(kSum).string_at({"status", "failedIndexes"}), "0");
  EXPECT_EQ(count("failed"), 2);
  EXPECT_FALSE(any_tracked());
  EXPECT_EQ(metric("job_pods_finished_total", R"(completion_mode="Indexed",result="succeeded")"), "1");
  EXPECT_EQ(metric("job_pods_finished_total", R"(completion_mode="Indexed",result="failed")"), "2");
  EXPECT_EQ(metric("job_finished_indexes_total", R"(backoffLimit="perIndex",status="succeeded")"), "1");
  EXPECT_EQ(metric("job_finished_indexes_total", R"(backoffLimit="perIndex",status="failed")"), "1");
}

}  // namespace
}  // namespace spillway::controllers
