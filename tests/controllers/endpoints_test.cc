// Endpoints and EndpointSlices of Services with the real API server: whatever is late, lost or refused on the way, each
// pod that is ready is behind its Service once.
#include "controllers/controller_set.h"
#include "controllers/metric_line.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kCore = "/api/v1/namespaces/default/";
const std::string kSlices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

Json parsed(const std::string& text) {
  return api::parse_json(text).value();
}

class ServiceEndpoints : public ::testing::Test {
 protected:
  ServiceEndpoints() : set(options, Rng(5), telemetry::Log(), metrics) { cluster.add_node("node"); }

  ~ServiceEndpoints() override { cluster.stop(set); }

  void start() {
    cluster.run(set);
    cluster.advance(seconds(2));
  }

  void create_service(const std::string& members = {}) {
    cluster.create(kCore + "services", parsed(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":
        {"selector":{"app":"web"},"ports":[{"port":80,"targetPort":8080}])" +
                                              members + "}}"));
  }

  void create_pod(int number) {
    const std::string name = fmt::format("web-{}", number);
    cluster.create(kCore + "pods", parsed(fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":
        {{"name":"{}","labels":{{"app":"web"}}}},"spec":{{"nodeName":"node","containers":[{{"name":"c","image":"i"}}]}}}})",
                                                      name)));
    cluster.merge(kCore + "pods/" + name + "/status", parsed(fmt::format(R"({{"status":{{"phase":"Running","podIP":
        "10.1.0.{0}","podIPs":[{{"ip":"10.1.0.{0}"}}],"conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                                                                         number + 1)));
  }

  void set_pod_ready(int number, bool ready) {
    cluster.merge(fmt::format("{}pods/web-{}/status", kCore, number),
                  parsed(fmt::format(R"({{"status":{{"conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
                                     ready ? "True" : "False")));
  }

  /// Ready endpoints, as often as they are listed.
  std::multiset<std::string> in_slices() {
    std::multiset<std::string> all;
    for (const Json& slice : cluster.list(kSlices)) {
      const Json* endpoints = slice.find("endpoints");
      if (endpoints == nullptr || endpoints->if_array() == nullptr) continue;
      for (const Json& endpoint : *endpoints->if_array()) {
        if (endpoint.at({"conditions", "ready"})->if_bool().value_or(false)) {
          all.emplace(endpoint.find("addresses")->if_array()->front().string_at({}));
        }
      }
    }
    return all;
  }

  std::multiset<std::string> in_endpoints() {
    std::multiset<std::string> all;
    const Json object = cluster.get(kCore + "endpoints/web");
    const Json* subsets = object.find("subsets");
    if (subsets == nullptr || subsets->if_array() == nullptr) return all;
    for (const Json& subset : *subsets->if_array()) {
      const Json* addresses = subset.find("addresses");
      if (addresses == nullptr) continue;
      for (const Json& address : *addresses->if_array()) all.emplace(address.string_at({"ip"}));
    }
    return all;
  }

  void expect_behind(const std::multiset<std::string>& addresses) {
    EXPECT_EQ(in_slices(), addresses);
    EXPECT_EQ(in_endpoints(), addresses);
  }

  std::ptrdiff_t sent(const std::string& begin) {
    return std::ranges::count_if(cluster.requests, [&](const std::string& each) { return each.starts_with(begin); });
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  ControllerSet set;
};

TEST_F(ServiceEndpoints, FollowThePods) {
  start();
  create_service();
  cluster.advance(seconds(1));
  expect_behind({});
  EXPECT_THAT(cluster.list(kSlices), SizeIs(1));
  create_pod(0);
  create_pod(1);
  cluster.advance(seconds(1));
  expect_behind({"10.1.0.1", "10.1.0.2"});
  set_pod_ready(0, false);
  cluster.advance(seconds(1));
  expect_behind({"10.1.0.2"});
  set_pod_ready(0, true);
  cluster.advance(seconds(1));
  expect_behind({"10.1.0.1", "10.1.0.2"});
  cluster.merge(kCore + "pods/web-1", parsed(R"({"metadata":{"labels":{"app":"other"}}})"));
  cluster.advance(seconds(1));
  expect_behind({"10.1.0.1"});
  cluster.merge(kCore + "services/web", parsed(R"({"spec":{"selector":{"app":"other"}}})"));
  cluster.advance(seconds(1));
  expect_behind({"10.1.0.2"});
}

TEST_F(ServiceEndpoints, AreWrittenOnceForOneChange) {
  start();
  create_service();
  create_pod(0);
  cluster.advance(seconds(5));
  cluster.requests.clear();
  cluster.merge(kCore + "pods/web-0", parsed(R"({"metadata":{"annotations":{"a":"b"}}})"));
  cluster.advance(seconds(5));
  EXPECT_EQ(sent("PUT " + kSlices), 0);
  set_pod_ready(0, false);
  cluster.advance(seconds(5));
  EXPECT_EQ(sent("PUT " + kSlices), 1);
  EXPECT_EQ(sent("PUT " + kCore + "endpoints"), 1);
}

TEST_F(ServiceEndpoints, WaitUntilTheirOwnWritesAreSeen) {
  start();
  cluster.delay_events("/endpointslices", seconds(4));
  cluster.delay_events("/endpoints", seconds(4));
  create_service();
  cluster.advance(milliseconds(500));
  for (int number = 0; number < 3; ++number) {
    create_pod(number);
    cluster.advance(milliseconds(500));
  }
  cluster.advance(seconds(20));
  expect_behind({"10.1.0.1", "10.1.0.2", "10.1.0.3"});
  EXPECT_EQ(sent("POST " + kSlices), 1);
  EXPECT_THAT(cluster.list(kSlices), SizeIs(1));
}

TEST_F(ServiceEndpoints, AreRightWhateverIsLost) {
  start();
  cluster.fail(api::Method::kPost, "/endpointslices", TestCluster::kLostAnswer, 2);
  cluster.fail(api::Method::kPost, "/endpoints", 500, 3);
  cluster.fail(api::Method::kPut, "/endpointslices", TestCluster::kLostAnswer, 1);
  cluster.fail(api::Method::kPut, "/endpoints", 409, 2);
  create_service();
  cluster.advance(seconds(30));
  for (int number = 0; number < 3; ++number) {
    create_pod(number);
    cluster.advance(seconds(5));
  }
  cluster.advance(minutes(2));
  expect_behind({"10.1.0.1", "10.1.0.2", "10.1.0.3"});
  EXPECT_THAT(cluster.list(kSlices), SizeIs(1));
}

TEST_F(ServiceEndpoints, AreRestoredAfterTheirDeletion) {
  start();
  create_service();
  create_pod(0);
  cluster.advance(seconds(2));
  const std::string slice(cluster.list(kSlices).front().string_at({"metadata", "name"}));
  cluster.remove(kSlices + "/" + slice);
  cluster.remove(kCore + "endpoints/web");
  cluster.advance(seconds(2));
  expect_behind({"10.1.0.1"});
}

TEST_F(ServiceEndpoints, OfOthersAreLeftAlone) {
  start();
  const Json own = parsed(R"({"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"mine"},"subsets":
      [{"addresses":[{"ip":"192.0.2.1"}],"ports":[{"port":80}]}]})");
  cluster.create(kCore + "endpoints", own);
  cluster.create(kSlices,
                 parsed(R"({"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"mine",
      "labels":{"kubernetes.io/service-name":"mine"}},"addressType":"IPv4","endpoints":[{"addresses":["192.0.2.1"]}]})"));
  cluster.create(kCore + "services", parsed(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"mine"},"spec":
      {"ports":[{"port":80}]}})"));
  cluster.advance(seconds(5));
  ASSERT_FALSE(cluster.get(kCore + "endpoints/mine").is_null());
  EXPECT_EQ(cluster.get(kCore + "endpoints/mine").find("subsets")->if_array()->size(), 1U);
  EXPECT_FALSE(cluster.get(kSlices + "/mine").is_null());
  EXPECT_THAT(cluster.list(kSlices), SizeIs(2)) << "theirs, and what mirrors their Endpoints";
}

