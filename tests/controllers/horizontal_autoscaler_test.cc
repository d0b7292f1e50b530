// HorizontalPodAutoscalers with the real API server: what is scaled, and above all what is not. Readings are answers of
// metrics.k8s.io that the test gives; without one the server has nothing measured.
#include "api/text/time_text.h"
#include "controllers/controller_set.h"
#include "controllers/metric_line.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using api::Method;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

const std::string kDeployments = "/apis/apps/v1/namespaces/default/deployments";
const std::string kAutoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const std::string kWeb = kDeployments + "/web";
const std::string kOfWeb = kAutoscalers + "/web";
constexpr int kManyTimes = 10'000;
constexpr Duration kOnePeriod = autoscaling::Settings().period;

Json json(std::string_view text) {
  return api::parse_json(text).value();
}

ControllerSet::Options autoscaler_alone() {
  ControllerSet::Options options;
  options.enabled = {false, false, false, false,
                     false, false, false, {.job = false, .cron_job = false, .ttl_after_finished = false},
                     false, false, false, true};
  return options;
}

class Autoscalers : public ::testing::Test {
 protected:
  Autoscalers() { restart(); }

  ~Autoscalers() override { cluster.stop(*set); }

  void restart(autoscaling::Settings settings = {}) {
    if (set) cluster.stop(*set);
    registry.push_back(std::make_unique<telemetry::Registry>());
    ControllerSet::Options options = autoscaler_alone();
    options.autoscaling = settings;
    sets.push_back(std::make_unique<ControllerSet>(options, Rng(3), telemetry::Log(), *registry.back()));
    set = sets.back().get();
    cluster.run(*set);
    cluster.advance(seconds(1));
  }

  void create_web(int replicas) {
    Json web = json(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{
        "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
        "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
    web["spec"]["replicas"] = replicas;
    cluster.create(kDeployments, web);
    create_pods(replicas);
  }

  /// Running pods that request 100m each, ready since long ago unless `since` is given.
  void create_pods(int count, std::string_view since = "2020-01-01T00:00:00Z") {
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("web-{}", ++pods);
      Json pod = pod_json(name);
      pod["metadata"]["labels"] = json(R"({"app":"web"})");
      pod["spec"]["containers"] = json(R"([{"name":"c","image":"i","resources":{"requests":{"cpu":"100m"}}}])");
      cluster.create("/api/v1/namespaces/default/pods", pod);
      Json status = json(R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
      status["status"]["startTime"] = since;
      (*status["status"]["conditions"].if_array())[0]["lastTransitionTime"] = since;
      cluster.merge("/api/v1/namespaces/default/pods/" + name + "/status", status);
    }
  }

  void create_autoscaler(std::string_view members = "{}", std::string_view name = "web") {
    Json autoscaler = json(R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{},
        "spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"minReplicas":1,"maxReplicas":10,
        "metrics":[{"type":"Resource","resource":{"name":"cpu",
        "target":{"type":"Utilization","averageUtilization":50}}}]}})");
    autoscaler["metadata"]["name"] = name;
    const Json given = json(members);
    for (const auto& [member, value] : *given.if_object()) autoscaler["spec"][member] = value;
    cluster.create(kAutoscalers, autoscaler);
  }

  /// Sets the usage for the next sync: thousandths of a core for each pod.
  void measure(int milli, int measured_pods, std::string_view at = "2030-01-01T00:00:00Z", int times = 1) {
    Json list = json(R"({"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","items":[]})");
    for (int i = 1; i <= measured_pods; ++i) {
      Json item = json(R"({"window":"10s","containers":[{"name":"c","usage":{}}]})");
      item["metadata"] = Json::object({{"name", fmt::format("web-{}", i)}, {"namespace", "default"}});
      item["timestamp"] = at;
      (*item["containers"].if_array())[0]["usage"]["cpu"] = fmt::format("{}m", milli);
      list["items"].if_array()->push_back(std::move(item));
    }
    cluster.fail(Method::kGet, "/apis/metrics.k8s.io/", 200, times, to_text(list));
  }

  std::int64_t replicas() { return cluster.get(kWeb).at({"spec", "replicas"})->if_int64().value(); }

