// Answers of the three APIs of metrics as readings, and the paths of the questions.
#include "policy/autoscaling/metric_answers.h"

#include "policy/autoscaling/autoscaler_plan.h"
#include "policy/autoscaling/metric_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace spillway::autoscaling {
namespace {

using api::Json;

Json json_of(std::string_view text) {
  return api::parse_json(text).value();
}

MetricTarget target_of(std::string_view metric) {
  api::HorizontalPodAutoscaler autoscaler;
  autoscaler.metrics = Json::array({json_of(metric)});
  return metric_targets(autoscaler).front();
}

/// Ready pods "a", "b", … that request 100m of cpu each.
TargetView pods_of(int count) {
  TargetView view{.replicas = count, .now = WallTime(hours(1))};
  for (int i = 0; i < count; ++i) {
    api::Pod pod;
    pod.metadata.name = std::string(1, static_cast<char>('a' + i));
    pod.status.phase = "Running";
    pod.status.start_time = WallTime{};
    pod.status.conditions = {{.type = "Ready", .status = "True", .last_transition_time = WallTime(seconds(60))}};
    api::Container container;
    container.name = "c";
    container.resources.requests["cpu"] = api::Quantity::of_milli(100);
    pod.spec.containers = {container};
    view.pods.push_back(std::make_shared<const api::Pod>(pod));
  }
  return view;
}

MetricOutcome outcome_of(std::string_view metric, const Result<Json>& document, int pods = 2) {
  return propose_by_metric({target_of(metric), document}, pods_of(pods), pods, "shop");
}

std::string failure_of(const MetricOutcome& outcome) {
  const auto* failure = std::get_if<MetricFailure>(&outcome);
  return failure != nullptr ? failure->reason + ": " + failure->message : "none";
}

std::int32_t replicas_of(const MetricOutcome& outcome) {
  const auto* proposal = std::get_if<MetricProposal>(&outcome);
  return proposal != nullptr ? proposal->replicas : -1;
}

constexpr std::string_view kCpu =
    R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}})";
constexpr std::string_view kOfContainer = R"({"type":"ContainerResource","containerResource":{"name":"cpu",
    "container":"c","target":{"type":"AverageValue","averageValue":"50m"}}})";
constexpr std::string_view kObject = R"({"type":"Object","object":{"metric":{"name":"hits"},
    "describedObject":{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","name":"main"},
    "target":{"type":"Value","value":"10"}}})";
constexpr std::string_view kExternal = R"({"type":"External","external":{
    "metric":{"name":"queue","selector":{"matchLabels":{"a":"b"}}},
    "target":{"type":"AverageValue","averageValue":"5"}}})";
constexpr std::string_view kPods = R"({"type":"Pods","pods":{"metric":{"name":"hits"},
    "target":{"type":"AverageValue","averageValue":"500m"}}})";

TEST(MetricAnswers, CountAPodOnceAllOfItsContainersWereMeasured) {
  const Json whole = json_of(R"({"items":[
      {"metadata":{"name":"a"},"timestamp":"1970-01-01T01:00:00Z","window":"10s","containers":[
        {"name":"c","usage":{"cpu":"60m"}},{"name":"d","usage":{"cpu":"40m"}}]},
      {"metadata":{"name":"b"},"timestamp":"1970-01-01T01:00:00Z","window":"10s","containers":[
        {"name":"c","usage":{"cpu":"100m"}}]}]})");
  EXPECT_EQ(replicas_of(outcome_of(kCpu, whole)), 4);
  const Json partly = json_of(R"({"items":[
      {"metadata":{"name":"a"},"timestamp":"1970-01-01T01:00:00Z","window":"10s","containers":[
        {"name":"c","usage":{"cpu":"60m"}},{"name":"d","usage":{"memory":"1Mi"}}]},
      {"metadata":{"name":"b"},"timestamp":"1970-01-01T01:00:00Z","window":"10s","containers":[]}]})");
  EXPECT_EQ(failure_of(outcome_of(kCpu, partly)),
            "FailedGetResourceMetric: failed to get cpu utilization: did not receive metrics for targeted pods (pods "
            "might be unready)");
}

TEST(MetricAnswers, OfAContainerLackIt) {
  const Json other = json_of(R"({"items":[{"metadata":{"name":"a","namespace":"shop"},"containers":[{"name":"d"}]}]})");
  EXPECT_EQ(failure_of(outcome_of(kOfContainer, other)),
            "FailedGetContainerResourceMetric: failed to get cpu usage: unable to get metrics for resource cpu: failed "
            "to get container metrics: container c not present in metrics for pod shop/a");
  const Json both = json_of(R"({"items":[
      {"metadata":{"name":"a"},"timestamp":"1970-01-01T01:00:00Z","window":"10s","containers":[
        {"name":"c","usage":{"cpu":"100m"}},{"name":"d","usage":{"cpu":"900m"}}]},
      {"metadata":{"name":"b"},"timestamp":"1970-01-01T01:00:00Z","window":"10s","containers":[
        {"name":"c","usage":{"cpu":"100m"}}]}]})");
  EXPECT_EQ(replicas_of(outcome_of(kOfContainer, both)), 4);
}