TEST_F(ServiceEndpoints, DisappearWithTheirService) {
  start();
  create_service();
  create_pod(0);
  cluster.advance(seconds(2));
  cluster.remove(kCore + "services/web");
  cluster.advance(seconds(2));
  EXPECT_TRUE(cluster.get(kCore + "endpoints/web").is_null());
}

TEST_F(ServiceEndpoints, ThatOutlivedTheirServiceLeaveAtTheStart) {
  cluster.create(kCore + "endpoints", parsed(R"({"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"left"},
      "subsets":[{"addresses":[{"ip":"192.0.2.1"}],"ports":[{"port":80}]}]})"));
  cluster.create(kCore + "endpoints", parsed(R"({"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"lock",
      "annotations":{"control-plane.alpha.kubernetes.io/leader":"{}"}}})"));
  start();
  EXPECT_TRUE(cluster.get(kCore + "endpoints/left").is_null());
  EXPECT_FALSE(cluster.get(kCore + "endpoints/lock").is_null());
}

TEST_F(ServiceEndpoints, SayWhatWasRefused) {
  start();
  cluster.fail(api::Method::kPost, "/endpointslices", 403, 1);
  create_service();
  cluster.advance(seconds(5));
  EXPECT_THAT(cluster.events_about("web"), Contains(::testing::Key("FailedToUpdateEndpointSlices")));
  EXPECT_THAT(cluster.list(kSlices), SizeIs(1));
}

