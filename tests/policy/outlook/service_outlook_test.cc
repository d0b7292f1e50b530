// The outlook of a Service: the pods behind it, and why others are not.
#include "policy/outlook/service_outlook.h"

#include "policy/outlook/outlook_facts.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::outlook {
namespace {

using endpoints::PodPtr;
using endpoints::SlicePtr;
using policy::Verdict;

const WallTime kNow = at("2026-11-26T12:00:00Z");

class ServiceOutlooks : public ::testing::Test {
 protected:
  ServiceOutlooks() {
    service.metadata.ns = "shop";
    service.metadata.name = "web";
    service.metadata.uid = "service-uid";
    service.type = "ClusterIP";
    service.cluster_ip = "10.96.0.7";
    service.ip_families = {"IPv4"};
    service.selector = {{"app", "web"}, {"tier", "front"}};
    service.ports = {{.name = "http", .protocol = "TCP", .port = 80, .target_port = "web", .app_protocol = {}}};
  }

  std::shared_ptr<api::Pod> add_pod(bool ready = true) {
    auto pod = std::make_shared<api::Pod>();
    const auto number = static_cast<int>(pods.size());
    pod->metadata.ns = "shop";
    pod->metadata.name = "web-" + std::to_string(number);
    pod->metadata.uid = pod->metadata.name + "-uid";
    pod->metadata.labels = {{"app", "web"}, {"tier", "front"}, {"pod-template-hash", "1"}};
    pod->spec.node_name = "n1";
    pod->status.phase = "Running";
    pod->status.pod_ip = "10.0." + std::to_string(number / 250) + "." + std::to_string(number % 250 + 1);
    pod->status.conditions = {{.type = "Ready",
                               .status = ready ? "True" : "False",
                               .reason = "ContainersNotReady",
                               .message = "containers with unready status: [main]"}};
    api::Container container;
    container.name = "main";
    container.ports = {{.name = "web", .container_port = 8080, .protocol = "TCP"}};
    pod->spec.containers = {container};
    pods.push_back(pod);
    return pod;
  }

  ServiceScene scene() const {
    return {service, external_name, std::vector<PodPtr>(pods.begin(), pods.end()), slices, nodes};
  }

  Outlook explain() const { return explain_service(scene(), kNow); }

  api::Service service;
  std::string external_name;
  std::vector<std::shared_ptr<api::Pod>> pods;
  std::optional<std::vector<SlicePtr>> slices = std::vector<SlicePtr>();
  std::optional<std::set<std::string>> nodes = std::set<std::string>{"n1"};
};

TEST_F(ServiceOutlooks, CountsThoseThatAnswer) {
  add_pod();
  add_pod(false);
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kServiceReady);
  EXPECT_EQ(fact_of(said, Code::kServiceReady, "ready"), "1");
  EXPECT_EQ(fact_of(said, Code::kServiceReady, "pods"), "2");
  EXPECT_EQ(rows_of(said, "pods"), (std::vector<std::string>{"web-1: not ready", "web-0: ready"}));
  EXPECT_EQ(cell_of(said, "pods", 0, "why"), "ContainersNotReady: containers with unready status: [main]");
  EXPECT_EQ(cell_of(said, "ports", 0, "pods"), "1");
}

TEST_F(ServiceOutlooks, NoPodIsReady) {
  add_pod(false);
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kServiceNoneReady);
  EXPECT_EQ(said.verdict, Verdict::kRefuses);
  EXPECT_EQ(fact_of(said, Code::kServiceNoneReady, "pod"), "web-0");
  service.publish_not_ready = true;
  EXPECT_EQ(first_code(explain()), Code::kServiceReady);
  EXPECT_TRUE(says(explain(), Code::kServiceNotReadyPublished));
}

TEST_F(ServiceOutlooks, NamesTheLabelThatDiffers) {
  add_pod()->metadata.labels["tier"] = "back";
  add_pod()->metadata.labels.erase("tier");
  add_pod()->metadata.labels = {{"app", "other"}, {"tier", "back"}};
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kServiceNoMatch);
  EXPECT_EQ(fact_of(said, Code::kServiceNoMatch, "selector"), "app=web,tier=front");
  EXPECT_EQ(fact_of(said, Code::kServiceLeftOut, "key"), "tier");
  EXPECT_EQ(fact_of(said, Code::kServiceLeftOut, "wanted"), "front");
  EXPECT_EQ(fact_of(said, Code::kServiceLeftOut, "pods"), "2");
  ASSERT_EQ(rows_of(said, "pods"), (std::vector<std::string>{"web-0: not selected", "web-1: not selected"}));
  EXPECT_EQ(cell_of(said, "pods", 0, "why"), "its label tier is back, not front");
  EXPECT_EQ(cell_of(said, "pods", 1, "why"), "it has no label tier");
}

TEST_F(ServiceOutlooks, WithOneLabelOthersAreNamedOnlyIfNoneIsSelected) {
  service.selector = {{"app", "web"}};
  add_pod()->metadata.labels = {{"app", "wbe"}};
  EXPECT_EQ(fact_of(explain(), Code::kServiceLeftOut, "key"), "app");
  add_pod();
  EXPECT_FALSE(says(explain(), Code::kServiceLeftOut));
}

