// Goal: each address of a Service is an IPAddress soon after, and none without a Service remains; the ServiceCIDR
// `kubernetes` is there; addresses that other programs hold are not given to Services. The rules of both kinds.
#include "apiserver/collect/service_addresses.h"

#include "apiserver/kinds/kind_rows.h"
#include "apiserver/server_fixture.h"
#include "apiserver/write/committer.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {
namespace {

using api::Json;
using Lines = std::vector<std::string>;

const std::string kAddressPath = "/apis/networking.k8s.io/v1/ipaddresses";
const std::string kRangePath = "/apis/networking.k8s.io/v1/servicecidrs";
const std::string kServicePath = "/api/v1/namespaces/default/services";

void begin_serving(TestServer& server) {
  server.server().announce(6443, {parse_serving_address("10.0.0.1:6443").value()}, server.now());
  server.run_until_idle();
}

Answer make_service(TestServer& server, const std::string& name, const std::string& more = {}) {
  Answer made = server.post(
      kServicePath, fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"ports":[{{"port":80}}]{}}}}})", name, more));
  server.run_until_idle();
  return made;
}

std::string address_document(const std::string& name, const std::string& parent) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"parentRef":{}}}}})", name, parent);
}

/// The rows of `kubectl get ipaddresses`, without the ages.
Lines rows(TestServer& server, const std::string& path) {
  const Answer table = server.get(path, "application/json;as=Table;v=v1;g=meta.k8s.io");
  Lines lines;
  const Json* found = table.body.find("rows");
  if (found == nullptr || found->if_array() == nullptr) return lines;
  for (const Json& row : *found->if_array()) {
    const Json::Array& cells = *row.find("cells")->if_array();
    lines.push_back(fmt::format("{} {}", cells[0].string_at({}), cells[1].string_at({})));
  }
  return lines;
}

std::string message_of(const Answer& answer) {
  return answer.string_at({"message"});
}

constexpr const char* kGateway =
    R"({"group":"gateway.networking.k8s.io","resource":"gateways","namespace":"default","name":"g"})";

TEST(AddressObjects, AreNotKeptBeforeClientsCanReachTheServer) {
  TestServer server;
  ASSERT_EQ(make_service(server, "web").code, 201);
  EXPECT_EQ(rows(server, kAddressPath), Lines{});
  EXPECT_EQ(rows(server, kRangePath), Lines{});
  begin_serving(server);
  EXPECT_EQ(rows(server, kAddressPath).size(), 2U) << "that of the Service kubernetes as well";
}

TEST(AddressObjects, FollowTheServices) {
  TestServer server;
  begin_serving(server);
  EXPECT_EQ(rows(server, kAddressPath), Lines{"10.96.0.1 services/default/kubernetes"});
  ASSERT_EQ(make_service(server, "web", R"(,"clusterIP":"10.96.7.7")").code, 201);
  EXPECT_EQ(rows(server, kAddressPath),
            (Lines{"10.96.0.1 services/default/kubernetes", "10.96.7.7 services/default/web"}));
  const Answer object = server.get(kAddressPath + "/10.96.7.7");
  EXPECT_EQ(
      api::to_text(*object.body.at({"metadata", "labels"})),
      R"({"ipaddress.kubernetes.io/ip-family":"IPv4","ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"})");
  EXPECT_EQ(api::to_text(*object.body.find("spec")),
            R"({"parentRef":{"name":"web","namespace":"default","resource":"services"}})");
  ASSERT_EQ(server.remove(kServicePath + "/web").code, 200);
  server.run_until_idle();
  EXPECT_EQ(rows(server, kAddressPath), Lines{"10.96.0.1 services/default/kubernetes"});
}

TEST(AddressObjects, OfServicesWithoutOneThereIsNone) {
  TestServer server;
  begin_serving(server);
  ASSERT_EQ(make_service(server, "headless", R"(,"clusterIP":"None")").code, 201);
  ASSERT_EQ(make_service(server, "named", R"(,"type":"ExternalName","externalName":"a.example.com")").code, 201);
  EXPECT_EQ(rows(server, kAddressPath), Lines{"10.96.0.1 services/default/kubernetes"});
  ASSERT_EQ(make_service(server, "web", R"(,"clusterIP":"10.96.7.7")").code, 201);
  ASSERT_EQ(
      server
          .merge(kServicePath + "/web",
                 R"({"spec":{"type":"ExternalName","externalName":"b.example.com","clusterIP":"","clusterIPs":null}})")
          .code,
      200);
  server.run_until_idle();
  EXPECT_EQ(rows(server, kAddressPath), Lines{"10.96.0.1 services/default/kubernetes"}) << "it gave its address back";
}