TEST_F(ServiceEndpoints, SyncsAndChangesAreCounted) {
  const auto syncs = [this](std::string_view result) {
    return metric_line(metrics, "endpoint_slice_controller_syncs", fmt::format("result=\"{}\"", result));
  };
  const auto changes = [this](std::string_view operation) {
    return metric_line(metrics, "endpoint_slice_controller_changes", fmt::format("operation=\"{}\"", operation));
  };
  start();
  cluster.advance(seconds(30));
  const int before = std::stoi(syncs("success"));
  cluster.fail(api::Method::kPost, "/endpointslices", 403, 1);
  create_service();
  cluster.run_until_idle();
  EXPECT_EQ(syncs("error"), "1");
  EXPECT_EQ(changes("create"), "0");
  cluster.advance(seconds(5));
  EXPECT_GT(std::stoi(syncs("success")), before);
  EXPECT_EQ(changes("create"), "1");
  create_pod(1);
  cluster.advance(seconds(2));
  EXPECT_NE(changes("update"), "0");
  EXPECT_EQ(changes("delete"), "0");
  EXPECT_EQ(syncs("error"), "1");
}

/// Nodes of two zones, and pods on each.
class HintedEndpoints : public ServiceEndpoints {
 protected:
  HintedEndpoints() {
    cluster.remove("/api/v1/nodes/node");
    for (const std::string zone : {"a", "b"}) cluster.add_node("node-" + zone, {{"topology.kubernetes.io/zone", zone}});
    start();
  }

