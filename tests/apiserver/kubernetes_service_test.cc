// Goal: clients inside the cluster find the running servers: the Service `kubernetes`, its Endpoints and slices are
// created, follow the addresses, and are restored.
#include "apiserver/collect/kept_objects.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::apiserver {
namespace {

const std::string kService = "/api/v1/namespaces/default/services/kubernetes";
const std::string kEndpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
const std::string kServices = "/api/v1/namespaces/default/services";
const std::string kSlices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

std::vector<ServingAddress> addresses(const std::vector<std::string>& texts) {
  std::vector<ServingAddress> read;
  for (const std::string& text : texts) read.push_back(parse_serving_address(text).value());
  return read;
}

void announce(TestServer& server, const std::vector<std::string>& texts, std::uint16_t port = 6443) {
  server.server().announce(port, addresses(texts), server.now());
  server.run_until_idle();
}

std::string subsets(TestServer& server) {
  const api::Json body = server.get(kEndpoints).body;
  const api::Json* found = body.find("subsets");
  return found == nullptr ? "none" : api::to_text(*found);
}

/// "NAME TYPE ADDRESS... PORT" of each slice.
std::vector<std::string> slices(TestServer& server) {
  std::vector<std::string> all;
  const api::Json body = server.get(kSlices).body;
  for (const api::Json& slice : *body.find("items")->if_array()) {
    std::string line(slice.string_at({"metadata", "name"}));
    line += " " + std::string(slice.string_at({"addressType"}));
    if (const api::Json* endpoints = slice.find("endpoints");
        endpoints != nullptr && endpoints->if_array() != nullptr) {
      for (const api::Json& each : *endpoints->if_array()) line += " " + api::to_text(*each.find("addresses"));
    }
    all.push_back(line + " " + api::to_text(*slice.find("ports")->if_array()->front().find("port")));
  }
  return all;
}

TEST(ServingAddress, IsReadStrictly) {
  EXPECT_EQ(parse_serving_address("10.0.0.1:6443"), (ServingAddress{"10.0.0.1", true, 6443}));
  EXPECT_EQ(parse_serving_address("[2001:db8::1]:443"), (ServingAddress{"2001:db8::1", false, 443}));
  for (const char* text :
       {"", ":", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:1x", "10.0.0.1:-1", "[10.0.0.1]:1",
        "2001:db8::1:443", "127.0.0.1:1", "[::1]:1", "0.0.0.0:1", "169.254.1.1:1", "224.0.0.1:1", "host:1", "[]:1"}) {
    EXPECT_EQ(parse_serving_address(text), std::nullopt) << text;
  }
}

TEST(KubernetesService, IsNotMadeBeforeAServerSaysWhereItServes) {
  TestServer server;
  EXPECT_EQ(server.get(kService).code, 404);
}

TEST(KubernetesService, LeadsToTheServers) {
  TestServer server;
  announce(server, {"10.0.0.2:6443", "10.0.0.1:6443", "10.0.0.2:6443"});
  const Answer service = server.get(kService);
  ASSERT_EQ(service.code, 200);
  EXPECT_EQ(service.string_at({"spec", "clusterIP"}), "10.96.0.1");
  EXPECT_EQ(service.string_at({"metadata", "labels", "component"}), "apiserver");
  EXPECT_EQ(service.string_at({"metadata", "labels", "provider"}), "kubernetes");
  EXPECT_EQ(api::to_text(*service.body.at({"spec", "ports"})),
            R"([{"name":"https","port":443,"protocol":"TCP","targetPort":6443}])");
  EXPECT_EQ(subsets(server), R"([{"addresses":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}],)"
                             R"("ports":[{"name":"https","port":6443,"protocol":"TCP"}]}])");
  EXPECT_EQ(server.get(kEndpoints).string_at({"metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"}),
            "true");
  EXPECT_EQ(slices(server), (std::vector<std::string>{R"(kubernetes IPv4 ["10.0.0.1"] ["10.0.0.2"] 6443)"}));
  EXPECT_EQ(server.get(kSlices + "/kubernetes").string_at({"metadata", "labels", "kubernetes.io/service-name"}),
            "kubernetes");
}

TEST(KubernetesService, FollowsTheAddresses) {
  TestServer server;
  announce(server, {"10.0.0.1:6443", "10.0.0.2:7443", "[2001:db8::1]:6443"});
  EXPECT_EQ(slices(server), (std::vector<std::string>{R"(kubernetes IPv4 ["10.0.0.1"] 6443)",
                                                      R"(kubernetes-v4-7443 IPv4 ["10.0.0.2"] 7443)",
                                                      R"(kubernetes-v6-6443 IPv6 ["2001:db8::1"] 6443)"}));
  announce(server, {"10.0.0.2:7443"});
  EXPECT_EQ(slices(server), (std::vector<std::string>{R"(kubernetes IPv4 ["10.0.0.2"] 7443)",
                                                      "kubernetes-v4-7443 IPv4 7443", "kubernetes-v6-6443 IPv6 6443"}));
  EXPECT_EQ(subsets(server),
            R"([{"addresses":[{"ip":"10.0.0.2"}],"ports":[{"name":"https","port":7443,"protocol":"TCP"}]}])");
  announce(server, {});
  EXPECT_EQ(slices(server), (std::vector<std::string>{"kubernetes IPv4 7443", "kubernetes-v4-7443 IPv4 7443",
                                                      "kubernetes-v6-6443 IPv6 6443"}));
  EXPECT_EQ(subsets(server).find("10.0.0.2"), std::string::npos);
}

TEST(KubernetesService, HasNoEndpointsWhereNoAddressIsKnown) {
  TestServer server;
  announce(server, {});
  EXPECT_EQ(server.get(kService).code, 200);
  EXPECT_EQ(server.get(kEndpoints).code, 404);
  EXPECT_TRUE(slices(server).empty());
}

TEST(KubernetesService, IsCreatedAgainAndCorrected) {
  TestServer server;
  announce(server, {"10.0.0.1:6443"});
  for (const std::string& path : {kService, kEndpoints, kSlices + "/kubernetes"}) {
    ASSERT_EQ(server.remove(path).code, 200) << path;
    EXPECT_EQ(server.get(path).code, 200) << path;
  }
  ASSERT_EQ(server.merge(kEndpoints, R"({"subsets":[{"addresses":[{"ip":"10.6.6.6"}],"ports":[{"port":1}]}]})").code,
            200);
  EXPECT_EQ(subsets(server).find("10.6.6.6"), std::string::npos);
  ASSERT_EQ(server.merge(kSlices + "/kubernetes", R"({"endpoints":[{"addresses":["10.6.6.6"]}]})").code, 200);
  EXPECT_EQ(slices(server), (std::vector<std::string>{R"(kubernetes IPv4 ["10.0.0.1"] 6443)"}));
  ASSERT_EQ(
      server.merge(kService, R"({"spec":{"ports":[{"name":"https","port":80}]},"metadata":{"labels":{"own":"yes"}}})")
          .code,
      200);
  const Answer service = server.get(kService);
  EXPECT_EQ(api::to_text(*service.body.at({"spec", "ports"})),
            R"([{"name":"https","port":443,"protocol":"TCP","targetPort":6443}])");
  EXPECT_EQ(service.string_at({"metadata", "labels", "own"}), "yes") << "what is not ours stays";
}

TEST(KubernetesService, WritesNothingWhereAllIsAsItShouldBe) {
  TestServer server;
  announce(server, {"10.0.0.1:6443"});
  announce(server, {});
  const auto before = server.store().revision();
  for (int times = 0; times < 3; ++times) announce(server, {});
  server.advance(minutes(5));
  server.restart();
  announce(server, {});
  EXPECT_EQ(server.store().revision(), before);
}

TEST(KubernetesService, SlicesOfOthersAreLeftAlone) {
  TestServer server;
  announce(server, {"10.0.0.1:6443"});
  const auto make = [&server](const std::string& name, const std::string& labels) {
    const Answer made = server.post(kSlices, R"({"metadata":{"name":")" + name + R"(","labels":{)" + labels +
                                                 R"(}},"addressType":"IPv4","endpoints":[{"addresses":["10.9.9.9"]}],)"
                                                 R"("ports":[{"port":1}]})");
    ASSERT_EQ(made.code, 201) << made.text;
  };
  make("kubernetes-app", R"("kubernetes.io/service-name":"other")");
  make("kubernetes-more",
       R"("kubernetes.io/service-name":"kubernetes","endpointslice.kubernetes.io/managed-by":"somebody")");
  make("kubernetes-by-hand", R"("kubernetes.io/service-name":"kubernetes")");
  make("kubernetes-stale",
       R"("kubernetes.io/service-name":"kubernetes","endpointslice.kubernetes.io/managed-by":"spillway-apiserver")");
  EXPECT_EQ(slices(server),
            (std::vector<std::string>{R"(kubernetes IPv4 ["10.0.0.1"] 6443)", R"(kubernetes-app IPv4 ["10.9.9.9"] 1)",
                                      R"(kubernetes-by-hand IPv4 ["10.9.9.9"] 1)",
                                      R"(kubernetes-more IPv4 ["10.9.9.9"] 1)", "kubernetes-stale IPv4 1"}));
}

/// Certificates name the first address.
TEST(KubernetesService, HasTheFirstAddressWhateverExistsAlready) {
  TestServer server;
  ASSERT_NE(server.post(kServices, R"({"metadata":{"name":"early"},"spec":{"ports":[{"port":80}]}})")
                .string_at({"spec", "clusterIP"}),
            "10.96.0.1");
  announce(server, {"10.0.0.1:6443"});
  EXPECT_EQ(server.get(kService).string_at({"spec", "clusterIP"}), "10.96.0.1");
}

TEST(KubernetesService, TakesAnotherAddressWhereItsOwnIsTaken) {
  TestServer server;
  ASSERT_EQ(
      server.post(kServices, R"({"metadata":{"name":"early"},"spec":{"clusterIP":"10.96.0.1","ports":[{"port":80}]}})")
          .code,
      201);
  announce(server, {"10.0.0.1:6443"});
  EXPECT_EQ(server.get(kService).string_at({"spec", "clusterIP"}), "10.96.0.2");
}

/// The user may change Services in the namespace `default`.
TEST(KubernetesService, CannotBeLedElsewhere) {
  for (
      const std::string spec :
      {R"({"selector":{"app":"mine"}})", R"({"externalIPs":["192.0.2.66"]})", R"({"type":"NodePort"})",
       R"({"type":"LoadBalancer"})", R"({"publishNotReadyAddresses":true})",
       R"({"type":"ExternalName","externalName":"elsewhere.example.com","clusterIP":null,"clusterIPs":null,"ports":null})"}) {
    TestServer server;
    announce(server, {"10.0.0.1:6443"});
    const Answer changed = server.merge(kService, R"({"spec":)" + spec + "}");
    ASSERT_EQ(changed.code, 200) << changed.text;
    server.advance(minutes(3));
    const Answer service = server.get(kService);
    EXPECT_EQ(service.string_at({"spec", "type"}), "ClusterIP") << spec;
    EXPECT_EQ(service.string_at({"spec", "clusterIP"}).rfind("10.96.", 0), 0U) << spec << service.text;
    for (const char* member :
         {"selector", "externalIPs", "externalName", "externalTrafficPolicy", "publishNotReadyAddresses"})
      EXPECT_EQ(service.body.at({"spec", member}), nullptr) << spec << member;
    EXPECT_EQ(service.body.find("spec")->find("ports")->if_array()->front().find("nodePort"), nullptr) << spec;
    EXPECT_EQ(server.merge(kService, R"({"metadata":{"labels":{"a":"b"}}})").code, 200) << "it is a whole Service";
    const auto before = server.store().revision();
    server.advance(minutes(3));
    EXPECT_EQ(server.store().revision(), before) << spec;
  }
}

TEST(KubernetesService, WhatIsRefusedIsTriedAgainSeldom) {
  TestServer server;
  const std::string quotas = "/api/v1/namespaces/default/resourcequotas";
  ASSERT_EQ(server.post(quotas, R"({"metadata":{"name":"none"},"spec":{"hard":{"services":"0"}}})").code, 201);
  server.advance(seconds(1));
  announce(server, {"10.0.0.1:6443"});
  ASSERT_EQ(server.get(kService).code, 404);
  ASSERT_EQ(server.remove(quotas + "/none").code, 200);
  for (int number = 0; number < 5; ++number)
    ASSERT_EQ(server.post(kMaps, R"({"metadata":{"name":"m)" + std::to_string(number) + "\"}}").code, 201);
  EXPECT_EQ(server.get(kService).code, 404) << "what others write is no reason to try again";
  server.advance(KeptObjects::kRetry);
  EXPECT_EQ(server.get(kService).code, 200);
  EXPECT_EQ(server.get(kEndpoints).code, 200);
}