TEST(AddressObjects, ThatAClientDeletesAreRestored) {
  TestServer server;
  begin_serving(server);
  ASSERT_EQ(server.remove(kAddressPath + "/10.96.0.1").code, 200);
  server.run_until_idle();
  EXPECT_EQ(rows(server, kAddressPath), Lines{"10.96.0.1 services/default/kubernetes"});
}

TEST(AddressObjects, AreComparedAfterARestart) {
  TestServer server;
  begin_serving(server);
  ASSERT_EQ(make_service(server, "old", R"(,"clusterIP":"10.96.7.7")").code, 201);
  server.restart();
  ASSERT_EQ(server.remove(kServicePath + "/old").code, 200);
  ASSERT_EQ(make_service(server, "new", R"(,"clusterIP":"10.96.7.7")").code, 201) << "its own object does not hold it";
  EXPECT_EQ(rows(server, kAddressPath).back(), "10.96.7.7 services/default/old") << "nothing is written yet";
  begin_serving(server);
  EXPECT_EQ(rows(server, kAddressPath).back(), "10.96.7.7 services/default/new");
}

TEST(AddressObjects, ThatOthersHoldAreNotGivenToServices) {
  TestServer server;
  begin_serving(server);
  ASSERT_EQ(server.post(kAddressPath, address_document("10.96.7.7", kGateway)).code, 201);
  server.run_until_idle();
  EXPECT_EQ(message_of(make_service(server, "web", R"(,"clusterIP":"10.96.7.7")")),
            "Service \"web\" is invalid: spec.clusterIPs: Invalid value: [\"10.96.7.7\"]: failed to allocate IP "
            "10.96.7.7: provided IP is already allocated");
  EXPECT_EQ(rows(server, kAddressPath).back(), "10.96.7.7 gateways.gateway.networking.k8s.io/default/g") << "it stays";
  ASSERT_EQ(server.remove(kAddressPath + "/10.96.7.7").code, 200);
  EXPECT_EQ(make_service(server, "web", R"(,"clusterIP":"10.96.7.7")").code, 201);
}

TEST(AddressObjects, MadeInTheNameOfTheServerWithoutAServiceGo) {
  TestServer server;
  begin_serving(server);
  const std::string forged =
      R"({"metadata":{"name":"10.96.7.7","labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},)"
      R"("spec":{"parentRef":{"resource":"services","namespace":"default","name":"none"}}})";
  ASSERT_EQ(server.post(kAddressPath, forged).code, 201);
  server.run_until_idle();
  EXPECT_EQ(server.get(kAddressPath + "/10.96.7.7").code, 404);
}

/// The collector over a cache that gets objects directly. Its writes never end.
class ManyAddresses : public ::testing::Test, private WatchCache::Listener {
 protected:
  static constexpr std::size_t kMany = 2'000;

  static std::string address_of(std::size_t i) { return fmt::format("10.96.{}.{}", 1 + i / 250, 1 + i % 250); }

  void deliver(std::string_view resource, std::string_view key, std::string text) {
    store::Change change;
    change.key = fmt::format("{}{}", registry.get(resource).storage, key);
    change.revision = change.create_revision = store::Revision(++revision);
    change.value = text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text));
    cache.origins().front()->on_changes({change});
  }

  void deliver_service(std::size_t i) {
    deliver("services", fmt::format("default/s{}", i),
            fmt::format(R"({{"apiVersion":"v1","kind":"Service","metadata":{{"name":"s{}","namespace":"default",
             "uid":"s{}"}},"spec":{{"clusterIP":"{}","clusterIPs":["{}"]}}}})",
                        i, i, address_of(i), address_of(i)));
  }

  void deliver_address(std::size_t i) {
    deliver(
        "ipaddresses.networking.k8s.io", address_of(i),
        fmt::format(R"({{"apiVersion":"networking.k8s.io/v1","kind":"IPAddress","metadata":{{"name":"{}","uid":"a{}",
             "labels":{{"ipaddress.kubernetes.io/ip-family":"IPv4",
             "ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}}}},"spec":{{"parentRef":{{"resource":"services",
             "namespace":"default","name":"s{}"}}}}}})",
                    address_of(i), i, i));
  }

  void begin() {
    static_cast<Collector&>(collector).begin();
    collector.announce();
  }

  /// One turn of the loop: the due timers, with all calls of the collector that a turn may bring. Returns its steps.
  std::size_t turn() {
    const std::size_t before = collector.steps();
    for (int i = 0; i < 5; ++i) static_cast<Collector&>(collector).run();
    timers.run_due(core.now.mono);
    return collector.steps() - before;
  }

  bool is_idle() const { return !timers.next() || *timers.next() > core.now.mono; }

  // WatchCache::Listener
  void on_cache_event(ResourceCache& of, const EventPtr& event) override {
    static_cast<Collector&>(collector).see(of, event);
  }

  void on_cache_progress() override {}

  void on_cache_lost(Origin& /*origin*/, const Error& error) override { ADD_FAILURE() << error.text(); }

  std::uint64_t revision = 1;
  std::deque<std::move_only_function<void()>> tasks;  // calls of the store, which nothing answers
  ResourceRegistry registry{kinds::kind_rows()};
  store::MemoryStore store{[this](std::move_only_function<void()> task) { tasks.push_back(std::move(task)); }};
  WatchCache cache{registry, *this, store};
  TimerQueue timers;
  Core core{registry, store, cache, timers, telemetry::Log(), Rng(1)};
  Committer committer{core};
  Writer writer{core, committer};
  Remover remover{core, committer};
  ServiceAddresses collector{core, writer, remover};
};