  void create_pod_on(const std::string& node, int number) {
    const std::string path = fmt::format("{}pods/web-{}", kCore, number);
    cluster.create(kCore + "pods", parsed(fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":
        {{"name":"web-{}","labels":{{"app":"web"}}}},"spec":{{"nodeName":"{}","containers":[{{"name":"c","image":"i"}}]}}}})",
                                                      number, node)));
    cluster.merge(path + "/status", parsed(fmt::format(R"({{"status":{{"phase":"Running","podIP":
        "10.1.0.{0}","podIPs":[{{"ip":"10.1.0.{0}"}}],"conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                                                       number + 1)));
  }

  /// "zone of the endpoint>zone of the hint", of all; "-": no hint.
  std::multiset<std::string> hints() {
    std::multiset<std::string> all;
    for (const Json& slice : cluster.list(kSlices)) {
      const Json* endpoints = slice.find("endpoints");
      if (endpoints == nullptr || endpoints->if_array() == nullptr) continue;
      for (const Json& endpoint : *endpoints->if_array()) {
        const Json* zones = endpoint.at({"hints", "forZones"});
        const std::string to = zones == nullptr ? "-" : std::string(zones->if_array()->front().string_at({"name"}));
        all.insert(std::string(endpoint.string_at({"zone"})) + ">" + to);
      }
    }
    return all;
  }

  std::multiset<std::string> events() {
    std::multiset<std::string> all;
    for (const Json& event : cluster.list(kCore + "events")) {
      if (!event.string_at({"reason"}).starts_with("TopologyAware")) continue;
      all.insert(fmt::format("{} {}", event.string_at({"reason"}), event.string_at({"message"})));
    }
    return all;
  }
};

using Hints = std::multiset<std::string>;

TEST_F(HintedEndpoints, NameTheirOwnZoneWhenTheServiceAsksForThat) {
  create_service(R"(,"trafficDistribution":"PreferClose")");
  create_pod_on("node-a", 0);
  create_pod_on("node-b", 1);
  cluster.advance(seconds(2));
  EXPECT_EQ(hints(), (Hints{"a>a", "b>b"}));
  cluster.merge(kCore + "services/web", parsed(R"({"spec":{"trafficDistribution":null}})"));
  cluster.advance(seconds(2));
  EXPECT_EQ(hints(), (Hints{"a>-", "b>-"}));
}

TEST_F(HintedEndpoints, AreSharedOutByTheNodesOfEachZone) {
  create_service();
  for (int i = 0; i < 3; ++i) create_pod_on("node-a", i);
  create_pod_on("node-b", 3);
  cluster.advance(seconds(2));
  EXPECT_EQ(hints(), (Hints{"a>-", "a>-", "a>-", "b>-"}));
  cluster.merge(kCore + "services/web",
                parsed(R"({"metadata":{"annotations":{"service.kubernetes.io/topology-mode":"Auto"}}})"));
  cluster.advance(seconds(2));
  EXPECT_EQ(hints(), (Hints{"a>a", "a>a", "a>b", "b>b"}));
  EXPECT_EQ(events(), (Hints{"TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4"}));
  // A node joins zone b, whose part is two thirds then: it needs three of the four, which is more than there are.
  cluster.add_node("node-b2", {{"topology.kubernetes.io/zone", "b"}});
  cluster.advance(seconds(12));
  EXPECT_THAT(events(), Contains(::testing::HasSubstr("TopologyAwareHintsDisabled Unable to allocate minimum")));
  EXPECT_EQ(hints(), (Hints{"a>-", "a>-", "a>-", "b>-"}));
}

TEST_F(HintedEndpoints, LoseThemWithTheAnnotation) {
  create_service();
  cluster.merge(kCore + "services/web",
                parsed(R"({"metadata":{"annotations":{"service.kubernetes.io/topology-mode":"Auto"}}})"));
  create_pod_on("node-a", 0);
  create_pod_on("node-b", 1);
  cluster.advance(seconds(2));
  EXPECT_EQ(hints(), (Hints{"a>a", "b>b"}));
  cluster.merge(kCore + "services/web", parsed(R"({"metadata":{"annotations":null}})"));
  cluster.advance(seconds(2));
  EXPECT_EQ(hints(), (Hints{"a>-", "b>-"}));
  EXPECT_THAT(events(),
              Contains("TopologyAwareHintsDisabled Topology Aware Hints has been disabled, addressType: IPv4"));
}

TEST_F(ServiceEndpoints, WaitForTheNodeOfAPod) {
  start();
  create_service();
  cluster.create(kCore + "pods", parsed(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"early","labels":
      {"app":"web"}},"spec":{"nodeName":"late","containers":[{"name":"c","image":"i"}]}})"));
  cluster.merge(kCore + "pods/early/status", parsed(R"({"status":{"phase":"Running","podIP":"10.1.0.9","podIPs":
      [{"ip":"10.1.0.9"}],"conditions":[{"type":"Ready","status":"True"}]}})"));
  cluster.advance(seconds(2));
  EXPECT_THAT(in_slices(), IsEmpty());
  EXPECT_EQ(in_endpoints(), std::multiset<std::string>{"10.1.0.9"});
  cluster.add_node("late");
  cluster.advance(seconds(2));
  EXPECT_EQ(in_slices(), std::multiset<std::string>{"10.1.0.9"});
}

