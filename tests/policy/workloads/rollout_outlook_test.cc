// The outlook of a rollout: the bound that holds, and the pods behind it.
#include "policy/workloads/rollout_outlook.h"

#include "policy/workloads/deployment_status.h"
#include "policy/workloads/pod_template.h"
#include "policy/workloads/rollout_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace spillway::workloads {
namespace {

using policy::ReasonCode;
using policy::Verdict;

constexpr std::string_view kUid = "d-uid";

api::PodTemplate template_of(std::string_view image) {
  api::PodTemplate made;
  made.metadata = api::Json::object();
  made.spec = api::Json::object({{"containers", api::Json::array({api::Json::object({{"image", image}})})}});
  return made;
}

api::OwnerReference owned_by(std::string_view kind, std::string_view uid) {
  api::OwnerReference owner;
  owner.kind = kind;
  owner.uid = uid;
  owner.controller = true;
  return owner;
}

class RolloutOutlook : public ::testing::Test {
 protected:
  RolloutOutlook() {
    deployment.metadata.ns = "default";
    deployment.metadata.name = "web";
    deployment.metadata.uid = kUid;
    deployment.metadata.generation = 2;
    deployment.status.observed_generation = 2;
    deployment.replicas = 4;
    deployment.strategy = kRollingUpdate;
    deployment.max_surge = 1;
    deployment.max_unavailable = 0;
    deployment.pod_template = template_of("new");
  }

  /// Adds a ReplicaSet of the Deployment with this number of pods, the first of them available.
  void add_set(const std::string& name, std::string_view image, std::int32_t pods_wanted, std::int32_t available) {
    api::ReplicaSet set;
    set.metadata.name = name;
    set.metadata.uid = name + "-uid";
    set.metadata.owner_references = {owned_by("Deployment", kUid)};
    set.pod_template = template_of(image);
    set.replicas = set.status.replicas = pods_wanted;
    set.status.available_replicas = available;
    for (std::int32_t i = 0; i < pods_wanted; ++i) {
      api::Pod pod;
      pod.metadata.name = name + "-" + std::to_string(i);
      pod.metadata.owner_references = {owned_by("ReplicaSet", set.metadata.uid)};
      if (i < available) pod.status.conditions.push_back({.type = "Ready", .status = "True"});
      pods.push_back(std::make_shared<const api::Pod>(std::move(pod)));
    }
    sets.push_back(std::make_shared<const api::ReplicaSet>(std::move(set)));
  }

  policy::Decision decide() const { return explain_rollout(deployment, sets, pods, WallTime()); }

  static bool says(const policy::Decision& decision, ReasonCode code) {
    return std::ranges::any_of(decision.reasons, [code](const policy::Reason& each) { return each.code == code; });
  }

  static std::int64_t fact(const policy::Decision& decision, ReasonCode code, std::string_view name) {
    for (const policy::Reason& reason : decision.reasons) {
      const policy::Fact* found = reason.code == code ? find_fact(reason.facts, name) : nullptr;
      if (found != nullptr) return std::get<std::int64_t>(found->value);
    }
    return -1;
  }

