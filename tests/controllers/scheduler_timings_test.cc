// A scheduler's measurements of its work, with the real API server: with the meaning that kube-scheduler gives them,
// and nothing else.
#include "controllers/controller_set.h"
#include "controllers/metric_line.h"
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
using ::testing::Not;

const std::string kAllPods = "/api/v1/namespaces/default/pods";
constexpr std::string_view kPoints = "scheduler_framework_extension_point_duration_seconds";
constexpr std::string_view kPlugins = "scheduler_plugin_execution_duration_seconds";
constexpr std::string_view kEventDurations = "scheduler_event_handling_duration_seconds";
constexpr std::string_view kHints = "scheduler_queueing_hint_execution_duration_seconds";

class SchedulerTimingsTest : public ::testing::Test {
 protected:
  explicit SchedulerTimingsTest(bool measures = true)
      : controllers_({}, Rng(3), telemetry::Log(), metrics_),
        scheduler_(options(measures), Rng(4), telemetry::Log(), metrics_) {
    cluster_.create("/apis/scheduling.k8s.io/v1/priorityclasses",
                    Json::object({{"apiVersion", "scheduling.k8s.io/v1"},
                                  {"kind", "PriorityClass"},
                                  {"metadata", Json::object({{"name", "high"}})},
                                  {"value", 10}}));
    cluster_.add_node("n0", {}, "1Gi");
    cluster_.run(controllers_);
    cluster_.run(scheduler_);
    cluster_.advance(seconds(2));
  }

  ~SchedulerTimingsTest() override {
    cluster_.stop(controllers_);
    cluster_.stop(scheduler_);
  }

  /// A machine's clock that advances a millisecond at every reading.
  Scheduler::Options options(bool measures) {
    Scheduler::Options options;
    if (measures) options.stopwatch = [this] { return machine_ += milliseconds(1); };
    return options;
  }

  void create_pod(const std::string& name, std::string_view memory = "1Mi", bool important = false,
                  std::string_view disk = {}) {
    Json pod = pod_json(name, memory);
    if (important) pod.make({"spec"})["priorityClassName"] = "high";
    if (!disk.empty()) pod.make({"spec", "nodeSelector"})["disk"] = disk;
    cluster_.create(kAllPods, pod);
    cluster_.run_until_idle();
  }

  void label_node(std::string_view name, std::string_view value) {
    cluster_.merge("/api/v1/nodes/n0",
                   Json::object({{"metadata", Json::object({{"labels", Json::object({{name, value}})}})}}));
    cluster_.run_until_idle();
  }

  std::string value(std::string_view name, std::string_view labels) const {
    return metric_line(metrics_, name, labels);
  }

  std::string count(std::string_view histogram, std::string_view labels) const {
    return value(fmt::format("{}_count", histogram), labels);
  }

  static std::string point(std::string_view name, std::string_view status) {
    return fmt::format(R"(extension_point="{}",profile="default-scheduler",status="{}")", name, status);
  }

  static std::string plugin(std::string_view point, std::string_view name, std::string_view status) {
    return fmt::format(R"(extension_point="{}",plugin="{}",status="{}")", point, name, status);
  }

  Instant machine_{};
  telemetry::Registry metrics_;
  TestCluster cluster_;
  ControllerSet controllers_;
  Scheduler scheduler_;
};

TEST_F(SchedulerTimingsTest, BindingsAreMeasuredAndEveryTenthPlugIn) {
  for (int i = 0; i < 10; ++i) create_pod(fmt::format("p{}", i));
  EXPECT_EQ(count(kPoints, point("PreBind", "Success")), "10");
  EXPECT_EQ(count(kPoints, point("Bind", "Success")), "10");
  EXPECT_EQ(count(kPlugins, plugin("Bind", "DefaultBinder", "Success")), "1");
  create_pod("p10");
  EXPECT_EQ(count(kPoints, point("Bind", "Success")), "11");
  EXPECT_EQ(count(kPlugins, plugin("Bind", "DefaultBinder", "Success")), "2");
  EXPECT_EQ(count(kPlugins, plugin("PreBind", "VolumeBinding", "Success")), "2");
}

