// Rules that the rows of writes do not cover, because these are dry runs of one request: addresses and ports that are
// allocated, names that are generated, warnings.
#include "api/text/ip_address.h"
#include "apiserver/kinds/core/service_spec.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace spillway::apiserver {

namespace {

using api::Json;
using Controllers = ApiServer::Controllers;

constexpr const char* kServices = "/api/v1/namespaces/default/services";
constexpr const char* kDeployments = "/apis/apps/v1/namespaces/default/deployments";

std::vector<std::string> warnings_of(const Answer& answer) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : answer.headers) {
    if (name == "warning" || name == "Warning") texts.push_back(value);
  }
  return texts;
}

std::string deployment(const std::string& name) {
  return R"({"metadata":{"name":")" + name +
         R"("},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},)"
         R"("spec":{"containers":[{"name":"c","image":"i"}]}}}})";
}

std::string node_port_service(const std::string& name, int port) {
  return R"({"metadata":{"name":")" + name + R"("},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":)" +
         std::to_string(port) + "}]}}";
}

TEST(Unattended, OnlyWhoKnowsTheControllersWarns) {
  TestServer own(Controllers::kOwn);
  constexpr const char* kPolicies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
  const std::string policy = R"({"metadata":{"name":"s"},"spec":{"podSelector":{}}})";
  const Answer warned = own.post(kPolicies, policy);
  EXPECT_EQ(warned.code, 201) << warned.text;
  ASSERT_EQ(warnings_of(warned).size(), 1U);
  EXPECT_NE(warnings_of(warned).front().find("do not enforce a NetworkPolicy"), std::string::npos);
  EXPECT_TRUE(warnings_of(own.merge(std::string(kPolicies) + "/s", R"({"metadata":{"labels":{"a":"b"}}})")).empty());
  EXPECT_TRUE(warnings_of(own.post(kDeployments, deployment("d"))).empty());
  EXPECT_TRUE(warnings_of(own.post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"m"}})")).empty());
  TestServer unknown;
  EXPECT_TRUE(warnings_of(unknown.post(kPolicies, policy)).empty());
}

TEST(ServiceAddresses, AreAllocatedOnceAndFromTheRange) {
  TestServer server;
  const Answer first = server.post(kServices, R"({"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}})");
  ASSERT_EQ(first.code, 201) << first.text;
  const std::string address = first.string_at({"spec", "clusterIP"});
  const Answer again = server.post(
      kServices, R"({"metadata":{"name":"b"},"spec":{"clusterIP":")" + address + R"(","ports":[{"port":80}]}})");
  EXPECT_EQ(again.code, 422);
  EXPECT_EQ(causes_of(again.body), Json::array({Json::array({"spec.clusterIPs", "FieldValueInvalid"})}));
  const Answer outside =
      server.post(kServices, R"({"metadata":{"name":"b"},"spec":{"clusterIP":"10.97.0.1","ports":[{"port":80}]}})");
  EXPECT_EQ(causes_of(outside.body), Json::array({Json::array({"spec.clusterIPs", "FieldValueInvalid"})}));
}

TEST(ServicePorts, OfNodesAreAllocatedOnceAndFromTheRange) {
  TestServer server;
  const Json taken = Json::array({Json::array({"spec.ports[0].nodePort", "FieldValueInvalid"})});
  EXPECT_EQ(causes_of(server.post(kServices, node_port_service("low", 80)).body), taken);
  ASSERT_EQ(server.post(kServices, node_port_service("a", 30007)).code, 201);
  EXPECT_EQ(causes_of(server.post(kServices, node_port_service("b", 30007)).body), taken);
  const Answer made = server.post(
      kServices,
      R"({"metadata":{"name":"c"},"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"port":80}]}})");
  ASSERT_EQ(made.code, 201) << made.text;
  const auto port = made.body.at({"spec", "ports"})->if_array()->front().find("nodePort")->if_int64();
  const auto check = made.body.at({"spec", "healthCheckNodePort"})->if_int64();
  ASSERT_TRUE(port && check);
  EXPECT_GE(*port, 30000);
  EXPECT_LE(*check, 32767);
  EXPECT_NE(*port, *check);
  EXPECT_NE(*port, 30007);
  const Answer same = server.merge(std::string(kServices) + "/a", R"({"metadata":{"labels":{"x":"y"}}})");
  EXPECT_EQ(same.code, 200) << same.text;
}

