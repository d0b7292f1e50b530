// Goal: of the slices of kube-dns those of servers that were killed go, and no others. Method: the real API server.
#include "controllers/test_cluster.h"

#include "dns/left_slices.h"
#include "dns/service_keeper.h"
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::controllers {
namespace {

const std::string kSystemSlices = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices";

class DnsSlices : public ::testing::Test {
 protected:
  ~DnsSlices() override {
    for (const auto& each : engines) cluster.stop(*each);
  }

  void start(std::unique_ptr<client::ApiEngine> engine) {
    engines.push_back(std::move(engine));
    cluster.run(*engines.back());
    cluster.advance(seconds(1));
  }

  void serve(std::string slice, std::uint16_t port = 5353) {
    start(std::make_unique<dns::ServiceKeeper>(
        dns::ServiceKeeper::Options{
            .cluster_ip = "10.96.0.10", .slice = std::move(slice), .address = "192.0.2.1", .port = port},
        Rng(1), telemetry::Log()));
  }

  /// Runs the clean-up of a process that alone uses the store.
  void clear_up(std::string own) { start(std::make_unique<dns::LeftSlices>(std::move(own), Rng(2), telemetry::Log())); }

  /// Ends the process as by kill -9: nothing is deleted.
  void kill() {
    for (const auto& each : engines) cluster.stop(*each);
    engines.clear();
  }

  std::vector<std::string> slices() {
    std::vector<std::string> names;
    for (const api::Json& each : cluster.list(kSystemSlices)) names.emplace_back(each.string_at({"metadata", "name"}));
    return names;
  }

  TestCluster cluster;
  std::vector<std::unique_ptr<client::ApiEngine>> engines;
};

TEST_F(DnsSlices, TheNextStartTakesItsOwnOver) {
  serve("kube-dns-a");
  kill();
  clear_up("kube-dns-a");
  serve("kube-dns-a", 5454);
  ASSERT_EQ(slices(), std::vector<std::string>{"kube-dns-a"});
  const api::Json slice = cluster.get(kSystemSlices + "/kube-dns-a");
  EXPECT_EQ(slice.find("ports")->if_array()->front().find("port")->if_int64(), 5454);
}

TEST_F(DnsSlices, ThoseOfKilledServersGo) {
  serve("kube-dns-a");
  serve("kube-dns-b");
  kill();
  EXPECT_EQ(slices(), (std::vector<std::string>{"kube-dns-a", "kube-dns-b"}));
  clear_up("kube-dns-c");
  serve("kube-dns-c");
  EXPECT_EQ(slices(), std::vector<std::string>{"kube-dns-c"});
}

TEST_F(DnsSlices, WithoutAServerAllGoButThoseOfOthers) {
  serve("kube-dns-a");
  kill();
  cluster.create(kSystemSlices, api::parse_json(R"({"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",
      "metadata":{"name":"by-hand","namespace":"kube-system","labels":{"kubernetes.io/service-name":"kube-dns"}},
      "addressType":"IPv4","endpoints":[{"addresses":["192.0.2.7"]}]})")
                                    .value());
  cluster.fail(api::Method::kDelete, "kube-dns-a", 500, 1);
  clear_up("");
  cluster.advance(seconds(10));
  EXPECT_EQ(slices(), std::vector<std::string>{"by-hand"});
}

}  // namespace
}  // namespace spillway::controllers
