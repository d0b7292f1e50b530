// The pods that a rollout takes from old ReplicaSets whose statuses are behind their specifications; all other cases
// are in vectors/workloads.
#include "policy/workloads/deployment_plan.h"

#include "policy/workloads/rollout_bounds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::workloads {
namespace {

api::PodTemplate template_with(std::string_view image) {
  api::PodTemplate made;
  made.labels = {{"app", "web"}};
  made.metadata = api::Json::object({{"labels", api::Json::object({{"app", "web"}})}});
  made.spec = api::Json::object({{"containers", api::Json::array({api::Json::object({{"image", image}})})}});
  return made;
}

/// `unobserved`: changes of the set's size that its status does not show yet.
ReplicaSetPtr set_of(std::string_view image, std::int32_t replicas, std::int32_t available, int unobserved = 0) {
  api::ReplicaSet set;
  set.metadata.name = set.metadata.uid = image;
  set.metadata.creation_timestamp = WallTime(seconds(image == "new" ? 20 : 10));
  set.metadata.labels = {{"app", "web"}};
  set.metadata.annotations[std::string(kRevision)] = image == "new" ? "2" : "1";
  set.metadata.annotations[std::string(kDesiredReplicas)] = "10";
  api::OwnerReference owner;
  owner.kind = "Deployment";
  owner.uid = "d-uid";
  owner.controller = true;
  set.metadata.owner_references = {owner};
  set.pod_template = template_with(image);
  set.replicas = replicas;
  set.status.replicas = set.status.available_replicas = available;
  set.status.observed_generation = 3;
  set.metadata.generation = 3 + unobserved;
  return std::make_shared<const api::ReplicaSet>(std::move(set));
}

/// The size that the old ReplicaSet gets of ten pods, two of which may be missing; nullopt: it stays as it is.
std::optional<std::int32_t> old_size(const ReplicaSetPtr& old, const ReplicaSetPtr& latest) {
  api::Deployment deployment;
  deployment.metadata.name = "web";
  deployment.metadata.uid = "d-uid";
  deployment.replicas = 10;
  deployment.strategy = kRollingUpdate;
  deployment.max_surge = 0;
  deployment.max_unavailable = 2;
  deployment.selector.add({.key = "app", .op = api::LabelRequirement::Op::kIn, .values = {"web"}});
  deployment.pod_template = template_with("new");
  const auto plan = plan_deployment({deployment, {old, latest}, OldPods::kNone}, WallTime());
  EXPECT_TRUE(plan);
  for (const DeploymentWrite& write : plan->writes) {
    const auto* const update = std::get_if<UpdateReplicaSet>(&write);
    if (update != nullptr && update->scaled_from && update->set.metadata.uid == old->metadata.uid)
      return update->set.replicas;
  }
  return std::nullopt;
}

/// The writes for a Deployment of ten pods that counts as scaled.
std::vector<UpdateReplicaSet> plan_scale_of(const ReplicaSetPtr& old, bool paused) {
  api::Deployment deployment;
  deployment.replicas = 10;
  deployment.paused = paused;
  deployment.strategy = kRollingUpdate;
  deployment.max_surge = 0;
  deployment.max_unavailable = 2;
  return plan_scale(deployment, nullptr, {old}, Shares::kPromised);
}

TEST(DeploymentPlan, TakesWhatTheNewPodsMakeUpFor) {
  EXPECT_EQ(old_size(set_of("old", 10, 10), set_of("new", 0, 0)), 8);
  EXPECT_EQ(old_size(set_of("old", 8, 8), set_of("new", 2, 0)), std::nullopt);
  EXPECT_EQ(old_size(set_of("old", 8, 8), set_of("new", 2, 2)), 6);
}

TEST(DeploymentPlan, DoesNotCountPodsThatAreAboutToGo) {
  // Two of the ten were asked to go by an earlier look, and their ReplicaSet has not taken them yet.
  EXPECT_EQ(old_size(set_of("old", 8, 10), set_of("new", 2, 2)), 6) << "4 would leave 6 pods of the 8 promised";
}

TEST(DeploymentPlan, DoesNotCountPodsOfAStatusFromBefore) {
  // The new set was scaled to none and to two again: the two pods in its status are being deleted.
  EXPECT_EQ(old_size(set_of("old", 8, 8), set_of("new", 2, 2, 2)), std::nullopt);
  EXPECT_EQ(old_size(set_of("old", 8, 8, 1), set_of("new", 2, 2)), std::nullopt);
}

std::string sizes_of(const std::vector<UpdateReplicaSet>& updates) {
  std::string text;
  for (const UpdateReplicaSet& update : updates)
    text += fmt::format("{}:{} ", update.set.metadata.uid, update.set.replicas);
  return text;
}

/// A Deployment of so many pods with a surge of two and a quarter missing at most, scaled from `before`.
std::string scaled(std::int32_t before, std::int32_t replicas, const ReplicaSetPtr& old, const ReplicaSetPtr& latest) {
  api::Deployment deployment;
  deployment.replicas = replicas;
  deployment.strategy = kRollingUpdate;
  deployment.max_surge = 2;
  deployment.max_unavailable = "25%";
  const auto with_most = [before](const ReplicaSetPtr& set) {
    api::ReplicaSet made = *set;
    made.metadata.annotations[std::string(kMaxReplicas)] = std::to_string(before + 2);
    return std::make_shared<const api::ReplicaSet>(std::move(made));
  };
  return sizes_of(plan_scale(deployment, with_most(latest), {with_most(old)}, Shares::kPromised));
}

/// Seed 2976 of the swarm: of four pods none of the new ones can be reached when it is scaled to three.
TEST(DeploymentPlan, TakesNoPodThatServesWhereOthersDoNot) {
  EXPECT_EQ(scaled(4, 3, set_of("old", 3, 3), set_of("new", 3, 0)), "old:3 new:2 ") << "three are promised";
  EXPECT_EQ(scaled(4, 3, set_of("old", 3, 0), set_of("new", 3, 3)), "old:2 new:3 ");
  EXPECT_EQ(scaled(10, 6, set_of("old", 9, 8), set_of("new", 3, 1)), "old:6 new:2 ") << "proportion keeps five of six";
  EXPECT_EQ(scaled(10, 6, set_of("old", 6, 6), set_of("new", 6, 0)), "old:5 new:3 ");
}

TEST(DeploymentPlan, ScalesByProportionWhereNoPodServes) {
  EXPECT_EQ(scaled(4, 3, set_of("old", 3, 0), set_of("new", 3, 0)), "old:2 new:3 ");
}

/// A write of an earlier scaling was lost: all pods are there, and the annotation says the size before.
TEST(DeploymentPlan, AStaleAnnotationHoldsUpNoRollout) {
  api::ReplicaSet complete = *set_of("old", 10, 10);
  complete.metadata.annotations[std::string(kMaxReplicas)] = "10";
  api::ReplicaSet stale = complete;
  stale.metadata.annotations[std::string(kDesiredReplicas)] = "12";
  const auto annotation = [](const ReplicaSetPtr& old, bool paused) -> std::string {
    for (const UpdateReplicaSet& each : plan_scale_of(old, paused)) {
      return each.set.metadata.annotations.at(std::string(kDesiredReplicas));
    }
    return "";
  };
  EXPECT_EQ(annotation(std::make_shared<const api::ReplicaSet>(stale), false), "10");
  EXPECT_EQ(annotation(std::make_shared<const api::ReplicaSet>(stale), true), "") << "as upstream";
  EXPECT_EQ(annotation(std::make_shared<const api::ReplicaSet>(complete), false), "");
}

}  // namespace
}  // namespace spillway::workloads