TEST_F(SchedulerTimingsTest, ABindingTakesUntilItsAnswer) {
  cluster_.delay_answers(api::Method::kPost, "/binding", seconds(3));
  create_pod("p");
  cluster_.advance(seconds(3));
  EXPECT_EQ(value(fmt::format("{}_sum", kPoints), point("Bind", "Success")), "3");
  EXPECT_EQ(value(fmt::format("{}_sum", kPoints), point("PreBind", "Success")), "0");
}

TEST_F(SchedulerTimingsTest, ABindingThatIsRefusedIsAnError) {
  cluster_.fail(api::Method::kPost, "/binding", 500, 1);
  create_pod("p");
  EXPECT_EQ(count(kPoints, point("Bind", "Error")), "1");
  EXPECT_EQ(count(kPoints, point("Bind", "Success")), "");
}

TEST_F(SchedulerTimingsTest, TheSearchForVictimsIsMeasuredByTheClockOfTheMachine) {
  create_pod("small", "700Mi");
  create_pod("no-lower", "700Mi");
  EXPECT_EQ(count(kPoints, point("PostFilter", "Unschedulable")), "1");
  EXPECT_EQ(value(fmt::format("{}_sum", kPoints), point("PostFilter", "Unschedulable")), "0.001");
  create_pod("higher", "700Mi", true);
  EXPECT_EQ(count(kPoints, point("PostFilter", "Success")), "1");
  EXPECT_EQ(count(kPlugins, plugin("PostFilter", "DefaultPreemption", "Success")), "") << "the third attempt";
}

TEST_F(SchedulerTimingsTest, EventsAreMeasuredByTheNamesOfKubeScheduler) {
  const auto events = [this](std::string_view event) {
    return count(kEventDurations, fmt::format("event=\"{}\"", event));
  };
  EXPECT_EQ(events("NodeAdd"), "1");
  create_pod("p");
  EXPECT_EQ(events("UnschedulablePodAdd"), "1");
  EXPECT_EQ(events("AssignedPodAdd"), "1");
  Json foreign = pod_json("foreign");
  foreign["spec"]["schedulerName"] = "another";
  cluster_.create(kAllPods, foreign);
  cluster_.run_until_idle();
  EXPECT_EQ(events("UnschedulablePodAdd"), "1") << "another scheduler's";
  create_pod("waits", "1Mi", false, "ssd");
  EXPECT_EQ(events("UnschedulablePodAdd"), "2");
  label_node("disk", "slow");
  EXPECT_EQ(events("NodeUpdateNodeLabel"), "1");
  cluster_.remove(kAllPods + "/waits?gracePeriodSeconds=0");
  cluster_.remove(kAllPods + "/p?gracePeriodSeconds=0");
  cluster_.run_until_idle();
  EXPECT_EQ(events("UnschedulablePodDelete"), "1");
  EXPECT_EQ(events("AssignedPodDelete"), "1");
  cluster_.remove("/api/v1/nodes/n0");
  cluster_.run_until_idle();
  EXPECT_EQ(events("NodeDelete"), "1");
}

TEST_F(SchedulerTimingsTest, HintsOfEveryTenthQuestionAreMeasured) {
  create_pod("waits", "1Mi", false, "ssd");
  const auto hints = [this](std::string_view hint) {
    return count(kHints, fmt::format(R"(event="NodeUpdateNodeLabel",hint="{}",plugin="NodeAffinity")", hint));
  };
  for (int i = 0; i < 10; ++i) label_node("disk", fmt::format("slow-{}", i));
  EXPECT_EQ(hints("QueueSkip"), "1");
  label_node("disk", "ssd");
  EXPECT_EQ(hints("Queue"), "1") << "the eleventh";
}

class UnmeasuredScheduler : public SchedulerTimingsTest {
 protected:
  UnmeasuredScheduler() : SchedulerTimingsTest(false) {}
};

TEST_F(UnmeasuredScheduler, ShowsWhatTheLoopKnowsAlone) {
  create_pod("p");
  create_pod("waits", "1Mi", false, "ssd");
  label_node("disk", "slow");
  EXPECT_EQ(count(kPoints, point("Bind", "Success")), "1");
  const std::string text = metrics_.text();
  EXPECT_THAT(text, Not(HasSubstr("PostFilter")));
  EXPECT_THAT(text, Not(HasSubstr(std::string(kEventDurations))));
  EXPECT_THAT(text, Not(HasSubstr(std::string(kHints))));
}

}  // namespace
}  // namespace spillway::controllers