/// Ports that are taken are found by name, whatever becomes of the services.
TEST(ServicePorts, AreFreeAgainWhenTheirServiceGivesThemUp) {
  TestServer server;
  const auto is_free = [&](int port) {
    return server.post(std::string(kServices) + "?dryRun=All", node_port_service("other", port)).code == 201 &&
           server.post(kServices, node_port_service("other", port)).code == 201 &&
           server.remove(std::string(kServices) + "/other").code == 200;
  };
  ASSERT_EQ(server.post(kServices, node_port_service("a", 30007)).code, 201);
  EXPECT_FALSE(is_free(30007));
  ASSERT_EQ(server.merge(std::string(kServices) + "/a", R"({"spec":{"ports":[{"port":80,"nodePort":30008}]}})").code,
            200);
  EXPECT_TRUE(is_free(30007));
  EXPECT_FALSE(is_free(30008));
  server.restart();
  EXPECT_FALSE(is_free(30008)) << "read from the store";
  ASSERT_EQ(server.merge(std::string(kServices) + "/a", R"({"spec":{"type":"ClusterIP"}})").code, 200);
  EXPECT_TRUE(is_free(30008));
  ASSERT_EQ(server.post(kServices, node_port_service("b", 30009)).code, 201);
  ASSERT_EQ(server.remove(std::string(kServices) + "/b").code, 200);
  EXPECT_TRUE(is_free(30009));
}

/// A cluster in which some names are taken. Counts look-ups; shows no documents.
class TakenNames final : public Cluster {
 public:
  explicit TakenNames(std::function<bool(std::string_view)> taken) : taken_(std::move(taken)) {}

  std::optional<Json> find(std::string_view, std::string_view, std::string_view) const override {
    ++read;
    return {};
  }

  std::optional<std::string> label(std::string_view, std::string_view, std::string_view name,
                                   std::string_view) const override {
    ++labels;
    return foreign && foreign(name) ? std::optional<std::string>("") : std::nullopt;
  }

  void visit(std::string_view plural, std::string_view, const std::function<bool(const Json&)>&) const override {
    ADD_FAILURE() << "every object of " << plural << " is read";
  }

  bool is_held(std::string_view, std::string_view) const override { return false; }

  bool is_reserved(std::string_view, std::string_view name, std::string_view) const override {
    ++asked;
    return taken_(name);
  }

  mutable std::size_t asked = 0;
  mutable std::size_t read = 0;
  mutable std::size_t labels = 0;
  std::function<bool(std::string_view)> foreign;  // an IPAddress of another program has the address

 private:
  std::function<bool(std::string_view)> taken_;
};

int port_in(std::string_view name) {
  return std::stoi(std::string(name.substr(name.rfind('/') + 1)));
}

