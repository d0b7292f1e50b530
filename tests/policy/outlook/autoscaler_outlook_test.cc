// The outlook of a HorizontalPodAutoscaler: its next action, and the bound that holds it back.
#include "policy/outlook/autoscaler_outlook.h"

#include "policy/outlook/outlook_facts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace spillway::outlook {
namespace {

using api::Json;
using policy::Verdict;

const Now kNow{Instant(hours(1000)), at("2026-11-26T12:00:00Z")};

Json json_of(std::string_view text) {
  return api::parse_json(text).value();
}

class AutoscalerOutlooks : public ::testing::Test {
 protected:
  AutoscalerOutlooks() {
    hpa.metadata.ns = "shop";
    hpa.metadata.name = "web";
    hpa.metadata.uid = "hpa-uid";
    hpa.metadata.creation_timestamp = kNow.wall - hours(1);
    hpa.target = {"Deployment", "web", "apps/v1"};
    hpa.min_replicas = 2;
    hpa.max_replicas = 10;
    hpa.metrics = json_of(
        R"([{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}])");
    set_replicas(4);
  }

  void set_replicas(int count) {
    scale = autoscaling::Scale{count, count, "app=web"};
    pods.clear();
    for (int i = 0; i < count; ++i) {
      api::Pod pod;
      pod.metadata.name = fmt::format("web-{}", i);
      pod.status.phase = "Running";
      pod.status.start_time = WallTime{};
      pod.status.conditions = {{.type = "Ready", .status = "True", .last_transition_time = WallTime(seconds(60))}};
      api::Container container;
      container.name = "c";
      container.resources.requests["cpu"] = api::Quantity::of_milli(100);
      pod.spec.containers = {container};
      pods.push_back(std::make_shared<const api::Pod>(pod));
    }
  }

  /// The answer of metrics.k8s.io if each pod uses so much.
  Json usage(int milli) const {
    Json::Array items;
    for (const auto& pod : pods) {
      items.push_back(json_of(fmt::format(
          R"({{"metadata":{{"name":"{}","namespace":"shop"}},"timestamp":"2026-11-26T11:59:50Z","window":"30s",
               "containers":[{{"name":"c","usage":{{"cpu":"{}m"}}}}]}})",
          pod->metadata.name, milli)));
    }
    return Json::object({{"items", std::move(items)}});
  }

  Outlook explain(const Result<Json>& answer) const {
    AutoscalerScene scene{hpa, scale, pods, {"shop/web"}, std::vector<autoscaling::MetricAnswer>()};
    for (const auto& target : autoscaling::metric_targets(hpa)) scene.answers->push_back({target, answer});
    return explain_autoscaler(scene, kNow);
  }

  void add_condition(std::string type, std::string status, std::string reason) {
    hpa.status.conditions.push_back({std::move(type), std::move(status), kNow.wall, std::move(reason), "said so"});
  }

  api::HorizontalPodAutoscaler hpa;
  Result<autoscaling::Scale> scale = autoscaling::Scale{};
  std::vector<autoscaling::PodPtr> pods;
};

TEST_F(AutoscalerOutlooks, GrowsToWhatItsMetricAsksFor) {
  const Outlook said = explain(usage(75));
  EXPECT_EQ(first_code(said), Code::kScaleChanges);
  EXPECT_EQ(said.verdict, Verdict::kActs);
  EXPECT_EQ(fact_of(said, Code::kScaleChanges, "replicas"), "4");
  EXPECT_EQ(fact_of(said, Code::kScaleChanges, "to"), "6");
  EXPECT_EQ(rows_of(said, "metrics"), std::vector<std::string>{"cpu: read"});
  EXPECT_EQ(cell_of(said, "metrics", 0, "current"), "75%");
  EXPECT_EQ(cell_of(said, "metrics", 0, "target"), "50%");
  EXPECT_EQ(cell_of(said, "metrics", 0, "replicas"), "6");
}

TEST_F(AutoscalerOutlooks, StaysWithinTheTolerance) {
  const Outlook said = explain(usage(54));
  EXPECT_EQ(first_code(said), Code::kScaleSteady);
  EXPECT_EQ(said.verdict, Verdict::kRests);
  EXPECT_EQ(fact_of(said, Code::kScaleTolerance, "tolerance_percent"), "10");
}

TEST_F(AutoscalerOutlooks, ItsMaximumAndItsMinimumHoldIt) {
  hpa.max_replicas = 6;
  Outlook said = explain(usage(200));
  EXPECT_EQ(first_code(said), Code::kScaleLimited);
  EXPECT_EQ(fact_of(said, Code::kScaleLimited, "proposed"), "16");
  EXPECT_EQ(fact_of(said, Code::kScaleLimited, "to"), "6");
  EXPECT_EQ(fact_of(said, Code::kScaleLimited, "reason"), "TooManyReplicas");
  EXPECT_EQ(said.verdict, Verdict::kActs);
  set_replicas(6);
  EXPECT_EQ(explain(usage(200)).verdict, Verdict::kWaits);
  set_replicas(2);
  said = explain(usage(10));
  EXPECT_EQ(fact_of(said, Code::kScaleLimited, "reason"), "TooFewReplicas");
}

TEST_F(AutoscalerOutlooks, ItsPoliciesHoldIt) {
  hpa.max_replicas = 100;
  hpa.behavior = json_of(R"({"scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Max",
                             "policies":[{"type":"Pods","value":1,"periodSeconds":60}]},
                             "scaleDown":{"selectPolicy":"Disabled"}})");
  const Outlook said = explain(usage(100));
  EXPECT_EQ(fact_of(said, Code::kScaleLimited, "reason"), "ScaleUpLimit");
  EXPECT_EQ(fact_of(said, Code::kScaleLimited, "to"), "5");
  EXPECT_EQ(rows_of(said, "policies"), (std::vector<std::string>{"scale up: at most 1 pod", "scale down: disabled"}));
}