TEST(MetricAnswers, OfTheCustomApiAreValues) {
  const Json hits =
      json_of(R"({"items":[{"describedObject":{"name":"a"},"timestamp":"1970-01-01T01:00:00Z","value":"1"},
      {"describedObject":{"name":"b"},"timestamp":"1970-01-01T01:00:00Z","value":"2"}]})");
  EXPECT_EQ(replicas_of(outcome_of(kPods, hits)), 6);
  EXPECT_EQ(replicas_of(outcome_of(kObject, json_of(R"({"items":[{"value":"20"}]})"))), 4);
  EXPECT_EQ(replicas_of(outcome_of(kExternal, json_of(R"({"items":[{"value":"11"},{"value":"9"}]})"))), 4);
  EXPECT_EQ(replicas_of(outcome_of(kExternal, json_of(R"({"items":[{"value":"11"},{"value":"x"}]})"))), -1);
}

TEST(MetricAnswers, ThatAreMissingSayWhy) {
  const Error none = make_error(ErrorCode::kNotFound, "the server could not find the requested resource");
  EXPECT_EQ(failure_of(outcome_of(kExternal, none)),
            "FailedGetExternalMetric: unable to get external metric shop/queue/a=b: unable to fetch metrics from "
            "external metrics API: no external metrics API (external.metrics.k8s.io) registered");
  EXPECT_EQ(failure_of(outcome_of(kObject, json_of("{}"))),
            "FailedGetObjectMetric: unable to get metric hits: Ingress on shop main: no metrics returned from custom "
            "metrics API");
  EXPECT_EQ(failure_of(outcome_of(R"({"type":"Odd"})", none)),
            "InvalidMetricSourceType: unknown metric source type \"Odd\"");
}

TEST(MetricTargets, ToleranceIsOfEachDirection) {
  api::HorizontalPodAutoscaler autoscaler;
  EXPECT_EQ(tolerance_of(autoscaler, 0.2).up, 0.2);
  autoscaler.behavior = json_of(R"({"scaleUp":{"tolerance":"0"},"scaleDown":{"selectPolicy":"Max"}})");
  const Tolerance tolerance = tolerance_of(autoscaler, 0.2);
  EXPECT_EQ(tolerance.up, 0);
  EXPECT_EQ(tolerance.down, 0.2);
  TargetView view = pods_of(20);
  view.tolerance = tolerance;
  EXPECT_EQ(propose_by_share(tolerance, 20, 21'000, 1'000).replicas, 21) << "no tolerance upwards";
  EXPECT_EQ(propose_by_share(tolerance, 20, 17'000, 1'000).replicas, 20);
  EXPECT_EQ(propose_by_share(tolerance, 20, 15'000, 1'000).replicas, 15);
  EXPECT_EQ(propose_by_value(view, 1'050, 1'000)->replicas, 21);
}

TEST(MetricTargets, AskWithinTheirNamespace) {
  EXPECT_EQ(question_path(target_of(kCpu), "shop", "app=web", {}),
            "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb");
  EXPECT_EQ(question_path(target_of(kObject), "shop", "app=web", "ingresses.networking.k8s.io"),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/ingresses.networking.k8s.io/main/hits");
  EXPECT_EQ(question_path(target_of(kExternal), "shop", "app=web", {}),
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue?labelSelector=a%3Db");
  EXPECT_EQ(question_path(target_of(kPods), "shop", "app=web", {}),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/hits?labelSelector=app%3Dweb");
  MetricTarget sly = target_of(kPods);
  sly.name = "../../x?y#z";
  EXPECT_EQ(question_path(sly, "shop", {}, {}),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/..%2F..%2Fx%3Fy%23z");
}

TEST(History, ForgetsWhatNoWindowReachesAndIsBounded) {
  std::deque<Moment> moments;
  for (std::size_t i = 0; i < 3 * kHistoryMax; ++i) {
    remember(moments, 1, hours(100), Instant(seconds(static_cast<std::int64_t>(i))));
  }
  EXPECT_EQ(moments.size(), kHistoryMax);
  remember(moments, 2, seconds(10), Instant(hours(1000)));
  EXPECT_EQ(moments.size(), 1U);
}

TEST(History, AGrowingTargetIsNotHeldBackByItsHistory) {
  const Instant now(hours(1));
  EXPECT_EQ(stabilize({{9, now - minutes(6)}, {3, now - minutes(1)}}, 2, kDownStabilization, now).replicas, 3);
  EXPECT_EQ(stabilize({{9, now - minutes(5)}}, 2, kDownStabilization, now).replicas, 9);
  EXPECT_EQ(stabilize({{3, now - minutes(1)}}, 7, kDownStabilization, now).replicas, 7);
}

TEST(ScaleLimits, WithoutPoliciesNothingMoves) {
  const Behavior none;
  EXPECT_EQ(limit({3, 1, 10}, 8, none, {}, Instant{}).replicas, 3);
  EXPECT_EQ(limit({3, 1, 10}, 1, none, {}, Instant{}).replicas, 3);
}

}  // namespace
}  // namespace spillway::autoscaling