TEST_F(ManyAddresses, AreReadAndComparedInSlices) {
  for (std::size_t i = 0; i < kMany; ++i) {
    deliver_service(i);
    deliver_address(i);
  }
  begin();
  EXPECT_EQ(collector.steps(), 0U) << "not in the turn that begins it";
  std::size_t most = 0;
  do most = std::max(most, turn());
  while (!is_idle());
  EXPECT_LE(most, kSliceCost / kVisitCost + 1);
  EXPECT_EQ(collector.steps(), 3 * kMany) << "each Service read, each address found and compared";
  EXPECT_EQ(collector.writing(), 0U);
}

TEST_F(ManyAddresses, AreWrittenAFewInEachTurn) {
  for (std::size_t i = 0; i < 100; ++i) deliver_service(i);
  begin();
  std::size_t most = 0;
  std::size_t turns = 0;
  for (std::size_t before = 0; !is_idle(); before = collector.writing(), ++turns) {
    turn();
    most = std::max(most, collector.writing() - before);
  }
  EXPECT_EQ(collector.writing(), 100U);
  EXPECT_LE(most, ServiceAddresses::kSliceWrites);
  EXPECT_GE(turns, 100 / ServiceAddresses::kSliceWrites);
}

/// Changes between the slices are not undone by them.
TEST_F(ManyAddresses, FollowChangesBetweenTheSlices) {
  for (std::size_t i = 0; i < kMany; ++i) {
    deliver_service(i);
    deliver_address(i);
  }
  begin();
  turn();
  ASSERT_FALSE(is_idle());
  deliver("services", fmt::format("default/s{}", kMany - 1), "");
  deliver("services", "default/s0", "");
  deliver_address(999);  // the address of a Service that has not been read yet
  while (!is_idle()) turn();
  EXPECT_EQ(collector.writing(), 2U) << "the addresses of the two, of which one had been read, are removed";
}

TEST(ServiceRanges, TheOneOfTheClusterIsReadyAndRestored) {
  TestServer server;
  begin_serving(server);
  const auto check = [&server] {
    EXPECT_EQ(rows(server, kRangePath), Lines{"kubernetes 10.96.0.0/16"});
    const Answer range = server.get(kRangePath + "/kubernetes");
    const Json* conditions = range.body.at({"status", "conditions"});
    ASSERT_NE(conditions, nullptr) << range.text;
    ASSERT_EQ(conditions->if_array()->size(), 1U);
    const Json& ready = conditions->if_array()->front();
    EXPECT_EQ(ready.string_at({"type"}), "Ready");
    EXPECT_EQ(ready.string_at({"status"}), "True");
    EXPECT_EQ(ready.string_at({"reason"}), "");
    EXPECT_EQ(ready.string_at({"message"}), "Kubernetes default Service CIDR is ready");
  };
  check();
  ASSERT_EQ(server.remove(kRangePath + "/kubernetes").code, 200);
  server.run_until_idle();
  check();
  ASSERT_EQ(server.merge(kRangePath + "/kubernetes/status", R"({"status":{"conditions":[]}})").code, 200);
  server.run_until_idle();
  check();
}

TEST(ServiceRanges, OfAnotherRangeIsNotSaidToBeReady) {
  TestServer server;
  ASSERT_EQ(server.post(kRangePath, R"({"metadata":{"name":"kubernetes"},"spec":{"cidrs":["10.100.0.0/24"]}})").code,
            201);
  begin_serving(server);
  const Answer range = server.get(kRangePath + "/kubernetes");
  EXPECT_EQ(range.body.at({"status", "conditions"}), nullptr) << range.text;
}