TEST_F(AutoscalerOutlooks, DoesNotShrinkWithinTheWindowOfTheLastChange) {
  hpa.status.last_scale_time = kNow.wall - seconds(100);
  Outlook said = explain(usage(20));
  EXPECT_EQ(first_code(said), Code::kScaleStabilized);
  EXPECT_EQ(fact_of(said, Code::kScaleStabilized, "proposed"), "2");
  EXPECT_EQ(fact_of(said, Code::kScaleStabilized, "window_seconds"), "300");
  EXPECT_EQ(fact_of(said, Code::kScaleStabilized, "until_seconds"), "200");
  hpa.status.last_scale_time = kNow.wall - seconds(301);
  said = explain(usage(20));
  EXPECT_EQ(first_code(said), Code::kScaleChanges);
  EXPECT_EQ(fact_of(said, Code::kScaleChanges, "to"), "2");
  // The controller remembers more than the status shows.
  add_condition("AbleToScale", "True", "ScaleDownStabilized");
  said = explain(usage(20));
  EXPECT_EQ(first_code(said), Code::kScaleStabilized);
  EXPECT_EQ(fact_of(said, Code::kScaleStabilized, "until_seconds"), "-");
  EXPECT_EQ(first_code(explain(usage(75))), Code::kScaleChanges);  // a scale-down window does not hold growth back
}

TEST_F(AutoscalerOutlooks, MetricsThatAreMissingSayWhy) {
  const Outlook none = explain(make_error(ErrorCode::kNotFound, "the server could not find the requested resource"));
  EXPECT_EQ(first_code(none), Code::kScaleBlind);
  EXPECT_EQ(none.verdict, Verdict::kRefuses);
  EXPECT_EQ(fact_of(none, Code::kScaleBlind, "failed"), "1");
  EXPECT_EQ(rows_of(none, "metrics"), std::vector<std::string>{"cpu: missing"});
  EXPECT_NE(cell_of(none, "metrics", 0, "why").find("unable to fetch metrics"), std::string::npos);

  auto bare = std::make_shared<api::Pod>(*pods.front());
  bare->spec.containers.front().resources.requests.clear();
  pods.front() = bare;
  const Outlook requests = explain(usage(75));
  EXPECT_EQ(first_code(requests), Code::kScaleBlind);
  EXPECT_NE(fact_of(requests, Code::kScaleBlind, "message").find("missing request for cpu"), std::string::npos)
      << fact_of(requests, Code::kScaleBlind, "message");
}

TEST_F(AutoscalerOutlooks, ATargetWithoutReplicasOrOutsideOfTheRange) {
  set_replicas(0);
  EXPECT_EQ(first_code(explain(usage(1))), Code::kScaleZero);
  set_replicas(12);
  EXPECT_EQ(first_code(explain(usage(1))), Code::kScaleOutOfRange);
  EXPECT_EQ(fact_of(explain(usage(1)), Code::kScaleOutOfRange, "to"), "10");
  scale = make_error(ErrorCode::kNotFound, "deployments.apps \"web\" not found");
  EXPECT_EQ(first_code(explain(usage(1))), Code::kScaleUnread);
  EXPECT_EQ(fact_of(explain(usage(1)), Code::kScaleUnread, "target"), "Deployment web");
}

TEST_F(AutoscalerOutlooks, TwoOfOneTargetScaleNothing) {
  const AutoscalerScene scene{hpa, scale, pods, {"shop/other", "shop/web"}, std::vector<autoscaling::MetricAnswer>()};
  EXPECT_EQ(first_code(explain_autoscaler(scene, kNow)), Code::kScaleSelector);
}

TEST_F(AutoscalerOutlooks, WhatMayNotBeReadIsTakenFromItsStatus) {
  hpa.status.current_replicas = 4;
  hpa.status.desired_replicas = 5;
  hpa.status.current_metrics = json_of(
      R"([{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":61,"averageValue":"61m"}}}])");
  const AutoscalerScene scene{hpa, scale, pods, {"shop/web"}, std::nullopt};
  Outlook said = explain_autoscaler(scene, kNow);
  EXPECT_EQ(first_code(said), Code::kScaleUnknown);
  EXPECT_EQ(fact_of(said, Code::kNotRead, "what"), "metrics");
  EXPECT_EQ(fact_of(said, Code::kScaleStanding, "desired"), "5");
  EXPECT_EQ(rows_of(said, "metrics"), std::vector<std::string>{"cpu: as last read"});
  EXPECT_EQ(cell_of(said, "metrics", 0, "current"), "61%");
  add_condition("ScalingActive", "False", "FailedGetResourceMetric");
  said = explain_autoscaler(scene, kNow);
  EXPECT_EQ(first_code(said), Code::kControllerSays);
  EXPECT_EQ(fact_of(said, Code::kControllerSays, "reason"), "FailedGetResourceMetric");
  EXPECT_EQ(rows_of(said, "conditions"), std::vector<std::string>{"ScalingActive: False"});
}

TEST_F(AutoscalerOutlooks, WhatTheControllerSaysOtherwiseIsReported) {
  add_condition("ScalingActive", "False", "FailedGetResourceMetric");
  const Outlook said = explain(usage(50));
  EXPECT_EQ(first_code(said), Code::kScaleSteady);
  EXPECT_TRUE(says(said, Code::kControllerSays));
}

}  // namespace
}  // namespace spillway::outlook
