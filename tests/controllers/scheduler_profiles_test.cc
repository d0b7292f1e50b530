// Goal: one scheduler with several profiles places each pod by that of the scheduler it names, in that name.
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::HasSubstr;

const std::string kProfiledPods = "/api/v1/namespaces/default/pods";

class SchedulerProfiles : public ::testing::Test {
 protected:
  SchedulerProfiles()
      : controllers_({}, Rng(3), telemetry::Log(), metrics_),
        scheduler_(options(), Rng(4), telemetry::Log(), metrics_) {
    cluster_.add_node("n0", {{"kubernetes.io/hostname", "n0"}, {"pool", "a"}});
    cluster_.add_node("n1", {{"kubernetes.io/hostname", "n1"}, {"pool", "b"}});
    cluster_.run(controllers_);
    cluster_.run(scheduler_);
    cluster_.advance(seconds(2));
  }

  ~SchedulerProfiles() override {
    cluster_.stop(controllers_);
    cluster_.stop(scheduler_);
  }

  static Scheduler::Options options() {
    Scheduler::Options options;
    scheduling::Profile packing;
    packing.scheduler = "packing";
    packing.fit.type = scheduling::ScoringStrategy::Type::kMostAllocated;
    packing.weights = {
        .resources = 1, .balanced = 0, .image_locality = 0, .taints = 0, .affinity = 0, .inter_pod = 0, .spread = 0};
    scheduling::Profile pool;
    pool.scheduler = "pool-b";
    pool.added_affinity.required = api::parse_node_selector(*api::parse_json(
        R"({"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["b"]}]}]})"));
    pool.preempts = false;
    options.profiles = {scheduling::Profile(), packing, pool};
    return options;
  }

  void create(std::string_view name, std::string_view scheduler, std::string_view cpu = "100m") {
    Json pod = pod_json(std::string(name));
    pod.make({"spec"})["schedulerName"] = scheduler;
    Json& container = pod.find("spec")->find("containers")->if_array()->front();
    container["resources"] = Json::object({{"requests", Json::object({{"cpu", cpu}, {"memory", "16Mi"}})}});
    cluster_.create(kProfiledPods, pod);
    cluster_.advance(seconds(1));
  }

  std::string node_of(std::string_view name) {
    return std::string(cluster_.get(fmt::format("{}/{}", kProfiledPods, name)).string_at({"spec", "nodeName"}));
  }

  telemetry::Registry metrics_;
  TestCluster cluster_;
  ControllerSet controllers_;
  Scheduler scheduler_;
};

TEST_F(SchedulerProfiles, PlacePodsOfTheirOwn) {
  create("first", "default-scheduler");
  ASSERT_EQ(node_of("first"), "n0");
  create("spread", "default-scheduler");
  EXPECT_EQ(node_of("spread"), "n1") << "the emptier one";
  create("third", "packing");
  create("fourth", "packing");
  EXPECT_EQ(node_of("third"), node_of("fourth")) << "the fuller one";
  create("stranger", "somebody-else");
  EXPECT_EQ(node_of("stranger"), "");
  EXPECT_EQ(scheduler_.waiting() + scheduler_.unschedulable(), 0U);
}

TEST_F(SchedulerProfiles, AddAffinityInTheirName) {
  create("in-b", "pool-b");
  EXPECT_EQ(node_of("in-b"), "n1");
  create("large", "pool-b", "1000");
  EXPECT_EQ(node_of("large"), "");
  const Json events = cluster_.get("/api/v1/namespaces/default/events");
  bool called = false;
  for (const Json& event : *events.find("items")->if_array()) {
    if (event.string_at({"reason"}) != "FailedScheduling") continue;
    called = true;
    EXPECT_EQ(event.string_at({"source", "component"}), "pool-b");
    EXPECT_THAT(std::string(event.string_at({"message"})),
                HasSubstr("1 Insufficient cpu, 1 node(s) didn't match scheduler-enforced node affinity"));
    EXPECT_THAT(std::string(event.string_at({"message"})), ::testing::Not(HasSubstr("preemption:")));
  }
  EXPECT_TRUE(called);
}

TEST_F(SchedulerProfiles, AttemptsAreTimed) {
  cluster_.delay_answers(api::Method::kPost, "/binding", seconds(3));
  create("first", "default-scheduler");
  cluster_.run_until_idle();
  std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("scheduler_goroutines{operation=\"binding\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_scheduler_cache_size{type=\"pods\"} 1\n"));
  create("large", "packing", "1000");
  cluster_.advance(seconds(1));
  cluster_.remove(kProfiledPods + "/large");
  cluster_.advance(seconds(5));
  text = metrics_.text();
  const std::string first = "{profile=\"default-scheduler\",result=\"scheduled\"}";
  EXPECT_THAT(text, HasSubstr("scheduler_scheduling_attempt_duration_seconds_sum" + first + " 3\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_scheduling_attempt_duration_seconds_count" + first + " 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_scheduling_attempt_duration_seconds_count{profile=\"packing\","
                              "result=\"unschedulable\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_pod_scheduling_attempts_sum 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_pod_scheduling_attempts_count 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_pod_scheduling_sli_duration_seconds_sum{attempts=\"1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_goroutines{operation=\"binding\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_scheduler_cache_size{type=\"pods\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_scheduler_cache_size{type=\"assumed_pods\"} 0\n"));
}

TEST_F(SchedulerProfiles, AreCounted) {
  create("first", "default-scheduler");
  create("large", "packing", "1000");
  Json gated = pod_json("gated");
  gated.make({"spec"})["schedulingGates"] = Json::array({Json::object({{"name", "example.com/wait"}})});
  cluster_.create(kProfiledPods, gated);
  cluster_.advance(seconds(1));
  const std::string text = metrics_.text();
  EXPECT_THAT(text,
              HasSubstr("scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"scheduled\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_schedule_attempts_total{profile=\"packing\",result=\"unschedulable\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_pending_pods{queue=\"unschedulable\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_pending_pods{queue=\"gated\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_pending_pods{queue=\"active\"} 0\n"));
}

}  // namespace
}  // namespace spillway::controllers
