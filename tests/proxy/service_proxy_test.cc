// Goal: the proxy of a node loads the rules of Services and EndpointSlices: none before both are known, simultaneous
// changes as one, one at a time, all anew after a failure. With the real API server.
#include "proxy/service_proxy.h"

#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::proxy {
namespace {

using api::Json;

const std::string kServices = "/api/v1/namespaces/default/services";
const std::string kSlices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

Json parsed(const std::string& text) {
  return api::parse_json(text).value();
}

class Proxy : public ::testing::Test {
 protected:
  Proxy() { cluster.add_node("node"); }

  ~Proxy() override { cluster.stop(engine); }

  static ServiceProxy::Options options() {
    ServiceProxy::Options options;
    options.settings.node_name = "node";
    options.settings.families = {network::Family::kIPv4};
    return options;
  }

  void start() {
    cluster.run(engine);
    run_until_idle();
  }

  void run_until_idle(Duration by = milliseconds(100)) {
    cluster.advance(by);
    for (ProxyCommand& command : engine.take_proxy_commands()) commands.push_back(std::move(command));
  }

  /// The next change to load; there must be one.
  LoadRules next_load() {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      if (LoadRules* load = std::get_if<LoadRules>(&commands[i])) {
        LoadRules out = std::move(*load);
        commands.erase(commands.begin() + static_cast<std::ptrdiff_t>(i));
        return out;
      }
    }
    ADD_FAILURE() << "nothing is to be loaded";
    return {};
  }

  template <typename Command>
  std::optional<Command> take() {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      if (Command* found = std::get_if<Command>(&commands[i])) {
        Command out = std::move(*found);
        commands.erase(commands.begin() + static_cast<std::ptrdiff_t>(i));
        return out;
      }
    }
    return std::nullopt;
  }

  bool loads() {
    return std::ranges::any_of(commands,
                               [](const ProxyCommand& each) { return std::holds_alternative<LoadRules>(each); });
  }

  void answer(const LoadRules& load, Outcome outcome = {}) {
    engine.on_loaded(load.id, outcome, cluster.now());
    run_until_idle(Duration::zero());
  }

  /// Past the least time between two loads.
  void load_next() {
    run_until_idle(seconds(3));
    answer(next_load());
  }

  void create_service(const std::string& name, const std::string& ip, const std::string& spec = "",
                      const std::string& protocol = "TCP") {
    cluster.create(kServices, parsed(fmt::format(R"({{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{}"}},
        "spec":{{"clusterIP":"{}","ports":[{{"name":"main","port":80,"protocol":"{}"}}]{}}}}})",
                                                 name, ip, protocol, spec)));
  }

  void create_slice(const std::string& service, const std::string& address, const std::string& protocol = "TCP") {
    cluster.create(kSlices, parsed(fmt::format(R"({{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",
        "metadata":{{"name":"{0}","labels":{{"kubernetes.io/service-name":"{0}"}}}},"addressType":"IPv4",
        "ports":[{{"name":"main","port":8080,"protocol":"{2}"}}],
        "endpoints":[{{"addresses":["{1}"],"nodeName":"node"}}]}})",
                                               service, address, protocol)));
  }

  static bool adds(const LoadRules& load, std::string_view container, const std::string& key) {
    return std::ranges::any_of(
        load.changes, [&](const network::RuleChange& change) { return change.added.contains({container, key}); });
  }

  static bool removes(const LoadRules& load, std::string_view container, const std::string& key) {
    return std::ranges::any_of(
        load.changes, [&](const network::RuleChange& change) { return change.removed.contains({container, key}); });
  }

  controllers::TestCluster cluster;
  telemetry::Registry metrics;
  ServiceProxy engine{options(), Rng(7), telemetry::Log(), metrics};
  std::deque<ProxyCommand> commands;
};

TEST_F(Proxy, TheFirstLoadIsTheWholeOnceServicesAndSlicesAreKnown) {
  create_service("web", "10.96.0.10");
  create_slice("web", "10.1.0.5");
  cluster.delay_answers(api::Method::kGet, "endpointslices", seconds(5));
  start();
  EXPECT_FALSE(loads()) << "an early write would take down addresses that work";
  EXPECT_FALSE(engine.is_healthy(cluster.now().mono));
  run_until_idle(seconds(6));
  const LoadRules load = next_load();
  ASSERT_EQ(load.changes.size(), 1U);
  EXPECT_TRUE(load.changes[0].whole);
  EXPECT_TRUE(adds(load, network::kServices, "10.96.0.10 . tcp . 80"));
  EXPECT_TRUE(adds(load, network::kEndpoints, "10.96.0.10 . tcp . 80 . 0"));
  answer(load);
  EXPECT_TRUE(engine.is_healthy(cluster.now().mono));
  EXPECT_TRUE(engine.is_node_eligible());
}

