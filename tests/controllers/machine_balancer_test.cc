// Services of type LoadBalancer get the machine's address: with the real API server; listening ports are a set.
#include "controllers/endpoints/machine_balancer.h"

#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

const std::string kBalancedPath = "/api/v1/namespaces/default/services";

class Balancer : public ::testing::Test {
 protected:
  Balancer()
      : balancer({.addresses = {"127.0.0.1", "192.0.2.10", "2001:db8::10"},
                  .is_taken =
                      [this](const std::string& address, std::string_view protocol, std::int32_t port) {
                        return taken.contains(fmt::format("{}/{}/{}", address, protocol, port));
                      }},
                 Rng(7), telemetry::Log()) {}

  ~Balancer() override { cluster.stop(balancer); }

  void start() {
    cluster.run(balancer);
    cluster.advance(seconds(1));
  }

  void make(const std::string& name, int port, const std::string& more = {}) {
    cluster.create(kBalancedPath, api::parse_json(fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"type":)"
                                                              R"("LoadBalancer","ports":[{{"port":{}}}]{}}}}})",
                                                              name, port, more))
                                      .value());
    cluster.advance(seconds(1));
  }

  std::string address(const std::string& name) {
    const Json service = cluster.get(kBalancedPath + "/" + name);
    const Json* ingress = service.at({"status", "loadBalancer", "ingress"});
    if (ingress == nullptr || ingress->if_array() == nullptr || ingress->if_array()->empty()) return {};
    return std::string(ingress->if_array()->front().string_at({"ip"}));
  }

  std::set<std::string> taken;  // "ADDRESS/PROTOCOL/PORT"
  TestCluster cluster;
  MachineBalancer balancer;
};

TEST_F(Balancer, GivesAServiceTheAddressOfTheMachine) {
  make("early", 80);
  start();
  make("late", 81);
  EXPECT_EQ(address("early"), "192.0.2.10");
  EXPECT_EQ(address("late"), "192.0.2.10");
}

TEST_F(Balancer, IgnoresServicesOfOtherTypesAndClasses) {
  start();
  make("other", 80, R"(,"loadBalancerClass":"example.com/balancer")");
  cluster.create(kBalancedPath,
                 api::parse_json(R"({"metadata":{"name":"inner"},"spec":{"ports":[{"port":80}]}})").value());
  make("one", 80);
  EXPECT_EQ(address("other"), "");
  EXPECT_EQ(address("inner"), "");
  EXPECT_EQ(address("one"), "192.0.2.10");
}

TEST_F(Balancer, TakesNoPortFromAProgramOfTheMachine) {
  taken = {"192.0.2.10/TCP/22"};
  start();
  make("thief", 22);
  EXPECT_EQ(address("thief"), "");
  EXPECT_THAT(cluster.events_about("thief"), Contains(Key("SyncLoadBalancerFailed")));
  taken.clear();
  cluster.advance(minutes(2));
  EXPECT_EQ(address("thief"), "192.0.2.10");
}

TEST_F(Balancer, GivesAPortToTheOldestServiceAndThenToTheNext) {
  start();
  make("first", 80);
  make("second", 80);
  EXPECT_EQ(address("second"), "");
  EXPECT_THAT(cluster.events_about("second"), Contains(Key("SyncLoadBalancerFailed")));
  cluster.remove(kBalancedPath + "/first");
  cluster.advance(seconds(1));
  EXPECT_EQ(address("second"), "192.0.2.10");
}

TEST_F(Balancer, TakesTheAddressBackWhenAnOlderServiceMovesToThePort) {
  start();
  make("first", 80);
  make("second", 81);
  ASSERT_EQ(address("second"), "192.0.2.10");
  cluster.merge(kBalancedPath + "/first", api::parse_json(R"({"spec":{"ports":[{"port":81}]}})").value());
  cluster.advance(seconds(2));
  EXPECT_EQ(address("first"), "192.0.2.10");
  EXPECT_EQ(address("second"), "");
}

TEST_F(Balancer, AServiceThatIsNoneAnyMoreGivesUpItsPort) {
  start();
  make("first", 80);
  make("second", 80);
  cluster.merge(kBalancedPath + "/first", api::parse_json(R"({"spec":{"type":"ClusterIP"}})").value());
  cluster.advance(seconds(2));
  EXPECT_EQ(address("first"), "");
  EXPECT_EQ(address("second"), "192.0.2.10");
}

TEST_F(Balancer, RefusesAServiceWithTooManyPorts) {
  start();
  Json::Array ports;
  for (int port = 1; port <= 101; ++port) {
    ports.push_back(Json::object({{"name", fmt::format("p{}", port)}, {"port", port}}));
  }
  Json wide = api::parse_json(R"({"metadata":{"name":"wide"},"spec":{"type":"LoadBalancer"}})").value();
  wide["spec"]["ports"] = ports;
  cluster.create(kBalancedPath, wide);
  cluster.advance(seconds(1));
  EXPECT_EQ(address("wide"), "");
  make("narrow", 80);
  EXPECT_EQ(address("narrow"), "192.0.2.10") << "a Service without an address claims no port";
  ports.pop_back();
  wide["metadata"]["name"] = "just";
  wide["spec"]["ports"] = ports;
  cluster.remove(kBalancedPath + "/narrow");
  cluster.create(kBalancedPath, wide);
  cluster.advance(seconds(1));
  EXPECT_EQ(address("just"), "192.0.2.10");
}

}  // namespace
}  // namespace spillway::controllers