  /// "False FailedGetScale", or nothing.
  std::string condition(std::string_view type, const std::string& of = kOfWeb) {
    const Json autoscaler = cluster.get(of);
    const Json* conditions = autoscaler.at({"status", "conditions"});
    if (conditions == nullptr || conditions->if_array() == nullptr) return {};
    for (const Json& each : *conditions->if_array()) {
      if (each.string_at({"type"}) != type) continue;
      return fmt::format("{} {}", each.string_at({"status"}), each.string_at({"reason"}));
    }
    return {};
  }

  std::string metric(std::string_view name, std::string_view labels) {
    return metric_line(*registry.back(), fmt::format("horizontal_pod_autoscaler_controller_{}", name), labels);
  }

  std::string message(std::string_view reason) {
    for (const Json& event : cluster.list("/api/v1/events")) {
      if (event.string_at({"reason"}) == reason) return std::string(event.string_at({"message"}));
    }
    return {};
  }

  TestCluster cluster;
  std::vector<std::unique_ptr<telemetry::Registry>> registry;
  std::vector<std::unique_ptr<ControllerSet>> sets;
  ControllerSet* set = nullptr;
  int pods = 0;
};

TEST_F(Autoscalers, GrowWithWhatIsUsed) {
  create_web(2);
  measure(75, 2);
  create_autoscaler();
  cluster.advance(seconds(1));
  EXPECT_EQ(replicas(), 3);
  EXPECT_EQ(condition("AbleToScale"), "True SucceededRescale");
  EXPECT_EQ(condition("ScalingActive"), "True ValidMetricFound");
  EXPECT_EQ(condition("ScalingLimited"), "False DesiredWithinRange");
  EXPECT_EQ(message("SuccessfulRescale"),
            "New size: 3; reason: cpu resource utilization (percentage of request) above target");
  const Json status = *cluster.get(kOfWeb).find("status");
  EXPECT_EQ(
      to_text(*status.find("currentMetrics")),
      R"([{"resource":{"current":{"averageUtilization":75,"averageValue":"75m"},"name":"cpu"},"type":"Resource"}])");
  EXPECT_EQ(*status.find("desiredReplicas"), Json(3));
  EXPECT_FALSE(status.string_at({"lastScaleTime"}).empty());
}

TEST_F(Autoscalers, SyncsAndMetricsAreCounted) {
  create_web(2);
  measure(75, 2);
  cluster.delay_answers(Method::kGet, "/scale", seconds(2));
  create_autoscaler();
  cluster.advance(seconds(3));
  ASSERT_EQ(replicas(), 3);
  EXPECT_EQ(metric("reconciliations_total", R"(action="scale_up",error="none")"), "1");
  EXPECT_EQ(metric("reconciliation_duration_seconds_sum", R"(action="scale_up",error="none")"), "2");
  EXPECT_EQ(metric("metric_computation_total", R"(action="scale_up",error="none",metric_type="Resource")"), "1");
  EXPECT_EQ(
      metric("metric_computation_duration_seconds_sum", R"(action="scale_up",error="none",metric_type="Resource")"),
      "0");
  cluster.advance(kOnePeriod * 2 + seconds(6));  // there are no measurements any more
  EXPECT_EQ(metric("reconciliations_total", R"(action="none",error="internal")"), "2");
  EXPECT_EQ(metric("metric_computation_total", R"(action="none",error="internal",metric_type="Resource")"), "2");
}

TEST_F(Autoscalers, AreSyncedEveryFifteenSeconds) {
  create_web(2);
  cluster.requests.clear();
  create_autoscaler();
  cluster.advance(minutes(1));
  EXPECT_EQ(std::ranges::count(cluster.requests, "GET " + kWeb + "/scale"), 5);
}

TEST_F(Autoscalers, KeepTheirReplicasWithoutAReading) {
  create_web(5);
  create_autoscaler();
  cluster.advance(minutes(20));
  EXPECT_EQ(replicas(), 5);
  EXPECT_EQ(condition("ScalingActive"), "False FailedGetResourceMetric");
  EXPECT_EQ(message("FailedGetResourceMetric"),
            "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource "
            "metrics API");
  EXPECT_THAT(message("FailedComputeMetricsReplicas"),
              HasSubstr("invalid metrics (1 invalid out of 1), first error is: "
                        "failed to get cpu resource metric value: "));
}

