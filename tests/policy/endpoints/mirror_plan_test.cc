// Endpoints written by hand as slices: every address once, nothing written that is there, nothing of others touched.
#include "policy/endpoints/mirror_plan.h"

#include "base/rng.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::endpoints {
namespace {

api::Endpoints written() {
  api::Endpoints endpoints;
  endpoints.metadata.name = "ext";
  endpoints.metadata.ns = "default";
  endpoints.metadata.uid = "e1";
  endpoints.metadata.labels = {{"app", "ext"}};
  endpoints.metadata.annotations = {{"note", "mine"}, {"kubectl.kubernetes.io/last-applied-configuration", "{}"}};
  endpoints.subsets = {{.addresses = {{.ip = "10.1.1.1", .hostname = "a", .node_name = "n1", .target = {}},
                                      {.ip = "fd00::1", .hostname = {}, .node_name = {}, .target = {}}},
                        .not_ready = {{.ip = "10.1.1.2", .hostname = {}, .node_name = {}, .target = {}}},
                        .ports = {{.name = "http", .port = 80, .protocol = "TCP", .app_protocol = {}}}}};
  return endpoints;
}

/// The slices after a plan, with those that it does not change.
std::vector<SlicePtr> after(const SlicePlan& plan, std::vector<SlicePtr> slices, int& names) {
  for (const api::EndpointSlice& updated : plan.updated) {
    for (SlicePtr& slice : slices) {
      if (slice->metadata.name == updated.metadata.name) slice = std::make_shared<const api::EndpointSlice>(updated);
    }
  }
  std::erase_if(slices,
                [&](const SlicePtr& slice) { return std::ranges::find(plan.deleted, slice) != plan.deleted.end(); });
  for (api::EndpointSlice made : plan.created) {
    made.metadata.name = fmt::format("{}{}", made.metadata.generate_name, names++);
    made.metadata.generate_name.clear();
    slices.push_back(std::make_shared<const api::EndpointSlice>(std::move(made)));
  }
  return slices;
}

TEST(MirrorPlan, ASliceForEachFamilyAndItsPorts) {
  const SlicePlan plan = plan_mirror(written(), {});
  ASSERT_EQ(plan.created.size(), 2u);
  const api::EndpointSlice& v4 = plan.created[0];
  EXPECT_EQ(v4.address_type, "IPv4");
  EXPECT_EQ(v4.metadata.generate_name, "ext-");
  EXPECT_EQ(v4.metadata.labels,
            (api::StringMap{{"app", "ext"},
                            {"endpointslice.kubernetes.io/managed-by", "endpointslicemirroring-controller.k8s.io"},
                            {"kubernetes.io/service-name", "ext"}}));
  EXPECT_EQ(v4.metadata.annotations, (api::StringMap{{"note", "mine"}}));
  ASSERT_EQ(v4.metadata.owner_references.size(), 1u);
  EXPECT_EQ(v4.metadata.owner_references[0].kind, "Endpoints");
  EXPECT_EQ(v4.metadata.owner_references[0].uid, "e1");
  ASSERT_EQ(v4.endpoints.size(), 2u);
  EXPECT_EQ(v4.endpoints[0].addresses, std::vector<std::string>{"10.1.1.1"});
  EXPECT_EQ(v4.endpoints[0].ready, true);
  EXPECT_EQ(v4.endpoints[0].hostname, "a");
  EXPECT_EQ(v4.endpoints[0].node_name, "n1");
  EXPECT_EQ(v4.endpoints[1].ready, false);
  EXPECT_EQ(v4.endpoints[1].serving, std::nullopt);
  ASSERT_EQ(v4.ports.size(), 1u);
  EXPECT_EQ(v4.ports[0].port, 80);
  EXPECT_EQ(plan.created[1].address_type, "IPv6");
}

/// A user who may write Endpoints of one Service can write no slice of another Service, nor of another controller.
TEST(MirrorPlan, LabelsOfTheEndpointsDoNotSayWhoseTheSlicesAre) {
  api::Endpoints endpoints = written();
  endpoints.metadata.labels = {{"kubernetes.io/service-name", "bank"},
                               {"endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"}};
  const SlicePlan plan = plan_mirror(endpoints, {});
  const api::StringMap& labels = plan.created.at(0).metadata.labels;
  EXPECT_EQ(labels.at("kubernetes.io/service-name"), "ext");
  EXPECT_EQ(labels.at("endpointslice.kubernetes.io/managed-by"), "endpointslicemirroring-controller.k8s.io");
}

TEST(MirrorPlan, WritesNothingThatIsThere) {
  int names = 0;
  std::vector<SlicePtr> slices = after(plan_mirror(written(), {}), {}, names);
  EXPECT_TRUE(plan_mirror(written(), slices).empty());
  api::Endpoints changed = written();
  changed.subsets[0].addresses.erase(changed.subsets[0].addresses.begin());
  const SlicePlan fewer = plan_mirror(changed, slices);
  EXPECT_EQ(fewer.updated.size(), 1u);
  EXPECT_TRUE(fewer.created.empty() && fewer.deleted.empty());
  changed = written();
  changed.metadata.labels["app"] = "other";
  EXPECT_EQ(plan_mirror(changed, slices).updated.size(), 2u);
  changed.metadata.uid = "e2";  // another object of that name
  const SlicePlan anew = plan_mirror(changed, slices);
  EXPECT_EQ(anew.deleted.size(), 2u);
  EXPECT_EQ(anew.created.size(), 2u);
  changed = written();
  changed.subsets.clear();
  EXPECT_EQ(plan_mirror(changed, slices).deleted.size(), 2u);
}

TEST(MirrorPlan, AnAddressThatIsReadyIsReady) {
  api::Endpoints twice = written();
  twice.subsets[0].not_ready = {{.ip = "10.1.1.1", .hostname = "a", .node_name = {}, .target = {}}};
  const SlicePlan plan = plan_mirror(twice, {});
  ASSERT_EQ(plan.created[0].endpoints.size(), 1u);
  EXPECT_EQ(plan.created[0].endpoints[0].ready, true);
}

TEST(MirrorPlan, AThousandAddressesOfASubset) {
  api::Endpoints many = written();
  many.subsets[0].addresses.clear();
  for (int i = 0; i < 1002; ++i) {
    many.subsets[0].addresses.push_back(
        {.ip = fmt::format("10.1.{}.{}", i / 250, i % 250 + 1), .hostname = {}, .node_name = {}, .target = {}});
  }
  const SlicePlan plan = plan_mirror(many, {});
  ASSERT_EQ(plan.created.size(), 1u);
  EXPECT_EQ(plan.created[0].endpoints.size(), 1000u);
  EXPECT_EQ(unmirrored_addresses(many), 3u);
  many.subsets.push_back(many.subsets[0]);
  for (api::EndpointAddress& address : many.subsets[1].addresses) address.ip.replace(0, 4, "10.2");
  const SlicePlan two = plan_mirror(many, {});
  ASSERT_EQ(two.created.size(), 2u) << "the same ports, more than one slice takes";
  EXPECT_EQ(two.created[0].endpoints.size() + two.created[1].endpoints.size(), 2000u);
}

TEST(MirrorPlan, WhichEndpointsAreMirrored) {
  api::Service service;
  EXPECT_TRUE(is_mirrored(written(), &service));
  EXPECT_FALSE(is_mirrored(written(), nullptr)) << "no Service";
  service.selector = {{"app", "web"}};
  EXPECT_FALSE(is_mirrored(written(), &service)) << "the Service selects pods";
  service.selector.clear();
  api::Endpoints endpoints = written();
  endpoints.metadata.annotations["control-plane.alpha.kubernetes.io/leader"] = "{}";
  EXPECT_FALSE(is_mirrored(endpoints, &service)) << "a lock";
  endpoints = written();
  for (const std::string text : {"true", "1", "T"}) {
    endpoints.metadata.labels["endpointslice.kubernetes.io/skip-mirror"] = text;
    EXPECT_FALSE(is_mirrored(endpoints, &service)) << text;
  }
  for (const std::string text : {"false", "yes", ""}) {
    endpoints.metadata.labels["endpointslice.kubernetes.io/skip-mirror"] = text;
    EXPECT_TRUE(is_mirrored(endpoints, &service)) << text;
  }
}

/// After any change, one plan is enough and the next one is empty.
TEST(MirrorPlan, IsThereAfterOnePlanFromAnywhere) {
  Rng rng(11);
  int names = 0;
  std::vector<SlicePtr> slices;
  for (int round = 0; round < 300; ++round) {
    api::Endpoints endpoints = written();
    endpoints.subsets.clear();
    std::set<std::string> wanted;
    for (std::uint64_t i = rng.below(4); i > 0; --i) {
      api::EndpointSubset subset;
      const auto port = static_cast<std::int32_t>(80 + rng.below(2));
      subset.ports = {{.name = {}, .port = port, .protocol = "TCP", .app_protocol = {}}};
      for (std::uint64_t j = rng.below(5); j > 0; --j) {
        const std::string ip =
            rng.below(4) == 0 ? fmt::format("fd00::{}", rng.below(5) + 1) : fmt::format("10.1.0.{}", rng.below(9) + 1);
        (rng.below(3) == 0 ? subset.not_ready : subset.addresses)
            .push_back({.ip = ip, .hostname = {}, .node_name = {}, .target = {}});
        wanted.insert(fmt::format("{}:{}", ip, port));
      }
      endpoints.subsets.push_back(std::move(subset));
    }
    slices = after(plan_mirror(endpoints, slices), std::move(slices), names);
    EXPECT_TRUE(plan_mirror(endpoints, slices).empty()) << "round " << round;
    std::multiset<std::string> shown;
    for (const SlicePtr& slice : slices) {
      for (const api::SliceEndpoint& one : slice->endpoints) {
        shown.insert(fmt::format("{}:{}", one.addresses.front(), slice->ports.front().port.value_or(0)));
      }
    }
    EXPECT_EQ(shown, std::multiset<std::string>(wanted.begin(), wanted.end())) << "round " << round;
  }
}

}  // namespace
}  // namespace spillway::endpoints
