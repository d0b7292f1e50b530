// Slices of a Service over many random changes: whatever was there, what is written makes it right, and a second look
// writes nothing.
#include "policy/endpoints/slice_plan.h"

#include "base/fnv128.h"
#include "base/rng.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::endpoints {
namespace {

constexpr std::size_t kPerSlice = 3;

static_assert(fnv1a128("") == Fnv128{0x6c62272e07bb0142, 0x62b821756295c58d});
static_assert(fnv1a128("a") == Fnv128{0xd228cb696f1a8caf, 0x78912b704e4a8964});
static_assert(fnv1a128("foobar") == Fnv128{0x343e1662793c64bf, 0x6f0d3597ba446f18});

api::Service web() {
  api::Service service;
  service.metadata.name = "web";
  service.metadata.ns = "default";
  service.metadata.uid = "service";
  service.cluster_ip = "10.96.0.7";
  service.ip_families = {"IPv4"};
  service.selector = {{"app", "web"}};
  service.ports = {{.name = "http", .protocol = "TCP", .port = 80, .target_port = "web"}};
  return service;
}

PodPtr pod(int number, std::int32_t port = 8080, bool ready = true) {
  auto out = std::make_shared<api::Pod>();
  out->metadata.name = fmt::format("web-{:03}", number);
  out->metadata.ns = "default";
  out->metadata.uid = fmt::format("uid-{}", number);
  out->metadata.labels = {{"app", "web"}};
  out->spec.node_name = "node";
  out->spec.containers.resize(1);
  out->spec.containers.front().ports = {{.name = "web", .container_port = port, .protocol = "TCP"}};
  out->status.phase = "Running";
  out->status.pod_ip = fmt::format("10.0.{}.{}", number / 200, number % 200 + 1);
  out->status.conditions = {{.type = "Ready", .status = ready ? "True" : "False"}};
  return out;
}

/// The slices of a server that carries out the plans.
class SliceStore {
 public:
  SlicePlan sync(const api::Service& service, const std::vector<PodPtr>& pods) {
    std::vector<SlicePtr> slices;
    for (const auto& [name, slice] : by_name_) slices.push_back(slice);
    api::Node node;
    node.metadata.name = "node";
    SlicePlan plan = plan_slices({.service = service,
                                  .pods = pods,
                                  .node = [&node](const std::string& name) { return name == "node" ? &node : nullptr; },
                                  .slices = slices,
                                  .per_slice = kPerSlice});
    for (api::EndpointSlice slice : plan.created) {
      slice.metadata.name = fmt::format("{}{:05}", slice.metadata.generate_name, ++created_);
      put(std::move(slice));
    }
    for (const api::EndpointSlice& slice : plan.updated) put(slice);
    for (const SlicePtr& slice : plan.deleted) by_name_.erase(slice->metadata.name);
    return plan;
  }

  /// Address and port of every endpoint; twice if it is in two slices.
  std::multiset<std::string> endpoints() const {
    std::multiset<std::string> all;
    for (const auto& [name, slice] : by_name_) {
      EXPECT_LE(slice->endpoints.size(), kPerSlice) << name;
      for (const api::SliceEndpoint& endpoint : slice->endpoints) {
        const std::int32_t port = slice->ports.empty() ? 0 : slice->ports.front().port.value_or(-1);
        all.insert(fmt::format("{}:{} {}", endpoint.addresses.front(), port, endpoint.ready.value_or(false)));
      }
    }
    return all;
  }

  std::size_t size() const { return by_name_.size(); }

 private:
  void put(const api::EndpointSlice& slice) {
    by_name_[slice.metadata.name] = std::make_shared<const api::EndpointSlice>(slice);
  }

  std::map<std::string, SlicePtr> by_name_;
  int created_ = 0;
};

std::size_t writes(const SlicePlan& plan) {
  return plan.created.size() + plan.updated.size() + plan.deleted.size();
}

TEST(SlicePlans, NeedOneSyncWhateverChanges) {
  Rng rng(7);
  SliceStore store;
  const api::Service service = web();
  for (int round = 0; round < 400; ++round) {
    std::vector<PodPtr> pods;
    std::multiset<std::string> wanted;
    const std::uint64_t share = rng.below(5);
    for (int number = 0; number < 14; ++number) {
      if (rng.below(4) >= share) continue;
      const std::int32_t port = rng.below(5) == 0 ? 9090 : 8080;
      const bool ready = rng.below(4) != 0;
      pods.push_back(pod(number, port, ready));
      wanted.insert(fmt::format("{}:{} {}", pods.back()->status.pod_ip, port, ready));
    }
    store.sync(service, pods);
    ASSERT_EQ(store.endpoints(), wanted) << "round " << round;
    ASSERT_GE(store.size(), 1U);
    ASSERT_EQ(writes(store.sync(service, pods)), 0U) << "round " << round;
  }
}

TEST(SlicePlans, WriteOneSliceForOnePod) {
  SliceStore store;
  std::vector<PodPtr> pods;
  for (int number = 0; number < 7; ++number) pods.push_back(pod(number));
  store.sync(web(), pods);
  EXPECT_EQ(store.size(), 3U);
  pods[1] = pod(1, 8080, false);
  EXPECT_EQ(writes(store.sync(web(), pods)), 1U);
  pods.push_back(pod(7));
  const SlicePlan added = store.sync(web(), pods);
  EXPECT_EQ(added.updated.size(), 1U);
  EXPECT_EQ(writes(added), 1U);
}

TEST(SlicePlans, OmitPodsOfUnknownNodesAndSayWhich) {
  SliceStore store;
  auto lost = std::make_shared<api::Pod>(*pod(1));
  lost->spec.node_name = "gone";
  const SlicePlan plan = store.sync(web(), {pod(0), lost});
  EXPECT_EQ(plan.missing_nodes, std::vector<std::string>{"gone"});
  EXPECT_EQ(store.endpoints().size(), 1U);
}

TEST(SlicePlans, OmitAddressesThatLeadBackToTheClient) {
  SliceStore store;
  auto here = std::make_shared<api::Pod>(*pod(0));
  for (const char* address : {"127.0.0.1", "169.254.1.1", "0.0.0.0", "no address"}) {
    here->status.pod_ip = address;
    store.sync(web(), {here, pod(1)});
    EXPECT_EQ(store.endpoints(), std::multiset<std::string>{"10.0.0.2:8080 true"}) << address;
  }
}

TEST(SlicePlans, GiveADualStackServiceSlicesOfBothFamilies) {
  SliceStore store;
  api::Service service = web();
  service.ip_families = {"IPv4", "IPv6"};
  auto both = std::make_shared<api::Pod>(*pod(0));
  both->status.further_ips = {"fd00::1"};
  store.sync(service, {both});
  EXPECT_EQ(store.endpoints(), (std::multiset<std::string>{"10.0.0.1:8080 true", "fd00::1:8080 true"}));
}

}  // namespace
}  // namespace spillway::endpoints