TEST_F(Autoscalers, KeepTheirReplicasWhileTheServerOfMetricsFails) {
  create_web(5);
  cluster.fail(Method::kGet, "/apis/metrics.k8s.io/", 503, kManyTimes);
  create_autoscaler();
  cluster.advance(minutes(20));
  EXPECT_EQ(replicas(), 5);
  EXPECT_EQ(condition("ScalingActive"), "False FailedGetResourceMetric");
}

TEST_F(Autoscalers, DoNotShrinkWhileOneOfTwoMetricsCannotBeRead) {
  create_web(5);
  measure(1, 5, "2030-01-01T00:00:00Z", kManyTimes);
  create_autoscaler(R"({"metrics":[
      {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},
      {"type":"Pods","pods":{"metric":{"name":"requests"},"target":{"type":"AverageValue","averageValue":"1"}}}]})");
  cluster.advance(minutes(20));
  EXPECT_EQ(replicas(), 5);
  EXPECT_EQ(condition("ScalingActive"), "False FailedGetPodsMetric");
  EXPECT_EQ(metric("metric_computation_total", R"(action="none",error="internal",metric_type="Resource")"), "");
  EXPECT_NE(metric("metric_computation_total", R"(action="scale_down",error="none",metric_type="Resource")"), "");
  EXPECT_NE(metric("metric_computation_total", R"(action="none",error="internal",metric_type="Pods")"), "");
  EXPECT_EQ(message("FailedGetPodsMetric"),
            "unable to get metric requests: unable to fetch metrics from custom metrics API: no custom metrics API "
            "(custom.metrics.k8s.io) registered");
}

TEST_F(Autoscalers, ShrinkFiveMinutesAfterTheLastHigherRecommendation) {
  create_web(4);
  measure(1, 4, "2030-01-01T00:00:00Z", kManyTimes);
  create_autoscaler();
  cluster.advance(minutes(5) - seconds(1));
  EXPECT_EQ(replicas(), 4);
  EXPECT_EQ(condition("AbleToScale"), "True ScaleDownStabilized");
  cluster.advance(kOnePeriod * 2);
  EXPECT_EQ(replicas(), 1);
  EXPECT_EQ(message("SuccessfulRescale"), "New size: 1; reason: All metrics below target");
}

TEST_F(Autoscalers, HoldForAsLongAsConfigured) {
  restart({.period = seconds(5), .down_stabilization = minutes(1)});
  create_web(4);
  measure(1, 4, "2030-01-01T00:00:00Z", kManyTimes);
  create_autoscaler();
  cluster.advance(seconds(58));
  EXPECT_EQ(replicas(), 4);
  cluster.advance(seconds(10));
  EXPECT_EQ(replicas(), 1);
}

TEST_F(Autoscalers, HoldForAsLongAsConfiguredWithPoliciesToo) {
  restart({.down_stabilization = Duration::zero()});
  create_web(4);
  measure(1, 4, "2030-01-01T00:00:00Z", kManyTimes);
  create_autoscaler(R"({"behavior":{"scaleDown":{"policies":[{"type":"Pods","value":1,"periodSeconds":600}]}}})");
  cluster.advance(seconds(1));
  EXPECT_EQ(replicas(), 3) << "no window, and one pod in ten minutes";
  cluster.advance(minutes(9));
  EXPECT_EQ(replicas(), 3);
  cluster.advance(minutes(2));
  EXPECT_EQ(replicas(), 2);
}

TEST_F(Autoscalers, AreSyncedAsOftenAsConfigured) {
  restart({.period = seconds(30)});
  create_web(2);
  cluster.requests.clear();
  create_autoscaler();
  cluster.advance(minutes(1) + seconds(1));
  EXPECT_EQ(std::ranges::count(cluster.requests, "GET " + kWeb + "/scale"), 3);
}

TEST_F(Autoscalers, TolerateWhatIsConfigured) {
  restart({.tolerance = 0.5});
  create_web(2);
  measure(75, 2);  // half as much again as wanted
  create_autoscaler();
  cluster.advance(seconds(1));
  EXPECT_EQ(replicas(), 2);
  measure(80, 2);
  cluster.advance(kOnePeriod);
  EXPECT_EQ(replicas(), 4);
}

