// Cases that no vector has: claims of others, names, revisions, and the most that one pass does.
#include "policy/workloads/stateful_plan.h"

#include "api/json/json.h"
#include "policy/workloads/stateful_claims.h"
#include "policy/workloads/stateful_revisions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace spillway::workloads {
namespace {

api::StatefulSet database(std::int32_t replicas) {
  api::StatefulSet set;
  set.metadata.name = "db";
  set.metadata.ns = "default";
  set.metadata.uid = "set-uid";
  set.replicas = replicas;
  set.pod_management_policy = "OrderedReady";
  set.update_strategy = "RollingUpdate";
  set.claim_templates = api::parse_json(R"([{"metadata":{"name":"data"}},{"metadata":{"name":"logs"}}])").value();
  return set;
}

api::Pod pod_of_database(std::int32_t ordinal) {
  api::Pod pod;
  pod.metadata.name = "db-" + std::to_string(ordinal);
  pod.metadata.uid = "pod-uid";
  return pod;
}

api::OwnerReference owner(std::string api_version, std::string kind, std::string name, std::string uid,
                          std::optional<bool> controller) {
  return {.api_version = std::move(api_version),
          .kind = std::move(kind),
          .name = std::move(name),
          .uid = std::move(uid),
          .controller = controller};
}

TEST(StatefulClaims, HaveTheOwnersOfTheirPolicy) {
  for (const std::string deleted : {"Retain", "Delete"}) {
    for (const std::string scaled : {"Retain", "Delete"}) {
      for (const std::int32_t ordinal : {0, 7}) {
        SCOPED_TRACE(deleted + " " + scaled + " " + std::to_string(ordinal));
        api::StatefulSet set = database(3);
        set.claims_when_deleted = deleted;
        set.claims_when_scaled = scaled;
        const api::Pod pod = pod_of_database(ordinal);
        api::PersistentVolumeClaim claim;
        const bool away = ordinal == 7;
        std::vector<std::string> wanted;
        if (deleted == "Delete" && !(scaled == "Delete" && away)) wanted.emplace_back("StatefulSet");
        if (scaled == "Delete" && away) wanted.emplace_back("Pod");
        EXPECT_EQ(is_owned_as_asked(claim, set, pod, ordinal), wanted.empty());
        claim.metadata.owner_references = owners_asked(claim, set, pod, ordinal);
        std::vector<std::string> kinds;
        for (const api::OwnerReference& each : claim.metadata.owner_references) kinds.push_back(each.kind);
        EXPECT_EQ(kinds, wanted);
        EXPECT_TRUE(is_owned_as_asked(claim, set, pod, ordinal));
      }
    }
  }
}

TEST(StatefulClaims, OfOthersAreLeftAlone) {
  api::StatefulSet set = database(3);
  set.claims_when_deleted = "Delete";
  const api::Pod pod = pod_of_database(0);
  api::PersistentVolumeClaim claim;
  claim.metadata.owner_references = {owner("example.com/v1", "Backup", "b", "b-uid", true)};
  EXPECT_TRUE(is_owned_as_asked(claim, set, pod, 0));
  // The set's own reference is removed where another object controls the claim.
  claim.metadata.owner_references.push_back(owner("apps/v1", "StatefulSet", "db", "set-uid", std::nullopt));
  EXPECT_FALSE(is_owned_as_asked(claim, set, pod, 0));
  EXPECT_EQ(owners_asked(claim, set, pod, 0).size(), 1U);
  // A reference to a predecessor of the same name is left to the garbage collector.
  claim.metadata.owner_references = {owner("apps/v1", "StatefulSet", "db", "old-uid", true)};
  EXPECT_TRUE(is_owned_as_asked(claim, set, pod, 0));
}

TEST(StatefulClaims, OfAPodThatIsGoneAreWaitedFor) {
  api::StatefulSet set = database(3);
  api::PersistentVolumeClaim claim;
  claim.metadata.owner_references = {owner("v1", "Pod", "db-1", "old-uid", true)};
  EXPECT_FALSE(goes_with_predecessor(claim, set, "db-1"));
  set.claims_when_scaled = "Delete";
  EXPECT_TRUE(goes_with_predecessor(claim, set, "db-1"));
  EXPECT_FALSE(goes_with_predecessor(claim, set, "db-11"));
}

TEST(StatefulPlan, NamesHaveOrdinals) {
  EXPECT_EQ(name_and_ordinal("db-3"), std::pair(std::string_view("db"), 3));
  EXPECT_EQ(name_and_ordinal("a-b-0"), std::pair(std::string_view("a-b"), 0));
  for (const std::string_view name :
       {"db", "db-", "-", "", "db-x", "db-1x", "db--", "db-2147483648", "db-+1", "db- 1"}) {
    EXPECT_EQ(name_and_ordinal(name), std::nullopt) << name;
  }
}

TEST(StatefulPlan, OneSyncIsBounded) {
  api::StatefulSet set = database(std::numeric_limits<std::int32_t>::max());
  set.claim_templates = api::Json();
  set.first_ordinal = std::numeric_limits<std::int32_t>::max() - 3;
  const std::vector<PodPtr> none;
  const std::function<ClaimPtr(const std::string&)> no_claim = [](const std::string&) { return ClaimPtr(); };
  const api::ControllerRevision revision;
  const auto steps = [&] { return plan_stateful({set, none, no_claim, revision, revision}, WallTime()).steps.size(); };
  EXPECT_EQ(steps(), 1U);
  set.pod_management_policy = "Parallel";
  EXPECT_EQ(steps(), 4U);  // ordinals have 31 bits
  set.first_ordinal = 0;
  EXPECT_EQ(steps(), kStatefulBurstMax);
}

TEST(StatefulPlan, TheNextPodWaitsUntilThoseBeforeAreAvailable) {
  api::StatefulSet set = database(2);
  set.claim_templates = api::Json();
  set.min_ready_seconds = 60;
  const WallTime since(seconds(1'000'000));
  api::Pod pod = pod_of_database(0);
  pod.metadata.labels[std::string(kStatefulPodName)] = "db-0";
  pod.status.phase = "Running";
  pod.status.conditions.push_back({.type = "Ready", .status = "True", .last_transition_time = since});
  const std::vector<PodPtr> pods{std::make_shared<const api::Pod>(pod)};
  const std::function<ClaimPtr(const std::string&)> no_claim = [](const std::string&) { return ClaimPtr(); };
  const api::ControllerRevision revision;
  const StatefulView view{set, pods, no_claim, revision, revision};
  const StatefulPlan early = plan_stateful(view, since + seconds(20));
  EXPECT_TRUE(early.steps.empty());
  EXPECT_EQ(early.status.available_replicas, 0);
  EXPECT_EQ(early.requeue_after, Duration(seconds(40)));
  const StatefulPlan later = plan_stateful(view, since + seconds(60));
  EXPECT_EQ(later.steps.size(), 1U);
  EXPECT_EQ(later.status.available_replicas, 1);
}

/// Since Kubernetes 1.34; before, it was enough that the pod was ready.
TEST(StatefulPlan, AnUpdateWaitsUntilTheLastPodIsAvailable) {
  api::StatefulSet set = database(2);
  set.claim_templates = api::Json();
  set.pod_management_policy = "Parallel";
  set.min_ready_seconds = 60;
  const WallTime since(seconds(1'000'000));
  api::ControllerRevision old;
  old.metadata.name = "db-old";
  api::ControllerRevision update;
  update.metadata.name = "db-new";
  std::vector<PodPtr> pods;
  for (const std::int32_t ordinal : {0, 1}) {
    api::Pod pod = pod_of_database(ordinal);
    pod.metadata.labels[std::string(kStatefulPodName)] = pod.metadata.name;
    pod.metadata.labels["controller-revision-hash"] = ordinal == 1 ? "db-new" : "db-old";
    pod.status.phase = "Running";
    pod.status.conditions.push_back({.type = "Ready", .status = "True", .last_transition_time = since});
    pods.push_back(std::make_shared<const api::Pod>(pod));
  }
  const std::function<ClaimPtr(const std::string&)> no_claim = [](const std::string&) { return ClaimPtr(); };
  const StatefulView view{set, pods, no_claim, old, update};
  const auto deletes = [&](seconds after) {
    const StatefulPlan plan = plan_stateful(view, since + after);
    return std::ranges::count_if(plan.steps,
                                 [](const auto& step) { return std::holds_alternative<DeleteStatefulPod>(step); });
  };
  EXPECT_EQ(deletes(seconds(20)), 0);
  EXPECT_EQ(deletes(seconds(60)), 1);
}

TEST(StatefulPlan, APodWaitsForAClaimThatIsOnItsWayOut) {
  const api::StatefulSet set = database(2);
  api::PersistentVolumeClaim claim;
  claim.metadata.name = "data-db-0";
  claim.metadata.deletion_timestamp = WallTime(seconds(1));
  const auto terminating = std::make_shared<const api::PersistentVolumeClaim>(claim);
  const std::vector<PodPtr> none;
  const std::function<ClaimPtr(const std::string&)> claims = [&](const std::string& name) {
    return name == "data-db-0" ? terminating : ClaimPtr();
  };
  const api::ControllerRevision revision;
  const StatefulPlan plan = plan_stateful({set, none, claims, revision, revision}, WallTime());
  const auto* refused = plan.steps.empty() ? nullptr : std::get_if<CannotCreate>(&plan.steps.front());
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->why, "pvc data-db-0 is being deleted");
  for (const StatefulStep& step : plan.steps) EXPECT_EQ(std::get_if<CreateStatefulPod>(&step), nullptr);
}

