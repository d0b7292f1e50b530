// Goal: on a node without a service proxy the variables of containers name the API server itself. The variables of
// Services alone are in vectors/pod-lifecycle, container_env.
#include "agent/containers/service_env.h"

#include "agent/containers/container_env.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace spillway::agent {
namespace {

std::shared_ptr<const api::Service> service(const std::string& ns, const std::string& name, const std::string& ip) {
  api::Service made;
  made.metadata.ns = ns;
  made.metadata.name = name;
  made.cluster_ip = ip;
  made.ports.push_back({.name = "https", .protocol = "TCP", .port = 443});
  return std::make_shared<const api::Service>(std::move(made));
}

api::Pod pod_in(const std::string& ns) {
  api::Pod pod;
  pod.metadata.ns = ns;
  pod.spec.enable_service_links = true;
  return pod;
}

TEST(ServiceVariables, NameTheApiServerInPlaceOfItsService) {
  const KnownServices known{.all = {service("default", "kubernetes", "10.96.0.1"), service("shop", "db", "10.96.0.7")},
                            .read = true,
                            .api_server = ApiServerAddress{"192.0.2.7", 6443}};
  for (const std::string ns : {"default", "shop"}) {
    const auto variables = service_variables(pod_in(ns), known);
    ASSERT_TRUE(variables);
    EXPECT_EQ(variables->at("KUBERNETES_SERVICE_HOST"), "192.0.2.7") << ns;
    EXPECT_EQ(variables->at("KUBERNETES_SERVICE_PORT"), "6443") << ns;
    EXPECT_EQ(variables->at("KUBERNETES_SERVICE_PORT_HTTPS"), "6443") << ns;
    EXPECT_EQ(variables->at("KUBERNETES_PORT_6443_TCP"), "tcp://192.0.2.7:6443") << ns;
    EXPECT_FALSE(variables->contains("KUBERNETES_PORT_443_TCP")) << ns;
    EXPECT_EQ(variables->contains("DB_SERVICE_HOST"), ns == "shop");
  }
}

TEST(ServiceVariables, NameTheApiServerWhereThereIsNoService) {
  const KnownServices known{.all = {}, .read = true, .api_server = ApiServerAddress{"2001:db8::7", 6443}};
  const auto variables = service_variables(pod_in("shop"), known);
  ASSERT_TRUE(variables);
  EXPECT_EQ(variables->at("KUBERNETES_SERVICE_HOST"), "2001:db8::7");
  EXPECT_EQ(variables->at("KUBERNETES_PORT"), "tcp://[2001:db8::7]:6443");
}

TEST(ServiceVariables, OnlyPodsOfTheMachinesNetworkAreSentToItsLoopback) {
  const KnownServices known{.all = {service("default", "kubernetes", "10.96.0.1")},
                            .read = true,
                            .api_server = ApiServerAddress{"127.0.0.1", 6443, AddressReach::kHostNetwork}};
  api::Pod pod = pod_in("shop");
  EXPECT_EQ(service_variables(pod, known)->at("KUBERNETES_SERVICE_HOST"), "10.96.0.1");
  pod.spec.host_network = true;
  EXPECT_EQ(service_variables(pod, known)->at("KUBERNETES_SERVICE_HOST"), "127.0.0.1");
}

TEST(ServiceVariables, AServiceOfThePodsOwnNamespacePrecedesIt) {
  const KnownServices known{.all = {service("shop", "kubernetes", "10.96.0.9")},
                            .read = true,
                            .api_server = ApiServerAddress{"192.0.2.7", 6443}};
  EXPECT_EQ(service_variables(pod_in("shop"), known)->at("KUBERNETES_SERVICE_HOST"), "10.96.0.9");
  EXPECT_EQ(service_variables(pod_in("default"), known)->at("KUBERNETES_SERVICE_HOST"), "192.0.2.7");
}

/// Services of the pod's namespace, each with this number of ports.
KnownServices many(std::size_t services, int ports) {
  KnownServices known{.all = {}, .read = true, .api_server = ApiServerAddress{"192.0.2.7", 6443}};
  for (std::size_t i = 0; i < services; ++i) {
    api::Service made;
    made.metadata.ns = "shop";
    made.metadata.name = fmt::format("s{:05}", i);
    made.cluster_ip = "10.96.0.7";
    for (int port = 1; port <= ports; ++port)
      made.ports.push_back({.name = fmt::format("p{}", port), .protocol = "TCP", .port = port});
    known.all.push_back(std::make_shared<const api::Service>(std::move(made)));
  }
  return known;
}

TEST(ServiceVariables, OfMoreServicesThanAProgramTakesAreNotMade) {
  for (const std::size_t services : {327u, 3'270u}) {
    const auto variables = service_variables(pod_in("shop"), many(services, 100));
    ASSERT_FALSE(variables);
    EXPECT_EQ(variables.error().code, ErrorCode::kRequestEntityTooLarge);
    EXPECT_EQ(variables.error().text(),
              "the variables of Services exceed 2097152 bytes: argument list too long; "
              "spec.enableServiceLinks: false leaves them out");
    EXPECT_TRUE(service_variables(pod_in("elsewhere"), many(services, 100)));
  }
}

TEST(ServiceVariables, OfManyServicesAreAddedInTheOrderOfTheirNames) {
  EnvInputs inputs;
  inputs.services = many(60, 100);
  const auto made = environment_of(pod_in("shop"), {}, inputs);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->variables().size(), 60u * (3 + 100 * 5) + 8);
  EXPECT_TRUE(std::ranges::is_sorted(made->variables()));
}

}  // namespace
}  // namespace spillway::agent