/// Addresses and ports that manifests name stay free: the server gives out the low band last.
TEST(ServiceAddresses, OfTheLowBandStayFreeForManifestsThatNameThem) {
  TestServer server;
  for (int i = 1; i <= 9; ++i) {
    const Answer made = server.post(kServices, R"({"metadata":{"name":"s)" + std::to_string(i) +
                                                   R"("},"spec":{"type":"NodePort","ports":[{"port":80}]}})");
    ASSERT_EQ(made.code, 201) << made.text;
    const auto address = api::parse_ip(made.string_at({"spec", "clusterIP"}));
    ASSERT_TRUE(address);
    EXPECT_GT(*address, *api::parse_ip("10.96.1.0"));
    EXPECT_GE(*made.body.at({"spec", "ports"})->if_array()->front().find("nodePort")->if_int64(), 30'086);
  }
  const Answer dns = server.post(
      "/api/v1/namespaces/kube-system/services",
      R"({"metadata":{"name":"kube-dns"},"spec":{"clusterIP":"10.96.0.10","ports":[{"port":53,"protocol":"UDP"}]}})");
  EXPECT_EQ(dns.code, 201) << dns.text;
  EXPECT_EQ(server.post(kServices, node_port_service("shop", 30'001)).code, 201);
}

Json allocated_service(const std::string& uid, const Cluster& cluster) {
  Json service = *api::parse_json(R"({"metadata":{"name":"s","namespace":"default"},"spec":{"type":"NodePort",)"
                                  R"("ports":[{"port":80,"protocol":"TCP"}]}})");
  service["metadata"]["uid"] = uid;
  std::vector<std::string> warnings;
  const AdmissionRules rules;
  const auto allocated = kinds::allocate(
      service, nullptr, {.cluster = cluster, .user = kAdmin, .now = {}, .warnings = warnings, .rules = rules});
  EXPECT_TRUE(allocated) << allocated.error().message;
  return service;
}

TEST(ServiceAddresses, AreFromTheLowBandOnceTheUpperOneIsFull) {
  const auto last_static = *api::parse_ip("10.96.1.0");
  const TakenNames cluster([&](std::string_view name) {
    return name.starts_with("ip/") ? *api::parse_ip(name.substr(3)) > last_static : port_in(name) >= 30'086;
  });
  const Json service = allocated_service("u1", cluster);
  const auto address = api::parse_ip(service.string_at({"spec", "clusterIP"}));
  ASSERT_TRUE(address);
  EXPECT_LE(*address, last_static);
  EXPECT_GT(*address, *api::parse_ip("10.96.0.1")) << "the first is that of the API servers";
  EXPECT_LT(*service.at({"spec", "ports"})->if_array()->front().find("nodePort")->if_int64(), 30'086);
}

TEST(ServiceAddresses, AreFoundWithoutASearchOfTheRange) {
  const TakenNames cluster([](std::string_view name) { return name.back() % 2 == 0; });
  for (int i = 0; i < 20; ++i) allocated_service("u" + std::to_string(i), cluster);
  EXPECT_LT(cluster.asked, 20U * 60);
}

api::StatusResult<void> allocation(const std::string& uid, const Cluster& cluster) {
  Json service = *api::parse_json(R"({"metadata":{"name":"s","namespace":"default"},"spec":{"ports":[{"port":80}]}})");
  service["metadata"]["uid"] = uid;
  std::vector<std::string> warnings;
  const AdmissionRules rules;
  return kinds::allocate(service, nullptr,
                         {.cluster = cluster, .user = kAdmin, .now = {}, .warnings = warnings, .rules = rules});
}

/// However many addresses other programs hold, a Service passes a bounded number of them and reads none.
TEST(ServiceAddresses, OfOtherProgramsArePassedUpToABound) {
  TakenNames cluster([](std::string_view) { return false; });
  cluster.foreign = [](std::string_view) { return true; };
  const auto refused = allocation("u1", cluster);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 500);
  EXPECT_EQ(refused.error().message,
            "failed to allocate a serviceIP: 16384 addresses of the range are held by IPAddresses of other programs; "
            "try again, or name an address");
  EXPECT_EQ(cluster.labels, 16'384U);
  EXPECT_EQ(cluster.read, 0U);
  cluster.foreign = [](std::string_view name) { return name.back() % 2 == 0; };
  EXPECT_TRUE(allocation("u1", cluster)) << "the others are free";
  EXPECT_EQ(cluster.read, 0U);
}

TEST(ServiceAddresses, HaveOneSpelling) {
  TestServer server;
  const auto service = [](const std::string& name, const std::string& address) {
    return R"({"metadata":{"name":")" + name + R"("},"spec":{"clusterIP":")" + address + R"(","ports":[{"port":80}]}})";
  };
  ASSERT_EQ(server.post(kServices, service("a", "10.96.0.10")).code, 201);
  EXPECT_EQ(server.post(kServices, service("b", "10.96.0.10")).code, 422);
  EXPECT_EQ(server.post(kServices, service("c", "10.96.0.011")).code, 422);
}

TEST(ServicePorts, AnAlmostFullRangeIsSearchedOnceForAllPortsOfAService) {
  constexpr std::size_t kPorts = 100;
  constexpr std::size_t kRange = 2'768;
  const int free_from = 32'700 - static_cast<int>(kPorts);
  const TakenNames cluster(
      [&](std::string_view name) { return name.starts_with("port/") && port_in(name) < free_from; });
  Json service = *api::parse_json(
      R"({"metadata":{"name":"s","namespace":"default"},"spec":{"type":"NodePort","clusterIP":"10.96.0.9",
          "clusterIPs":["10.96.0.9"],"ports":[]}})");
  for (std::size_t i = 0; i < kPorts; ++i) {
    service["spec"]["ports"].if_array()->push_back(
        Json::object({{"port", static_cast<std::int64_t>(i + 1)}, {"protocol", "TCP"}}));
  }
  std::vector<std::string> warnings;
  const AdmissionRules rules;
  const auto allocated = kinds::allocate(
      service, nullptr, {.cluster = cluster, .user = kAdmin, .now = {}, .warnings = warnings, .rules = rules});
  ASSERT_TRUE(allocated) << allocated.error().message;
  std::set<std::int64_t> given;
  for (const Json& port : *service.at({"spec", "ports"})->if_array()) given.insert(*port.find("nodePort")->if_int64());
  EXPECT_EQ(given.size(), kPorts);
  EXPECT_GE(*given.begin(), free_from);
  EXPECT_LE(cluster.asked, kRange + 3 * 2 * kPorts) << "once along the range, not once for each port";
}

TEST(GeneratedNames, AreCutToFitAndLabelTheirNamespace) {
  TestServer server;
  const Answer made = server.post("/api/v1/namespaces", R"({"metadata":{"generateName":"team-"}})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"metadata", "labels", "kubernetes.io/metadata.name"}),
            made.string_at({"metadata", "name"}));
  const Answer cut = server.post("/api/v1/namespaces/default/configmaps",
                                 R"({"metadata":{"generateName":")" + std::string(100, 'x') + R"("}})");
  ASSERT_EQ(cut.code, 201) << cut.text;
  EXPECT_EQ(cut.string_at({"metadata", "name"}).size(), 63U);
}

TEST(OwnerReferences, EqualOnesAreJoinedWithAWarning) {
  TestServer server;
  const std::string owner = R"({"apiVersion":"v1","kind":"Pod","name":"a","uid":"1"})";
  const Answer made = server.post("/api/v1/namespaces/default/configmaps",
                                  R"({"metadata":{"name":"m","ownerReferences":[)" + owner + "," + owner + "]}}");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.body.at({"metadata", "ownerReferences"})->if_array()->size(), 1U);
  ASSERT_EQ(warnings_of(made).size(), 1U);
}

TEST(FieldSelectors, ATermWithoutAKeyIsRefused) {
  TestServer server;
  EXPECT_EQ(server.get("/api/v1/pods?fieldSelector=%3Dx").code, 400);
  EXPECT_EQ(server.get("/api/v1/pods?labelSelector=k+in+(,,)").code, 400);
}

TEST(Patches, KeepTheKindOfTheirObject) {
  TestServer server;
  const std::string map = "/api/v1/namespaces/default/configmaps/m";
  server.post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"m"}})");
  EXPECT_EQ(server.strategic(map, R"({"kind":"Other"})").code, 200);
  EXPECT_EQ(server.merge(map, R"({"kind":"Other"})").code, 422);
  EXPECT_EQ(server.json_patch(map, R"([{"op":"remove","path":"/apiVersion"}])").code, 400);
}

}  // namespace

}  // namespace spillway::apiserver