TEST(StatefulRevisions, HaveUpstreamsNames) {
  const api::Json data =
      api::parse_json(R"({"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":)"
                      R"({"app":"db"}},"spec":{"containers":[{"image":"img:1","name":"c","resources":{}}]}}}})")
          .value();
  EXPECT_EQ(revision_data_hash(data, std::nullopt), "6d9d8768dd");
  EXPECT_EQ(revision_data_hash(data, 0), "8f8848548");
}

TEST(StatefulRevisions, AnOlderServersRevisionHoldsTheSameTemplate) {
  const auto revision_of = [](std::string_view metadata) {
    api::ControllerRevision revision;
    revision.data =
        api::parse_json(fmt::format(R"({{"spec":{{"template":{{"metadata":{},"spec":{{}}}}}}}})", metadata)).value();
    return revision;
  };
  const api::Json today = revision_of(R"({"labels":{"app":"db"}})").data;
  EXPECT_TRUE(holds_data(revision_of(R"({"labels":{"app":"db"}})"), today));
  EXPECT_TRUE(holds_data(revision_of(R"({"creationTimestamp":null,"labels":{"app":"db"}})"), today));
  EXPECT_FALSE(holds_data(revision_of(R"({"creationTimestamp":null,"labels":{"app":"web"}})"), today));
}

TEST(StatefulRevisions, KeepThoseThatAreUsed) {
  api::StatefulSet set = database(1);
  set.revision_history_limit = 1;
  std::vector<RevisionPtr> all;
  for (int number = 1; number <= 5; ++number) {
    api::ControllerRevision revision;
    revision.metadata.name = "db-" + std::to_string(number);
    revision.revision = number;
    all.push_back(std::make_shared<const api::ControllerRevision>(revision));
  }
  api::Pod pod = pod_of_database(0);
  pod.metadata.labels[std::string(kRevisionHash)] = "db-1";
  const std::vector<PodPtr> pods{std::make_shared<const api::Pod>(pod)};
  const auto gone = surplus_revisions(set, all, *all[3], *all[4], pods);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone.front()->metadata.name, "db-2");
}

}  // namespace
}  // namespace spillway::workloads
