// What the rows of writes do not hold, because they are dry runs of one request: addresses and ports that are taken,
// names that are made, warnings.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  const std::string service = R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})";
  const Answer warned = own.post(kServices, service);
  EXPECT_EQ(warned.code, 201) << warned.text;
  ASSERT_EQ(warnings_of(warned).size(), 1U);
  EXPECT_NE(warnings_of(warned).front().find("sends traffic to the pods of a Service"), std::string::npos);
  EXPECT_TRUE(warnings_of(own.merge(std::string(kServices) + "/s", R"({"metadata":{"labels":{"a":"b"}}})")).empty());
  EXPECT_TRUE(warnings_of(own.post(kDeployments, deployment("d"))).empty());
  EXPECT_TRUE(warnings_of(own.post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"m"}})")).empty());
  TestServer unknown;
  EXPECT_TRUE(warnings_of(unknown.post(kServices, service)).empty());
}

TEST(ServiceAddresses, AreGivenOnceAndComeFromTheRange) {
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

TEST(ServicePorts, OfNodesAreGivenOnceAndComeFromTheRange) {
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

TEST(OwnerReferences, EqualOnesAreOneAndTheClientIsTold) {
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