TEST(ServiceRanges, AreValidated) {
  TestServer server;
  const auto why = [&](const std::string& ranges) {
    const std::string message = message_of(
        server.post(kRangePath, fmt::format(R"({{"metadata":{{"name":"r"}},"spec":{{"cidrs":{}}}}})", ranges)));
    const std::size_t begin = message.find("is invalid: ");
    return begin == std::string::npos ? message : message.substr(begin + 12);
  };
  EXPECT_EQ(why("[]"), "spec.cidrs: Required value: at least one CIDR required");
  EXPECT_NE(why(R"(["10.0.0.0/8","fd00::/64","10.1.0.0/16"])").find("may only hold up to 2 values"), std::string::npos);
  EXPECT_NE(why(R"(["10.0.0.0/8","10.1.0.0/16"])").find("may specify no more than one IP for each IP family"),
            std::string::npos);
  EXPECT_EQ(why(R"(["10.0.0.1/8"])"),
            "spec.cidrs[0]: Invalid value: \"10.0.0.1/8\": must not have bits set beyond the prefix length");
  EXPECT_EQ(why(R"(["FD00::/64"])"),
            "spec.cidrs[0]: Invalid value: \"FD00::/64\": must be in canonical form (\"fd00::/64\")");
  EXPECT_EQ(why(R"(["x"])"),
            "spec.cidrs[0]: Invalid value: \"x\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or "
            "2001:db8::/64)");
  const std::string single = R"({"metadata":{"name":"r"},"spec":{"cidrs":["10.0.0.0/8"]},"status":{"conditions":[]}})";
  const Answer made = server.post(kRangePath, single);
  ASSERT_EQ(made.code, 201) << made.text;
  const auto change = [&](const std::string& ranges) {
    return server.merge(kRangePath + "/r", fmt::format(R"({{"spec":{{"cidrs":{}}}}})", ranges));
  };
  EXPECT_EQ(message_of(change(R"(["11.0.0.0/8"])")),
            "ServiceCIDR.networking.k8s.io \"r\" is invalid: spec.cidrs[0]: Invalid value: \"11.0.0.0/8\": field is "
            "immutable");
  EXPECT_EQ(change(R"(["10.0.0.0/8","fd00::/64"])").code, 200) << "a second family may be added";
  EXPECT_EQ(change(R"(["10.0.0.0/8"])").code, 422) << "and stays";
}

TEST(IpAddresses, AreValidated) {
  TestServer server;
  const auto why = [&](const std::string& name, const std::string& parent) {
    const std::string message = message_of(server.post(kAddressPath, address_document(name, parent)));
    const std::size_t begin = message.find("is invalid: ");
    return begin == std::string::npos ? message : message.substr(begin + 12);
  };
  EXPECT_EQ(why("web", kGateway),
            "metadata.name: Invalid value: \"web\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
  EXPECT_EQ(why("010.0.0.1", kGateway), "metadata.name: Invalid value: \"010.0.0.1\": must not have leading 0s");
  EXPECT_EQ(why("FD00::1", kGateway),
            "metadata.name: Invalid value: \"FD00::1\": must be in canonical form (\"fd00::1\")");
  EXPECT_EQ(why("::ffff:10.0.0.1", kGateway),
            "metadata.name: Invalid value: \"::ffff:10.0.0.1\": must not be an IPv4-mapped IPv6 address");
  EXPECT_EQ(why("10.0.0.1", "null"), "spec.parentRef: Required value");
  EXPECT_EQ(why("10.0.0.1", R"({"resource":"services"})"), "spec.parentRef.name: Required value");
  EXPECT_EQ(why("10.0.0.1", R"({"name":"x"})"), "spec.parentRef.resource: Required value");
  EXPECT_NE(why("10.0.0.1", R"({"group":"A_","resource":"r","name":"x"})").find("spec.parentRef.group: Invalid value"),
            std::string::npos);
  EXPECT_EQ(why("10.0.0.1", R"({"resource":"r","name":"a/b"})"),
            "spec.parentRef.name: Invalid value: \"a/b\": may not contain '/'");
  ASSERT_EQ(server.post(kAddressPath, address_document("fd00::1", R"({"resource":"nodes","name":"n"})")).code, 201);
  EXPECT_EQ(rows(server, kAddressPath), Lines{"fd00::1 nodes/n"});
  EXPECT_EQ(message_of(server.merge(kAddressPath + "/fd00::1", R"({"spec":{"parentRef":{"name":"m"}}})")),
            "IPAddress.networking.k8s.io \"fd00::1\" is invalid: spec.parentRef: Invalid value: "
            "{\"name\":\"m\",\"resource\":\"nodes\"}: field is immutable");
  EXPECT_EQ(server.merge(kAddressPath + "/fd00::1", R"({"metadata":{"labels":{"a":"b"}}})").code, 200);
}

}  // namespace
}  // namespace spillway::apiserver