/// Endpoints that a user writes for a Service without a selector.
class MirroredEndpoints : public ServiceEndpoints {
 protected:
  void create_bare_service() {
    cluster.create(kCore + "services", parsed(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":
        {"ports":[{"port":80}]}})"));
  }

  void write_endpoints(const std::string& ip, const std::string& labels = "{}") {
    cluster.create(kCore + "endpoints",
                   parsed(R"({"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"web","labels":)" + labels +
                          R"(},"subsets":[{"addresses":[{"ip":")" + ip + R"("}],"ports":[{"port":80}]}]})"));
  }
};

TEST_F(MirroredEndpoints, AreInSlices) {
  start();
  create_bare_service();
  write_endpoints("192.0.2.8");
  cluster.advance(seconds(1));
  expect_behind({"192.0.2.8"});
  cluster.merge(
      kCore + "endpoints/web",
      parsed(R"({"subsets":[{"addresses":[{"ip":"192.0.2.9"},{"ip":"192.0.2.10"}],"ports":[{"port":80}]}]})"));
  cluster.advance(seconds(1));
  expect_behind({"192.0.2.10", "192.0.2.9"});
  EXPECT_EQ(sent("POST /apis/discovery.k8s.io"), 1) << "the slice is changed where it stands";
  cluster.merge(kCore + "services/web", parsed(R"({"spec":{"selector":{"app":"web"}}})"));
  cluster.advance(seconds(1));
  EXPECT_EQ(in_slices(), std::multiset<std::string>{}) << "its pods are behind it now";
}

TEST_F(MirroredEndpoints, GoWithTheirServiceAndWithTheEndpoints) {
  start();
  write_endpoints("192.0.2.8");
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.list(kSlices), IsEmpty()) << "there is no Service yet";
  create_bare_service();
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.list(kSlices), SizeIs(1));
  cluster.remove(kCore + "endpoints/web");
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.list(kSlices), IsEmpty());
  write_endpoints("192.0.2.8");
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.list(kSlices), SizeIs(1));
  cluster.remove(kCore + "services/web");
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.list(kSlices), IsEmpty());
}

TEST_F(MirroredEndpoints, SlicesThatNameNoServiceStay) {
  start();
  for (const char* name : {"", R"(,"kubernetes.io/service-name":"")"}) {
    cluster.create(
        kSlices,
        parsed(std::string(R"({"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",
        "metadata":{"name":"own)") +
               (*name == '\0' ? "" : "-empty") +
               R"(","labels":{"endpointslice.kubernetes.io/managed-by":"endpointslicemirroring-controller.k8s.io")" +
               name + R"(}},"addressType":"IPv4","endpoints":[]})"));
  }
  cluster.advance(seconds(5));
  EXPECT_THAT(cluster.list(kSlices), SizeIs(2));
}

TEST_F(MirroredEndpoints, AreLeftAloneWhereTheySaySo) {
  start();
  create_bare_service();
  write_endpoints("192.0.2.8", R"({"endpointslice.kubernetes.io/skip-mirror":"true"})");
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.list(kSlices), IsEmpty());
}

}  // namespace
}  // namespace spillway::controllers