TEST_F(ServiceOutlooks, APortThatPodsHaveNot) {
  service.ports.front().target_port = "metrics";
  add_pod();
  Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kServicePortMissing);
  EXPECT_EQ(fact_of(said, Code::kServicePortMissing, "target"), "metrics");
  EXPECT_EQ(fact_of(said, Code::kServicePortMissing, "port"), "80");
  EXPECT_EQ(cell_of(said, "pods", 0, "why"), "it has no port named metrics");
  service.ports.push_back({.name = "n", .protocol = "TCP", .port = 81, .target_port = 8080, .app_protocol = {}});
  said = explain();
  EXPECT_EQ(first_code(said), Code::kServiceReady);
  EXPECT_TRUE(says(said, Code::kServicePortMissing));
}

struct PlaceCase {
  std::string_view name;
  std::function<void(api::Pod&)> change;
  std::string_view state;
};

TEST_F(ServiceOutlooks, PlacesEachPodByTheRulesOfEndpoints) {
  const std::vector<PlaceCase> cases{
      {"ready", [](api::Pod&) {}, "ready"},
      {"no address", [](api::Pod& pod) { pod.status.pod_ip.clear(); }, "no address"},
      {"another family", [](api::Pod& pod) { pod.status.pod_ip = "fd00::1"; }, "left out"},
      {"node gone", [](api::Pod& pod) { pod.spec.node_name = "n9"; }, "left out"},
      {"ending", [](api::Pod& pod) { pod.metadata.deletion_timestamp = kNow; }, "ending"},
      {"ended", [](api::Pod& pod) { pod.status.phase = "Succeeded"; }, "ended"},
  };
  for (const PlaceCase& each : cases) {
    pods.clear();
    each.change(*add_pod());
    EXPECT_EQ(rows_of(explain(), "pods"), std::vector<std::string>{"web-0: " + std::string(each.state)}) << each.name;
  }
}

TEST_F(ServiceOutlooks, PodsOnTheirWayOutStillAnswer) {
  add_pod()->metadata.deletion_timestamp = kNow;
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kServiceDraining);
  EXPECT_EQ(fact_of(said, Code::kServiceDraining, "pods"), "1");
  pods.front()->status.conditions.front().status = "False";
  EXPECT_EQ(first_code(explain()), Code::kServiceNoneReady);
}

TEST_F(ServiceOutlooks, WhatIsNoServiceOfPods) {
  service.type = "ExternalName";
  external_name = "db.example.com";
  EXPECT_EQ(first_code(explain()), Code::kServiceExternalName);
  EXPECT_EQ(fact_of(explain(), Code::kServiceExternalName, "external_name"), "db.example.com");
  service.type = "ClusterIP";
  service.selector.clear();
  EXPECT_EQ(first_code(explain()), Code::kServiceNoSelector);
  EXPECT_EQ(explain().verdict, Verdict::kRefuses);  // there are no endpoints
}

TEST_F(ServiceOutlooks, AHeadlessOneIsAnsweredByDns) {
  service.cluster_ip = "None";
  add_pod();
  EXPECT_TRUE(says(explain(), Code::kServiceHeadless));
}

TEST_F(ServiceOutlooks, SlicesThatAreNotUpToDateAreReported) {
  add_pod();
  const auto ready_pods = std::vector<PodPtr>(pods.begin(), pods.end());
  const auto node = [](const std::string&) -> const api::Node* {
    static const api::Node kNode;
    return &kNode;
  };
  const endpoints::SlicePlan plan =
      endpoints::plan_slices({.service = service, .pods = ready_pods, .node = node, .slices = {}});
  slices->push_back(std::make_shared<const api::EndpointSlice>(plan.created.at(0)));
  Outlook said = explain();
  EXPECT_FALSE(says(said, Code::kServiceBehind));
  EXPECT_EQ(fact_of(said, Code::kServiceSlices, "endpoints"), "1");
  EXPECT_EQ(cell_of(said, "slices", 0, "ports"), "8080/TCP");
  add_pod();
  said = explain();
  EXPECT_EQ(fact_of(said, Code::kServiceBehind, "writes"), "1");
  auto foreign = std::make_shared<api::EndpointSlice>(plan.created.at(0));
  foreign->metadata.labels[std::string(endpoints::kManagedByLabel)] = "somebody";
  pods.pop_back();
  slices->push_back(foreign);
  EXPECT_FALSE(says(explain(), Code::kServiceBehind));
}

TEST_F(ServiceOutlooks, WhatCannotBeReadHidesNothingElse) {
  add_pod();
  ServiceScene blind = scene();
  blind.pods.reset();
  blind.nodes.reset();
  EXPECT_EQ(fact_of(explain_service(blind, kNow), Code::kNotRead, "what"), "pods");
  ServiceScene sliceless = scene();
  sliceless.slices.reset();
  EXPECT_EQ(first_code(explain_service(sliceless, kNow)), Code::kServiceReady);
  EXPECT_EQ(fact_of(explain_service(sliceless, kNow), Code::kNotRead, "what"), "endpoint slices");
}

TEST_F(ServiceOutlooks, NamesAFewOfManyTroublesFirst) {
  for (int i = 0; i < 5000; ++i) add_pod(i != 4999);
  const Outlook said = explain();
  EXPECT_EQ(find_part(said, "pods")->total, 5000);
  ASSERT_EQ(rows_of(said, "pods").size(), kRowsMax);
  EXPECT_EQ(rows_of(said, "pods")[0], "web-4999: not ready");
  EXPECT_EQ(fact_of(said, Code::kServiceReady, "ready"), "4999");
}

}  // namespace
}  // namespace spillway::outlook
