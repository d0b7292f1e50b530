// CronJobs with the real API server: one Job for each time, whatever is late, lost or refused on the way.
#include "controllers/controller_set.h"
#include "controllers/test_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kJobsMade = "/apis/batch/v1/namespaces/default/jobs";
const std::string kCronJobs = "/apis/batch/v1/namespaces/default/cronjobs";
const std::string kTick = kCronJobs + "/tick";

class CronJobs : public ::testing::Test {
 protected:
  CronJobs() : set(options, Rng(3), telemetry::Log(), metrics) {}

  ~CronJobs() override { cluster.stop(set); }

  void start() {
    cluster.run(set);
    cluster.advance(seconds(2));
  }

  void create_tick(std::string_view spec) {
    Json tick = api::parse_json(R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"tick"},"spec":
        {"schedule":"* * * * *","jobTemplate":{"spec":{"suspend":true,"template":{"spec":
        {"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}})")
                    .value();
    const Json members = api::parse_json(spec).value();
    for (const auto& [name, value] : *members.if_object()) tick.make({"spec"})[name] = value;
    cluster.create(kCronJobs, tick);
  }

  std::set<std::string> jobs() {
    std::set<std::string> names;
    for (const Json& job : cluster.list(kJobsMade)) names.emplace(job.string_at({"metadata", "name"}));
    return names;
  }

  std::size_t active() {
    const Json tick = cluster.get(kTick);
    const Json* list = tick.at({"status", "active"});
    return list == nullptr || list->if_array() == nullptr ? 0 : list->if_array()->size();
  }

  void complete(const std::string& job) {
    cluster.merge(kJobsMade + "/" + job + "/status", api::parse_json(R"({"status":{"startTime":"2030-01-01T00:00:00Z",
        "completionTime":"2030-01-01T00:00:01Z","conditions":[
        {"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2030-01-01T00:00:01Z"},
        {"type":"Complete","status":"True","lastTransitionTime":"2030-01-01T00:00:01Z"}]}})")
                                                         .value());
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  ControllerSet set;
};

TEST_F(CronJobs, MakeOneJobForEachTime) {
  start();
  create_tick("{}");
  cluster.advance(minutes(3));
  EXPECT_THAT(jobs(), SizeIs(3));
  EXPECT_EQ(active(), 3U);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("cronjob_controller_job_creation_skew_duration_seconds_count 3\n"));
  EXPECT_THAT(text, HasSubstr("cronjob_controller_job_creation_skew_duration_seconds_bucket{le=\"1\"} 3\n"));
}

TEST_F(CronJobs, AreCountedByHowLateTheirJobsAre) {
  start();
  create_tick("{}");
  cluster.fail(api::Method::kPost, "/jobs", 500, 8);
  cluster.advance(seconds(90));
  ASSERT_THAT(jobs(), SizeIs(1));
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("cronjob_controller_job_creation_skew_duration_seconds_bucket{le=\"1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("cronjob_controller_job_creation_skew_duration_seconds_bucket{le=\"64\"} 1\n"));
}

TEST_F(CronJobs, MakeNoJobTwiceWhateverIsLost) {
  start();
  cluster.fail(api::Method::kPost, "/jobs", TestCluster::kLostAnswer, 2);
  cluster.fail(api::Method::kPost, "/jobs", 500, 2);
  cluster.fail(api::Method::kPatch, "/cronjobs/tick/status", TestCluster::kLostAnswer, 2);
  cluster.fail(api::Method::kPatch, "/cronjobs/tick/status", 409, 2);
  cluster.delay_events("/cronjobs", seconds(3));
  cluster.delay_events("/jobs", seconds(5));
  create_tick("{}");
  cluster.advance(minutes(4) + seconds(30));
  EXPECT_THAT(jobs(), SizeIs(4));
  EXPECT_EQ(active(), 4U);
  EXPECT_THAT(cluster.events_about("tick"), Not(Contains(Key("MissingJob"))));
}

TEST_F(CronJobs, CreateEachJobOnceThoughTheirStatusIsLate) {
  start();
  cluster.delay_events("/cronjobs", seconds(3));
  create_tick("{}");
  cluster.requests.clear();
  cluster.advance(minutes(3) + seconds(10));
  EXPECT_EQ(std::ranges::count(cluster.requests, "POST " + kJobsMade), 3);
  EXPECT_EQ(active(), 3U);
}

TEST_F(CronJobs, ForbidASecondAndReplaceTheFirst) {
  start();
  create_tick(R"({"concurrencyPolicy":"Forbid"})");
  cluster.advance(minutes(3));
  const std::set<std::string> first = jobs();
  EXPECT_THAT(first, SizeIs(1));
  EXPECT_THAT(cluster.events_about("tick"), Contains(Key("JobAlreadyActive")));
  cluster.merge(kTick, api::parse_json(R"({"spec":{"concurrencyPolicy":"Replace"}})").value());
  cluster.advance(minutes(1));
  EXPECT_THAT(jobs(), SizeIs(1));
  EXPECT_NE(jobs(), first);
}

TEST_F(CronJobs, KeepAShortHistory) {
  start();
  create_tick(R"({"successfulJobsHistoryLimit":2})");
  std::string last;
  for (int i = 0; i < 4; ++i) {
    cluster.advance(minutes(1));
    for (const std::string& job : jobs()) {
      if (job > last) complete(last = job);
    }
    cluster.advance(seconds(1));
  }
  EXPECT_THAT(jobs(), SizeIs(2));
  EXPECT_EQ(active(), 0U);
  EXPECT_FALSE(cluster.get(kTick).string_at({"status", "lastSuccessfulTime"}).empty());
}

TEST_F(CronJobs, SuspendedMakeNone) {
  start();
  create_tick(R"({"suspend":true})");
  cluster.advance(minutes(3));
  EXPECT_THAT(jobs(), IsEmpty());
}

}  // namespace
}  // namespace spillway::controllers
