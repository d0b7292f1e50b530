// The entries of an overview that depend on a second list: pods of one owner, the pods of a Service, the claims of a
// pod. Each is looked for in its own namespace only.
#include "policy/outlook/overview.h"

#include "policy/outlook/outlook_facts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::outlook {
namespace {

const WallTime kNow = at("2026-11-26T12:00:00Z");

api::Pod pod_of(std::string_view ns, std::string_view name, std::string_view owner = {}) {
  api::Pod pod;
  pod.metadata.ns = ns;
  pod.metadata.name = name;
  pod.metadata.labels = {{"app", "web"}};
  pod.metadata.creation_timestamp = kNow - minutes(5);
  pod.status.phase = "Pending";
  if (!owner.empty()) {
    api::OwnerReference reference;
    reference.kind = "ReplicaSet";
    reference.name = owner;
    reference.controller = true;
    pod.metadata.owner_references = {reference};
  }
  return pod;
}

workloads::PodPtr shared(api::Pod pod) {
  return std::make_shared<const api::Pod>(std::move(pod));
}

std::vector<std::string> entries(const Overview& overview) {
  std::vector<std::string> found;
  for (const Concern& each : overview.concerns) {
    found.push_back(fmt::format("{} {}/{} +{}", each.subject.kind, each.subject.ns, each.subject.name, each.more));
  }
  return found;
}

TEST(Overviews, PodsOfOneOwnerAndTroubleAreOneEntry) {
  OverviewScene scene;
  for (const char* ns : {"a", "b"}) {
    for (const char* owner : {"x", "y"}) {
      for (int i = 0; i < 3; ++i) scene.pods.push_back(shared(pod_of(ns, fmt::format("{}{}", owner, i), owner)));
    }
  }
  api::Pod failed = pod_of("b", "y3", "y");
  failed.status.phase = "Failed";
  scene.pods.push_back(shared(failed));
  scene.pods.push_back(shared(pod_of("b", "z")));
  scene.pods.push_back(shared(pod_of("b", "zz")));
  EXPECT_EQ(entries(overview_of(scene, kNow)),
            (std::vector<std::string>{"Pod a/x0 +2", "Pod a/y0 +2", "Pod b/x0 +2", "Pod b/y0 +2", "Pod b/y3 +0",
                                      "Pod b/z +0", "Pod b/zz +0"}));
}

TEST(Overviews, AServiceHasThePodsOfItsNamespaceThatHaveNotEnded) {
  OverviewScene scene;
  api::Pod ready = pod_of("a", "p");
  ready.status.phase = "Running";
  ready.status.pod_ip = "10.0.0.1";
  api::PodCondition condition;
  condition.type = "Ready";
  condition.status = "True";
  ready.status.conditions = {condition};
  api::Pod over = ready;
  over.metadata.ns = "b";
  over.status.phase = "Succeeded";
  scene.pods = {shared(ready), shared(over)};
  for (const char* ns : {"a", "b", "c"}) {
    api::Service service;
    service.metadata.ns = ns;
    service.metadata.name = "s";
    service.selector = {{"app", "web"}};
    scene.services.push_back(std::make_shared<const api::Service>(service));
  }
  EXPECT_EQ(entries(overview_of(scene, kNow)), (std::vector<std::string>{"Service b/s +0", "Service c/s +0"}));
}

TEST(Overviews, APodWaitsForAClaimOfItsNamespace) {
  OverviewScene scene;
  for (const char* ns : {"a", "b"}) {
    api::Pod pod = pod_of(ns, "p");
    api::Volume volume;
    volume.source = "persistentVolumeClaim";
    volume.definition = api::Json::object({{"claimName", "c"}});
    pod.spec.volumes = {volume};
    scene.pods.push_back(shared(pod));
  }
  api::PersistentVolumeClaim claim;
  claim.metadata.ns = "b";
  claim.metadata.name = "c";
  claim.status.phase = "Pending";
  scene.claims.push_back(std::make_shared<const api::PersistentVolumeClaim>(claim));
  const Overview overview = overview_of(scene, kNow);
  ASSERT_GE(overview.concerns.size(), 2U);
  EXPECT_EQ(overview.concerns[0].remark.code, Code::kPodUnschedulable) << "the claim is of another namespace";
  EXPECT_EQ(overview.concerns[1].remark.code, Code::kPodClaim);
}

}  // namespace
}  // namespace spillway::outlook