TEST_F(Autoscalers, CountPodsThatStartAsEarlyAsConfigured) {
  restart({.start_periods = {.cpu_initialization = seconds(10)}});
  create_web(2);
  create_pods(2, api::format_time(cluster.now().wall - seconds(20)));
  measure(400, 4, api::format_time(cluster.now().wall - seconds(15)));
  cluster.merge(kWeb, json(R"({"spec":{"replicas":4}})"));
  create_autoscaler(
      R"({"maxReplicas":100,"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":90,"periodSeconds":15}]}}})");
  cluster.advance(seconds(1));
  EXPECT_EQ(replicas(), 32);
}

TEST_F(Autoscalers, BeginTheWindowAnewAfterARestart) {
  create_web(4);
  measure(1, 4, "2030-01-01T00:00:00Z", kManyTimes);
  create_autoscaler();
  cluster.advance(minutes(4));
  restart();
  cluster.advance(minutes(4));
  EXPECT_EQ(replicas(), 4);
  cluster.advance(minutes(2));
  EXPECT_EQ(replicas(), 1);
}

TEST_F(Autoscalers, BringTheirTargetIntoItsRangeWithoutAsking) {
  create_web(12);
  cluster.requests.clear();
  create_autoscaler();
  cluster.advance(seconds(1));
  EXPECT_EQ(replicas(), 10);
  EXPECT_EQ(message("SuccessfulRescale"), "New size: 10; reason: Current number of replicas above Spec.MaxReplicas");
  EXPECT_THAT(cluster.requests, Not(Contains(HasSubstr("metrics.k8s.io"))));
}

TEST_F(Autoscalers, IgnoreATargetWithoutReplicas) {
  create_web(0);
  create_autoscaler();
  cluster.advance(minutes(1));
  EXPECT_EQ(replicas(), 0);
  EXPECT_EQ(condition("ScalingActive"), "False ScalingDisabled");
}

TEST_F(Autoscalers, WaitForATargetThatIsNotThere) {
  create_autoscaler();
  cluster.advance(minutes(1));
  EXPECT_EQ(condition("AbleToScale"), "False FailedGetScale");
  EXPECT_THAT(cluster.events_about("web"), Contains(Key("FailedGetScale")));
  create_web(2);
  measure(75, 2, "2030-01-01T00:00:00Z", kManyTimes);
  cluster.advance(kOnePeriod);
  EXPECT_EQ(replicas(), 3);
}

TEST_F(Autoscalers, RefuseATargetThatHasNoScale) {
  create_pods(1);
  create_autoscaler(R"({"scaleTargetRef":{"apiVersion":"v1","kind":"Pod","name":"web-1"}})");
  create_autoscaler(R"({"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Unheard","name":"web"}})", "unheard");
  cluster.advance(seconds(1));
  EXPECT_EQ(condition("AbleToScale"), "False FailedGetScale");
  EXPECT_EQ(condition("AbleToScale", kAutoscalers + "/unheard"), "False FailedGetScale");
  EXPECT_EQ(cluster.events_about("unheard").count("FailedGetScale"), 1U);
}

TEST_F(Autoscalers, NeverLeaveTheirNamespaceByWhatTheTargetIsCalled) {
  create_web(1);
  int made = 0;
  for (const std::string_view api_version :
       {"apps/v1/namespaces/kube-system/deployments/other/scale?", "../api/v1/namespaces/kube-system/secrets/x#",
        "apps/../../api/v1", "apps/v1?", "a b/v1", "/v1", "APPS/v1"}) {
    create_autoscaler(
        R"({"scaleTargetRef":{"kind":"Deployment","name":"web","apiVersion":)" + to_text(Json(api_version)) + "}}",
        fmt::format("path-{}", ++made));
  }
  cluster.requests.clear();
  cluster.advance(minutes(1));
  for (const std::string& request : cluster.requests) {
    const bool own = request.find("horizontalpodautoscalers") != std::string::npos ||
                     request.find("/namespaces/default/events") != std::string::npos;
    EXPECT_TRUE(own || request.find("?watch") != std::string::npos || request.find("watch=") != std::string::npos)
        << request;
  }
  EXPECT_EQ(condition("AbleToScale", kAutoscalers + "/path-1"), "False FailedGetScale");
  EXPECT_NE(metric("reconciliations_total", R"(action="none",error="spec")"), "") << "no version has two slashes";
  EXPECT_NE(metric("reconciliations_total", R"(action="none",error="internal")"), "");
}