TEST_F(Proxy, ChangesDuringALoadAreLoadedTogether) {
  start();
  const LoadRules first = next_load();
  create_service("a", "10.96.0.11");
  create_slice("a", "10.1.0.5");
  create_service("b", "10.96.0.12");
  create_slice("b", "10.1.0.6");
  run_until_idle(seconds(5));
  EXPECT_FALSE(loads()) << "one is under way";
  answer(first);
  run_until_idle();
  const LoadRules second = next_load();
  EXPECT_FALSE(loads());
  EXPECT_FALSE(second.changes[0].whole);
  EXPECT_TRUE(adds(second, network::kServices, "10.96.0.11 . tcp . 80"));
  EXPECT_TRUE(adds(second, network::kServices, "10.96.0.12 . tcp . 80"));
  EXPECT_FALSE(adds(second, network::kServices, "10.96.0.1 . tcp . 443")) << "it was loaded before";
}

TEST_F(Proxy, AnUpdateThatChangesNoRuleLoadsNothing) {
  create_service("web", "10.96.0.10");
  start();
  answer(next_load());
  run_until_idle(seconds(3));
  cluster.merge(kServices + "/web", parsed(R"({"metadata":{"annotations":{"note":"x"}}})"));
  run_until_idle(seconds(3));
  EXPECT_FALSE(loads());
  EXPECT_TRUE(engine.is_healthy(cluster.now().mono));
}

TEST_F(Proxy, AfterAFailureAllIsWrittenAnewAfterAWaitThatGrows) {
  create_service("web", "10.96.0.10");
  start();
  for (const Duration wait : {seconds(1), seconds(2), seconds(4), seconds(8), seconds(16), seconds(30), seconds(30)}) {
    const LoadRules load = next_load();
    EXPECT_TRUE(load.changes.at(0).whole);
    EXPECT_TRUE(adds(load, network::kNoEndpoints, "10.96.0.10 . tcp . 80"));
    answer(load, make_error(ErrorCode::kInternalError, "no room"));
    run_until_idle(wait - milliseconds(500));
    EXPECT_FALSE(loads()) << wait / seconds(1);
    run_until_idle(seconds(1));
  }
  answer(next_load());
  create_service("next", "10.96.0.11");
  run_until_idle(seconds(3));
  EXPECT_FALSE(next_load().changes.at(0).whole);
}

TEST_F(Proxy, AnAnswerToAnEarlierLoadIsIgnored) {
  start();
  const LoadRules load = next_load();
  engine.on_loaded(load.id + 7, Outcome(make_error(ErrorCode::kInternalError, "not mine")), cluster.now());
  answer(load);
  run_until_idle(seconds(40));
  EXPECT_FALSE(loads());
}

TEST_F(Proxy, AServiceThatAnotherProxyTakesOverIsGone) {
  create_service("web", "10.96.0.10");
  create_slice("web", "10.1.0.5");
  start();
  answer(next_load());
  cluster.merge(kServices + "/web",
                parsed(R"({"metadata":{"labels":{"service.kubernetes.io/service-proxy-name":"other"}}})"));
  run_until_idle(seconds(3));
  EXPECT_TRUE(removes(next_load(), network::kServices, "10.96.0.10 . tcp . 80"));
}

TEST_F(Proxy, FlowsAreCheckedOnlyAfterEndpointsOfUdpPortsChanged) {
  create_service("dns", "10.96.0.10", "", "UDP");
  create_service("web", "10.96.0.11");
  create_slice("dns", "10.1.0.5", "UDP");
  create_slice("web", "10.1.0.6");
  start();
  answer(next_load());
  const auto first = take<DeleteFlows>();
  ASSERT_TRUE(first) << "flows of the time before this process";
  const api::IpAddress address = *api::parse_ip("10.96.0.10");
  EXPECT_FALSE(first->check->is_stale({address, 80, *api::parse_ip("10.1.0.5")}));
  EXPECT_TRUE(first->check->is_stale({address, 80, *api::parse_ip("10.1.0.4")}));
  cluster.merge(kSlices + "/web", parsed(R"({"endpoints":[{"addresses":["10.1.0.7"]}]})"));
  load_next();
  EXPECT_FALSE(take<DeleteFlows>());
  cluster.merge(kSlices + "/dns", parsed(R"({"endpoints":[{"addresses":["10.1.0.8"]}]})"));
  run_until_idle(seconds(3));
  const LoadRules load = next_load();
  EXPECT_FALSE(take<DeleteFlows>()) << "the old rules would make the flows anew";
  answer(load);
  EXPECT_TRUE(take<DeleteFlows>());
}