  api::Deployment deployment;
  ReplicaSets sets;
  std::vector<PodPtr> pods;
};

TEST_F(RolloutOutlook, BothBoundsHoldWhileTheNewPodIsNotReady) {
  add_set("old", "old", 4, 4);
  add_set("new", "new", 1, 0);
  const policy::Decision decision = decide();
  EXPECT_EQ(decision.verdict, Verdict::kWaits);
  EXPECT_EQ(decision.reasons.front().code, ReasonCode::kSurgeReached);
  EXPECT_EQ(fact(decision, ReasonCode::kSurgeReached, "pods_max"), 5);
  EXPECT_EQ(fact(decision, ReasonCode::kUnavailableReached, "available_min"), 4);
  ASSERT_EQ(decision.candidates.size(), 1U);
  EXPECT_EQ(decision.candidates[0].subject.name, "new-0");
}

TEST_F(RolloutOutlook, NoBoundIsNamedWhileThereIsRoom) {
  deployment.max_surge = 2;
  deployment.max_unavailable = 1;
  add_set("old", "old", 4, 4);
  add_set("new", "new", 1, 1);
  const policy::Decision decision = decide();
  EXPECT_FALSE(says(decision, ReasonCode::kSurgeReached));
  EXPECT_FALSE(says(decision, ReasonCode::kUnavailableReached));
  EXPECT_TRUE(says(decision, ReasonCode::kRolloutMoves));
}

TEST_F(RolloutOutlook, APausePrecedesAllBounds) {
  deployment.paused = true;
  add_set("old", "old", 4, 4);
  const policy::Decision decision = decide();
  EXPECT_EQ(decision.reasons.front().code, ReasonCode::kRolloutPaused);
  EXPECT_FALSE(says(decision, ReasonCode::kSurgeReached));
}

TEST_F(RolloutOutlook, WhoRecreatesWaitsForTheOldPods) {
  deployment.strategy = kRecreate;
  add_set("old", "old", 0, 0);
  api::Pod terminating;
  terminating.metadata.name = "old-0";
  terminating.metadata.deletion_timestamp = WallTime();
  terminating.metadata.owner_references = {owned_by("ReplicaSet", "old-uid")};
  pods.push_back(std::make_shared<const api::Pod>(terminating));
  EXPECT_EQ(fact(decide(), ReasonCode::kOldPodsLeave, "pods"), 1);
}

TEST_F(RolloutOutlook, TheDeadlineAndRefusalsAreNamed) {
  add_set("new", "new", 4, 0);
  deployment.progress_deadline_seconds = 600;
  deployment.status.conditions.push_back(
      {std::string(kProgressing), "False", std::string(kProgressDeadlineExceeded), "", std::nullopt, std::nullopt});
  api::ReplicaSet refused = *sets[0];
  refused.conditions.push_back(
      {std::string(kReplicaFailure), "True", "FailedCreate", "no", std::nullopt, std::nullopt});
  sets[0] = std::make_shared<const api::ReplicaSet>(refused);
  const policy::Decision decision = decide();
  EXPECT_EQ(fact(decision, ReasonCode::kDeadlineExceeded, "deadline_seconds"), 600);
  EXPECT_TRUE(says(decision, ReasonCode::kPodsRefused));
}

TEST_F(RolloutOutlook, ACompleteOneRests) {
  add_set("new", "new", 4, 4);
  deployment.status.replicas = deployment.status.updated_replicas = deployment.status.available_replicas = 4;
  EXPECT_EQ(decide().verdict, Verdict::kRests);
  deployment.metadata.generation = 3;
  const policy::Decision unseen = decide();
  EXPECT_EQ(unseen.verdict, Verdict::kWaits);
  EXPECT_EQ(unseen.reasons.front().code, ReasonCode::kRolloutUnobserved);
}

TEST_F(RolloutOutlook, OfManyPodsTheFirstAreNamed) {
  deployment.replicas = 30;
  add_set("new", "new", 30, 5);
  const policy::Decision decision = decide();
  EXPECT_EQ(decision.candidates.size(), kPodsNamedMax);
  EXPECT_EQ(decision.candidates_total, 25);
}

TEST(TemplateMatch, QuantitiesAreComparedByValueAndEmptyIsAbsent) {
  const api::Json one =
      api::parse_json(R"({"metadata":{"labels":{"a":"b","pod-template-hash":"x"}},"spec":{"containers":
      [{"name":"c","args":[],"resources":{"requests":{"memory":"1Gi","cpu":"1"}}}]}})")
          .value();
  const api::Json same = api::parse_json(R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":
      [{"name":"c","resources":{"requests":{"memory":"1024Mi","cpu":"1000m"}}}]}})")
                             .value();
  const api::Json other = api::parse_json(R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":
      [{"name":"c","resources":{"requests":{"memory":"1025Mi","cpu":"1"}}}]}})")
                              .value();
  EXPECT_TRUE(same_template(one, same));
  EXPECT_FALSE(same_template(one, other));
  EXPECT_NE(template_hash(one, std::nullopt), template_hash(one, 0));
}

TEST(TemplateHash, DiffersWhereOnlyAFieldOfNewerKubernetesDiffers) {
  const auto hash_of = [](const std::string& container, const std::string& more) {
    return template_hash(
        api::parse_json(R"({"spec":{"containers":[{"name":"main","image":"a")" + container + "}]" + more + "}}")
            .value(),
        std::nullopt);
  };
  const std::string plain = hash_of("", "");
  for (const std::string container :
       {R"(,"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}])",
        R"(,"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[43]}}])",
        R"(,"env":[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"p","key":"k"}}}])"}) {
    EXPECT_NE(hash_of(container, ""), plain) << container;
  }
  EXPECT_NE(hash_of(R"(,"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}])", ""),
            hash_of(R"(,"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[43]}}])", ""));
  EXPECT_NE(hash_of("", R"(,"hostnameOverride":"h")"), plain);
  EXPECT_NE(hash_of("", R"(,"resources":{"limits":{"cpu":"1"}})"), plain);
}

}  // namespace
}  // namespace spillway::workloads