TEST(KubernetesService, IsNotFoughtOver) {
  TestServer server;
  announce(server, {"10.0.0.1:6443"});
  int stayed = 0;
  for (int number = 0; number < 100; ++number) {
    ASSERT_EQ(
        server.merge(kEndpoints, R"({"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":"false"}}})").code,
        200);
    stayed += server.get(kEndpoints).text.contains(R"("endpointslice.kubernetes.io/skip-mirror":"false")") ? 1 : 0;
  }
  EXPECT_GT(stayed, 80);
  server.advance(KeptObjects::kPauseMax);
  EXPECT_EQ(server.get(kEndpoints).string_at({"metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"}),
            "true");
}

TEST(KubernetesService, AServiceMadeByHandIsKeptWhereNoAddressIsKnown) {
  TestServer server;
  ASSERT_EQ(
      server
          .post(
              "/api/v1/namespaces/default/endpoints",
              R"({"metadata":{"name":"kubernetes"},"subsets":[{"addresses":[{"ip":"10.6.6.6"}],"ports":[{"port":1}]}]})")
          .code,
      201);
  announce(server, {});
  EXPECT_NE(subsets(server).find("10.6.6.6"), std::string::npos);
  announce(server, {"10.0.0.1:6443"});
  EXPECT_EQ(subsets(server).find("10.6.6.6"), std::string::npos);
}

TEST(KubernetesService, OnlyTheServerThatActsWrites) {
  TestServer server;
  server.server().act(false, server.now());
  announce(server, {"10.0.0.1:6443"});
  EXPECT_EQ(server.get(kService).code, 404);
  server.server().act(true, server.now());
  server.run_until_idle();
  EXPECT_EQ(server.get(kService).code, 200);
}

}  // namespace
}  // namespace spillway::apiserver