TEST_F(Proxy, HealthChecksFollowTheLocalEndpoints) {
  create_service("lb", "10.96.0.10",
                 R"(,"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":30399)");
  create_slice("lb", "10.1.0.5");
  start();
  answer(next_load());
  EXPECT_EQ(take<ServeHealthChecks>()->ports, (std::vector<HealthCheckPort>{{30399, "default", "lb", 1}}));
  cluster.merge(kSlices + "/lb", parsed(R"({"endpoints":[{"addresses":["10.1.0.5"],"nodeName":"other"}]})"));
  load_next();
  EXPECT_EQ(take<ServeHealthChecks>()->ports, (std::vector<HealthCheckPort>{{30399, "default", "lb", 0}}));
  cluster.remove(kServices + "/lb");
  load_next();
  EXPECT_TRUE(take<ServeHealthChecks>()->ports.empty());
}

TEST_F(Proxy, AnotherZoneOfTheNodeRewritesAllRules) {
  create_service("web", "10.96.0.10");
  start();
  answer(next_load());
  cluster.merge("/api/v1/nodes/node", parsed(R"({"metadata":{"annotations":{"a":"b"}}})"));
  run_until_idle(seconds(3));
  EXPECT_FALSE(loads()) << "no rule depends on it";
  cluster.merge("/api/v1/nodes/node", parsed(R"({"metadata":{"labels":{"topology.kubernetes.io/zone":"z"}}})"));
  run_until_idle(seconds(3));
  const LoadRules load = next_load();
  EXPECT_TRUE(load.changes.at(0).whole);
  EXPECT_TRUE(adds(load, network::kNoEndpoints, "10.96.0.10 . tcp . 80"));
}

TEST_F(Proxy, ManyServicesAreWorkedThroughInSteps) {
  for (int i = 0; i < 450; ++i)
    create_service(fmt::format("s{}", i), fmt::format("10.96.{}.{}", 1 + i / 200, 1 + i % 200));
  start();
  const LoadRules load = next_load();
  EXPECT_TRUE(adds(load, network::kNoEndpoints, "10.96.3.50 . tcp . 80"));
  answer(load);
  EXPECT_FALSE(loads()) << "all came with the first";
}

TEST_F(Proxy, AListLongerThanAnyBeforeRewritesTheRulesOnce) {
  create_service("web", "10.96.0.10");
  create_slice("web", "10.1.0.5");
  start();
  answer(next_load());
  const auto grow = [this](int endpoints) {
    std::string list;
    for (int i = 0; i < endpoints; ++i) list += fmt::format(R"({}{{"addresses":["10.1.1.{}"]}})", i == 0 ? "" : ",", i);
    cluster.merge(kSlices + "/web", parsed("{\"endpoints\":[" + list + "]}"));
    run_until_idle(seconds(3));
    LoadRules load = next_load();
    answer(load);
    return load;
  };
  EXPECT_FALSE(grow(64).changes.at(0).whole);
  const LoadRules longer = grow(65);
  EXPECT_TRUE(longer.changes.at(0).whole);
  EXPECT_TRUE(longer.changes.at(0).chains.contains("cluster-65"));
  EXPECT_FALSE(grow(100).changes.at(0).whole) << "it has room now";
  EXPECT_FALSE(grow(3).changes.at(0).whole);
}

TEST_F(Proxy, RulesThatWaitTooLongAreUnhealthy) {
  start();
  answer(next_load());
  create_service("web", "10.96.0.10");
  run_until_idle(seconds(3));
  (void)next_load();  // never answered
  run_until_idle(seconds(50));
  EXPECT_TRUE(engine.is_healthy(cluster.now().mono));
  run_until_idle(seconds(20));
  EXPECT_FALSE(engine.is_healthy(cluster.now().mono));
}

}  // namespace
}  // namespace spillway::proxy
