// The fate of a connection to each address of a Service, as `spillway explain` shows it.
#include "policy/outlook/service_paths.h"

#include "policy/outlook/outlook_facts.h"

#include <gtest/gtest.h>

#include <memory>

namespace spillway::outlook {
namespace {

class ServicePaths : public ::testing::Test {
 protected:
  ServicePaths() {
    service.metadata.ns = "shop";
    service.metadata.name = "web";
    service.type = "LoadBalancer";
    service.cluster_ip = "10.96.0.7";
    service.cluster_ips = {"10.96.0.7"};
    service.ip_families = {"IPv4"};
    service.ports = {{.name = "http", .protocol = "TCP", .port = 80, .node_port = 30080}};
    slice.metadata.ns = "shop";
    slice.metadata.name = "web-1";
    slice.metadata.labels = {{"kubernetes.io/service-name", "web"}};
    slice.address_type = "IPv4";
    slice.ports = {{.name = "http", .protocol = "TCP", .port = 8080, .app_protocol = {}}};
  }

  api::SliceEndpoint& add(const std::string& ip, const std::string& node, bool ready = true) {
    api::SliceEndpoint endpoint;
    endpoint.addresses = {ip};
    endpoint.ready = ready;
    endpoint.serving = ready;
    endpoint.node_name = node;
    slice.endpoints.push_back(endpoint);
    return slice.endpoints.back();
  }

  std::vector<Part> parts(const std::string& node = "n1") const {
    const std::vector<network::SlicePtr> slices{std::make_shared<const api::EndpointSlice>(slice)};
    return service_paths(service, slices, {.name = node, .zone = {}});
  }

  /// "goes_to" of the row of that name.
  static std::string fate(const std::vector<Part>& parts, const std::string& place) {
    for (const Row& row : parts.front().rows) {
      if (row.name == place) return text_of(row, "goes_to");
    }
    return "no such address";
  }

  static std::string text_of(const Row& row, std::string_view name) {
    const policy::Fact* fact = policy::find_fact(row.facts, name);
    return fact == nullptr ? std::string() : std::get<std::string>(fact->value);
  }

  api::ProxiedService service;
  api::EndpointSlice slice;
};

TEST_F(ServicePaths, EachAddressLeadsToTheReadyEndpoints) {
  service.external_ips = {"198.51.100.7"};
  service.ingress = {{.ip = "203.0.113.7", .ip_mode = {}}};
  service.source_ranges = {"192.0.2.0/24"};
  service.session_affinity = "ClientIP";
  service.affinity_seconds = 600;
  add("10.244.0.2", "n1");
  add("10.244.1.2", "n2");
  add("10.244.1.3", "n2", false);
  const auto found = parts();
  ASSERT_EQ(found.size(), 2U);
  for (const char* const place : {"10.96.0.7:80/TCP", "198.51.100.7:80/TCP", "203.0.113.7:80/TCP", "NODE:30080/TCP"}) {
    EXPECT_EQ(fate(found, place), "2 endpoints") << place;
  }
  EXPECT_EQ(text_of(found[0].rows[0], "source"), "kept");
  EXPECT_EQ(text_of(found[0].rows[0], "affinity"), "600 s");
  EXPECT_EQ(text_of(found[0].rows[2], "allowed_from"), "192.0.2.0/24");
  EXPECT_EQ(text_of(found[0].rows[3], "source"), "the node's");
  ASSERT_EQ(found[1].rows.size(), 3U);
  EXPECT_EQ(found[1].rows[0].state, "used");
  EXPECT_EQ(found[1].rows[2].name, "10.244.1.3:8080");
  EXPECT_EQ(found[1].rows[2].state, "not used");
  EXPECT_EQ(text_of(found[1].rows[2], "why"), "its pod is not ready");
}

TEST_F(ServicePaths, WithoutEndpointsConnectionsAreRefused) {
  const auto found = parts();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(fate(found, "10.96.0.7:80/TCP"), "refused: no endpoint");
  EXPECT_EQ(fate(found, "NODE:30080/TCP"), "refused: no endpoint");
}

TEST_F(ServicePaths, UnderPolicyLocalTheNodeCounts) {
  service.external_traffic_policy = "Local";
  add("10.244.1.2", "n2");
  EXPECT_EQ(fate(parts("n1"), "NODE:30080/TCP"),
            "dropped: no endpoint on node n1; from pods and this node: 1 endpoint");
  EXPECT_EQ(fate(parts("n1"), "10.96.0.7:80/TCP"), "1 endpoint");
  EXPECT_EQ(fate(parts("n2"), "NODE:30080/TCP"), "1 endpoint");
  service.internal_traffic_policy = "Local";
  EXPECT_EQ(fate(parts("n1"), "10.96.0.7:80/TCP"), "dropped: no endpoint on node n1");
}

TEST_F(ServicePaths, EndingEndpointsServeWhileNoOtherIsReady) {
  add("10.244.0.2", "n1", false).terminating = true;
  slice.endpoints.back().serving = true;
  EXPECT_EQ(fate(parts(), "10.96.0.7:80/TCP"), "1 endpoint");
  add("10.244.0.3", "n1");
  const auto found = parts();
  EXPECT_EQ(fate(found, "10.96.0.7:80/TCP"), "1 endpoint");
  EXPECT_EQ(text_of(found[1].rows[0], "why"), "it is terminating, and others are ready");
}

TEST_F(ServicePaths, AnotherProxysServiceHasNone) {
  service.metadata.labels = {{"service.kubernetes.io/service-proxy-name", "other"}};
  EXPECT_TRUE(parts().empty());
}

}  // namespace
}  // namespace spillway::outlook