TEST_F(Autoscalers, DoNothingIfTwoScaleTheSamePods) {
  create_web(2);
  measure(75, 3, "2030-01-01T00:00:00Z", kManyTimes);
  create_autoscaler();
  cluster.advance(seconds(1));
  EXPECT_EQ(replicas(), 3);
  create_pods(1);  // now five are wanted
  create_autoscaler("{}", "second");
  cluster.advance(minutes(1));
  EXPECT_EQ(replicas(), 3);
  EXPECT_EQ(condition("ScalingActive"), "False AmbiguousSelector");
  EXPECT_EQ(condition("ScalingActive", kAutoscalers + "/second"), "False AmbiguousSelector");
  EXPECT_EQ(message("AmbiguousSelector"),
            "pods by selector app=web are controlled by multiple HPAs: [default/second default/web]");
  cluster.remove(kAutoscalers + "/second");
  cluster.advance(kOnePeriod);
  EXPECT_EQ(condition("ScalingActive"), "True ValidMetricFound");
  EXPECT_EQ(replicas(), 5);
}

TEST_F(Autoscalers, DoNotOverwriteTheScaleThatAnotherClientHasJustSet) {
  create_web(2);
  measure(75, 2, "2030-01-01T00:00:00Z", kManyTimes);
  cluster.before(Method::kPut, kWeb + "/scale", [this] { cluster.merge(kWeb, json(R"({"spec":{"replicas":7}})")); });
  create_autoscaler();
  cluster.advance(seconds(1));
  EXPECT_EQ(replicas(), 7);
  EXPECT_EQ(condition("AbleToScale"), "False FailedUpdateScale");
  EXPECT_EQ(metric("reconciliations_total", R"(action="none",error="internal")"), "1");
  EXPECT_EQ(metric("reconciliations_total", R"(action="scale_up",error="none")"), "");
  EXPECT_THAT(message("FailedRescale"), HasSubstr("New size: 3; reason: cpu resource utilization (percentage of "
                                                  "request) above target; error: "));
}

TEST_F(Autoscalers, ScaleOnceThoughTheAnswerIsLost) {
  create_web(2);
  measure(75, 2, "2030-01-01T00:00:00Z", kManyTimes);
  cluster.fail(Method::kPut, "/scale", TestCluster::kLostAnswer, 1);
  create_autoscaler();
  cluster.advance(seconds(5));
  EXPECT_EQ(replicas(), 3);
  cluster.advance(minutes(1));
  EXPECT_LE(replicas(), 3);  // measurements of two pods of three: the missing one counts as zero
}

TEST_F(Autoscalers, DoNotCountReadingsFromBeforeAPodWasReady) {
  create_web(2);
  create_pods(2, api::format_time(cluster.now().wall - seconds(20)));
  // Measured before the young pods were ready: their usage during the start is no load.
  measure(400, 4, api::format_time(cluster.now().wall - seconds(15)));
  cluster.merge(kWeb, json(R"({"spec":{"replicas":4}})"));
  create_autoscaler(
      R"({"maxReplicas":100,"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":90,"periodSeconds":15}]}}})");
  cluster.advance(seconds(1));
  EXPECT_EQ(replicas(), 16);  // 8 times the target for two, nothing for the other two: not 32
}

TEST_F(Autoscalers, GrowAsFastAsTheirBehaviorSays) {
  create_web(2);
  measure(500, 2, "2030-01-01T00:00:00Z", kManyTimes);
  create_autoscaler(R"({"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":60}]}}})");
  cluster.advance(seconds(50));
  EXPECT_EQ(replicas(), 3);
  EXPECT_EQ(condition("ScalingLimited"), "True ScaleUpLimit");
  cluster.advance(seconds(30));
  EXPECT_EQ(replicas(), 4);
}

TEST_F(Autoscalers, AreSyncedWhenTheyAreChanged) {
  create_web(2);
  create_autoscaler();
  cluster.advance(seconds(1));
  cluster.merge(kOfWeb, json(R"({"spec":{"minReplicas":4}})"));
  cluster.advance(seconds(1));
  EXPECT_EQ(replicas(), 4);
}

}  // namespace
}  // namespace spillway::controllers
