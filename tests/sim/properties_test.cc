// The named properties: their table, and that each audit finds the violations for which it was written.
#include "api/object/taint.h"
#include "sim/properties/act_audit.h"
#include "sim/properties/budget_audit.h"
#include "sim/properties/eviction_audit.h"
#include "sim/properties/property.h"
#include "sim/properties/rollout_audit.h"
#include "sim/properties/verdicts.h"
#include "sim/properties/watch_audit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace spillway::sim {
namespace {

Now at(int second) {
  return {Instant(seconds(second)), WallTime(seconds(second))};
}

TEST(Properties, HaveOneNameEachAndAreInTheDocumentation) {
  std::ifstream stream("docs/properties.md");  // tests run in the project folder
  std::set<std::string> documented;
  for (std::string line; std::getline(stream, line) && !line.starts_with("## ");) {
    if (line.starts_with("| ") && !line.starts_with("| name |") && !line.starts_with("| --- |"))
      documented.insert(line);
  }
  std::set<std::string> known;
  for (const PropertyInfo& each : all_properties()) {
    EXPECT_EQ(name_of(each.property), each.name);
    known.insert(fmt::format("| {} | {} | {} |", each.name, each.promise, each.source));
  }
  EXPECT_EQ(known.size(), all_properties().size());
  EXPECT_EQ(documented, known);
}

class Audits : public ::testing::Test {
 protected:
  std::set<Property> found() const { return verdicts_.violated(); }

  Verdicts verdicts_;
};

api::Node silent(const std::string& name, bool tainted) {
  api::Node node;
  node.metadata.name = node.metadata.uid = name;
  node.status.conditions.push_back({});
  node.status.conditions.back().type = "Ready";
  node.status.conditions.back().status = "Unknown";
  if (tainted)
    node.spec.taints.push_back({std::string(api::kTaintNodeUnreachable), "", std::string(api::kNoExecute), {}});
  return node;
}

TEST_F(Audits, FindMoreActsThanABrakeAllows) {
  ActAudit audit({.node_eviction_rate = 1000,
                  .mark = {},
                  .mark_in_zone = {},
                  .taint = ActAudit::Limit{2, minutes(1)},
                  .taint_in_zone = {},
                  .delete_pod = {}},
                 verdicts_);
  audit.on_node(nullptr, silent("a", true), at(0));
  audit.on_node(nullptr, silent("b", true), at(54));
  EXPECT_TRUE(found().empty());
  audit.on_restart(at(55));
  audit.on_node(nullptr, silent("c", true), at(56));
  EXPECT_TRUE(found().empty()) << "whoever came back knows of no act";
  audit.on_node(nullptr, silent("d", true), at(130));
  audit.on_node(nullptr, silent("e", true), at(140));
  EXPECT_TRUE(found().empty());
  audit.on_node(nullptr, silent("f", true), at(150));
  EXPECT_EQ(found(), std::set{Property::kActLimits});
}

api::Pod pod(const std::string& name, std::int64_t request_mib, std::int32_t priority = 0) {
  api::Pod made;
  made.metadata.ns = "default";
  made.metadata.name = made.metadata.uid = name;
  made.spec.priority = priority;
  made.spec.containers.push_back({});
  made.spec.containers.back().resources.requests["memory"] = *api::parse_quantity(fmt::format("{}Mi", request_mib));
  made.status.phase = "Running";
  return made;
}

TEST_F(Audits, FindAProtectedVictim) {
  EvictionAudit audit(verdicts_);
  const api::Pod calm = pod("calm", 200);
  const api::Pod hog = pod("hog", 10);
  const std::vector<EvictionAudit::Running> close{{&calm, mebibytes(190)}, {&hog, mebibytes(30)}};
  audit.on_decision("calm", EvictionAudit::Cause::kMemory, close, at(1));
  EXPECT_TRUE(found().empty()) << "too close to tell";
  EvictionAudit other(verdicts_);
  const std::vector<EvictionAudit::Running> clear{{&calm, mebibytes(100)}, {&hog, mebibytes(100)}};
  other.on_decision("hog", EvictionAudit::Cause::kMemory, clear, at(1));
  EXPECT_TRUE(found().empty());
  other.on_decision("calm", EvictionAudit::Cause::kMemory, clear, at(6));
  EXPECT_TRUE(found().empty()) << "the hog goes already";
  EvictionAudit third(verdicts_);
  third.on_decision("calm", EvictionAudit::Cause::kMemory, clear, at(3));
  EXPECT_EQ(found(), std::set{Property::kProtectedPods});
}

TEST_F(Audits, FindAVictimOfHigherPriority) {
  EvictionAudit audit(verdicts_);
  const api::Pod high = pod("high", 10, 1000);
  const api::Pod low = pod("low", 10);
  const std::vector<EvictionAudit::Running> running{{&high, mebibytes(300)}, {&low, mebibytes(100)}};
  audit.on_decision("high", EvictionAudit::Cause::kMemory, running, at(1));
  EXPECT_EQ(found(), std::set{Property::kProtectedPods});
}

TEST_F(Audits, FindACriticalVictim) {
  EvictionAudit audit(verdicts_);
  const api::Pod critical = pod("critical", 10, 2'000'000'000);
  const std::vector<EvictionAudit::Running> running{{&critical, mebibytes(300)}};
  audit.on_decision("critical", EvictionAudit::Cause::kMemory, running, at(1));
  EXPECT_EQ(found(), std::set{Property::kProtectedPods});
}

TEST_F(Audits, FindAnEvictionThatIsNotInTheJournal) {
  EvictionAudit audit(verdicts_);
  const api::Pod before = pod("a", 10);
  api::Pod after = before;
  after.status.reason = "Evicted";
  after.status.message = "Pod was rejected: the node is short of memory";
  audit.on_pod(before, after, at(1));
  EXPECT_TRUE(found().empty());
  after.status.message = "The node was low on resource: memory";
  audit.on_decision("a", EvictionAudit::Cause::kMemory, {}, at(1));
  audit.on_pod(before, after, at(2));
  EXPECT_TRUE(found().empty());
  after.metadata.uid = "b";
  audit.on_pod(before, after, at(3));
  EXPECT_EQ(found(), std::set{Property::kJournalFirst});
}

TEST_F(Audits, FindAVictimThatStartsAgain) {
  EvictionAudit audit(verdicts_);
  audit.on_start("a", at(0));
  audit.on_decision("a", EvictionAudit::Cause::kMemory, {}, at(1));
  EXPECT_TRUE(found().empty());
  audit.on_start("a", at(2));
  EXPECT_EQ(found(), std::set{Property::kEvictionsResume});
}

TEST_F(Audits, FindAVictimDecidedOnTwice) {
  EvictionAudit audit(verdicts_);
  audit.on_decision("a", EvictionAudit::Cause::kMemory, {}, at(1));
  audit.on_decision("a", EvictionAudit::Cause::kMemory, {}, at(2));
  EXPECT_EQ(found(), std::set{Property::kEvictionsResume});
}

TEST_F(Audits, FindASecondVictimBesideTheFirst) {
  EvictionAudit audit(verdicts_);
  const api::Pod first = pod("first", 10);
  const api::Pod second = pod("second", 10);
  const std::vector<EvictionAudit::Running> both{{&first, mebibytes(100)}, {&second, mebibytes(100)}};
  const std::vector<EvictionAudit::Running> last{{&second, mebibytes(100)}};
  audit.on_decision("first", EvictionAudit::Cause::kMemory, both, at(1));
  audit.on_decision("second", EvictionAudit::Cause::kMemory, last, at(2));
  EXPECT_TRUE(found().empty()) << "the first one has ended";
  EvictionAudit slow(verdicts_);
  slow.on_decision("first", EvictionAudit::Cause::kMemory, both, at(1));
  slow.on_decision("second", EvictionAudit::Cause::kMemory, both, at(6));
  EXPECT_TRUE(found().empty()) << "the first one does not end";
  EvictionAudit crashed(verdicts_);
  crashed.on_decision("first", EvictionAudit::Cause::kMemory, both, at(1));
  crashed.on_return("first", at(5));
  crashed.on_decision("second", EvictionAudit::Cause::kMemory, both, at(7));
  EXPECT_EQ(found(), std::set{Property::kEvictionsResume});
}

TEST_F(Audits, LetAllGoThatAreAboveLimitsOfTheirOwn) {
  EvictionAudit audit(verdicts_);
  const api::Pod first = pod("first", 10);
  const api::Pod second = pod("second", 10);
  const std::vector<EvictionAudit::Running> both{{&first, mebibytes(100)}, {&second, mebibytes(100)}};
  audit.on_decision("first", EvictionAudit::Cause::kOwnLimit, both, at(1));
  audit.on_decision("second", EvictionAudit::Cause::kOwnLimit, both, at(1));
  EXPECT_TRUE(found().empty());
  EvictionAudit short_of_disk(verdicts_);
  short_of_disk.on_decision("first", EvictionAudit::Cause::kOtherShortage, both, at(1));
  short_of_disk.on_decision("second", EvictionAudit::Cause::kOtherShortage, both, at(1));
  EXPECT_EQ(found(), std::set{Property::kEvictionsResume});
}

TEST(Verdicts, DifferByKindOfObject) {
  Verdicts verdicts;
  const Now now = at(1);
  verdicts.violate({Property::kReachesRest, "Pod"}, now, "a pod stays");
  verdicts.violate({Property::kReachesRest, "Node"}, now, "a node is not ready");
  verdicts.violate({Property::kReachesRest, "Pod"}, now, "another pod stays");
  verdicts.violate(Property::kTaintRate, now, "too many");
  const std::vector<Violated> kinds{
      {Property::kReachesRest, "Pod"}, {Property::kReachesRest, "Node"}, {Property::kTaintRate, "Node"}};
  EXPECT_EQ(verdicts.kinds(), kinds);
  EXPECT_EQ(collection_of("/registry/pods/default/web-1"), "/registry/pods/");
  EXPECT_EQ(collection_of("/registry/pods/"), "/registry/pods/");
  EXPECT_EQ(collection_of("health"), "health");
}

class Budgets : public Audits {
 protected:
  Budgets() {
    api::PodDisruptionBudget budget;
    budget.metadata.ns = "default";
    budget.metadata.name = "web";
    budget.selector = {.requirements = {}, .nothing = false};
    budget.min_available = api::Json(2);
    audit_.on_budget(nullptr, &budget, at(0));
    for (api::Pod& each : pods_) {
      each.status.conditions.push_back({.type = "Ready", .status = "True"});
      audit_.on_pod(nullptr, &each, at(0));
    }
  }

  void evict(const api::Pod& before, Now now) {
    api::Pod after = before;
    after.status.conditions.push_back(
        {.type = "DisruptionTarget", .status = "True", .reason = "EvictionByEvictionAPI"});
    audit_.on_pod(&before, &after, now);
  }

  std::vector<api::Pod> pods_{pod("a", 1), pod("b", 1), pod("c", 1)};
  BudgetAudit audit_{verdicts_};
};

TEST_F(Budgets, FindAnEvictionTooMany) {
  evict(pods_[0], at(60));
  EXPECT_TRUE(found().empty());
  evict(pods_[1], at(61));
  EXPECT_EQ(found(), std::set{Property::kBudgetsKept});
}

TEST_F(Budgets, AllowEvictionsBeforeTheChangeIsKnown) {
  audit_.on_pod(pods_.data(), nullptr, at(60));
  evict(pods_[1], at(61));
  EXPECT_TRUE(found().empty());
  evict(pods_[2], at(71));
  EXPECT_EQ(found(), std::set{Property::kBudgetsKept});
}

/// A Deployment of five pods, one of which may be missing, and its first ReplicaSet.
class Rollouts : public Audits {
 protected:
  Rollouts() {
    deployment_.metadata = named("web", nullptr);
    deployment_.replicas = 5;
    deployment_.strategy = "RollingUpdate";
    deployment_.max_unavailable = api::Json("20%");
    deployment_.max_surge = api::Json(1);
    audit_.on_deployment(nullptr, &deployment_, at(0));
    resize("old", 5, 0, at(0));
    for (int i = 0; i < 5; ++i) ready(fmt::format("old-{}", i), "old", at(1));
    resize("old", 5, 5, at(2));
  }

  static api::ObjectMeta named(const std::string& name, const api::OwnerReference* owner) {
    api::ObjectMeta metadata;
    metadata.ns = "default";
    metadata.name = metadata.uid = name;
    if (owner != nullptr) metadata.owner_references.push_back(*owner);
    return metadata;
  }

  static api::OwnerReference owner(const char* kind, const std::string& name) {
    api::OwnerReference reference;
    reference.api_version = "apps/v1";
    reference.kind = kind;
    reference.name = reference.uid = name;
    reference.controller = true;
    return reference;
  }

  void resize(const std::string& name, std::int32_t replicas, std::int32_t available, Now now) {
    api::ReplicaSet set;
    const api::OwnerReference of = owner("Deployment", "web");
    set.metadata = named(name, &of);
    set.replicas = replicas;
    set.status.available_replicas = available;
    const auto before = sets_.find(name);
    audit_.on_replica_set(before == sets_.end() ? nullptr : &before->second, &set, now);
    sets_.insert_or_assign(name, set);
  }

  void ready(const std::string& name, const std::string& set, Now now) {
    api::Pod made;
    const api::OwnerReference of = owner("ReplicaSet", set);
    made.metadata = named(name, &of);
    made.status.phase = "Running";
    made.status.conditions.push_back({});
    made.status.conditions.back().type = "Ready";
    made.status.conditions.back().status = "True";
    change(name, std::move(made), now);
  }

  void unready(const std::string& name, Now now) {
    api::Pod pod = pods_.at(name);
    pod.status.conditions.back().status = "False";
    change(name, std::move(pod), now);
  }

  void remove(const std::string& name, Now now) {
    api::Pod pod = pods_.at(name);
    pod.metadata.deletion_timestamp = now.wall;
    change(name, std::move(pod), now);
  }

  void change(const std::string& name, api::Pod pod, Now now) {
    const auto before = pods_.find(name);
    audit_.on_pod(before == pods_.end() ? nullptr : &before->second, &pod, now);
    pods_.insert_or_assign(name, std::move(pod));
  }

  RolloutAudit audit_{verdicts_};
  api::Deployment deployment_;
  std::map<std::string, api::ReplicaSet> sets_;
  std::map<std::string, api::Pod> pods_;
};

TEST_F(Rollouts, MayTakeAsManyAsMayBeMissing) {
  resize("new", 1, 0, at(3));
  resize("old", 4, 5, at(4));
  remove("old-0", at(5));
  EXPECT_TRUE(found().empty());
  resize("old", 3, 5, at(6));
  EXPECT_EQ(found(), std::set{Property::kRolloutAvailability});
}

TEST_F(Rollouts, MayNotCountPodsThatAreAboutToGo) {
  resize("new", 1, 0, at(3));
  resize("old", 4, 5, at(4));
  ready("new-0", "new", at(5));
  EXPECT_TRUE(found().empty());
  resize("old", 2, 5, at(6));  // five old ones and a new one are available, and an old one is deleted
  EXPECT_EQ(found(), std::set{Property::kRolloutAvailability});
}

TEST_F(Rollouts, MayNotDeleteMoreThanAReplicaSetIsAskedToLose) {
  remove("old-0", at(3));
  EXPECT_TRUE(found().empty()) << "one may be missing";
  remove("old-1", at(4));
  EXPECT_EQ(found(), std::set{Property::kRolloutAvailability});
}

TEST_F(Rollouts, AreNotToBlameForWhatOthersTake) {
  unready("old-0", at(3));
  audit_.on_removal_by_hand(api::PodKey{"default", "old-1"});
  remove("old-1", at(3));
  EXPECT_TRUE(found().empty());
  resize("old", 2, 5, at(4));
  EXPECT_TRUE(found().empty()) << "two are kept, and two are lost to others";
  resize("old", 1, 5, at(5));
  EXPECT_EQ(found(), std::set{Property::kRolloutAvailability});
}

TEST_F(Rollouts, MayNotRelyForEverOnWhatOthersTook) {
  unready("old-0", at(3));
  resize("old", 5, 4, at(4));
  ready("old-0", "old", at(5));
  resize("old", 5, 5, at(6));
  resize("old", 4, 5, at(60));
  EXPECT_TRUE(found().empty());
  resize("old", 5, 5, at(61));
  resize("new", 1, 0, at(200));
  resize("old", 3, 5, at(201));
  EXPECT_EQ(found(), std::set{Property::kRolloutAvailability});
}

TEST_F(Rollouts, KeepOnlyWhatIsAskedForNow) {
  api::Deployment fewer = deployment_;
  fewer.replicas = 2;
  audit_.on_deployment(&deployment_, &fewer, at(3));
  audit_.on_deployment(&fewer, &deployment_, at(4));
  resize("old", 2, 5, at(5));
  EXPECT_TRUE(found().empty()) << "its controller has not heard of the second change";
  resize("old", 5, 5, at(6));
  resize("new", 1, 0, at(200));
  resize("old", 2, 5, at(201));
  EXPECT_EQ(found(), std::set{Property::kRolloutAvailability});
}

TEST_F(Rollouts, ThatRecreateTheirPodsPromiseNothing) {
  api::Deployment recreated = deployment_;
  recreated.strategy = "Recreate";
  audit_.on_deployment(&deployment_, &recreated, at(3));
  resize("old", 0, 5, at(4));
  EXPECT_TRUE(found().empty());
}

class Watches : public Audits {
 protected:
  Watches() {
    for (std::uint64_t revision = 1; revision <= 6; ++revision)
      audit_.on_change("/registry/pods/default/p", revision, revision % 2 == 0 ? "even" : "odd");
  }

  WatchAudit audit_{verdicts_};
};

TEST_F(Watches, FindAGap) {
  auto stream = audit_.begin("/api/v1/pods?resourceVersion=2&watch=true");
  ASSERT_TRUE(stream);
  stream->on_event("ADDED", 3, at(0));
  stream->on_event("BOOKMARK", 3, at(0));
  EXPECT_TRUE(found().empty());
  stream->on_event("ADDED", 5, at(0));
  EXPECT_EQ(found(), std::set{Property::kWatchesWhole});
}

TEST_F(Watches, FindAGapBeforeABookmark) {
  auto stream = audit_.begin("/api/v1/pods?resourceVersion=2&watch=true&fieldSelector=spec.nodeName%3Deven");
  ASSERT_TRUE(stream);
  stream->on_event("MODIFIED", 4, at(0));
  stream->on_event("BOOKMARK", 5, at(0));
  EXPECT_TRUE(found().empty()) << "the fifth is of another node";
  stream->on_event("BOOKMARK", 6, at(0));
  EXPECT_EQ(found(), std::set{Property::kWatchesWhole});
}

TEST_F(Watches, FindARepeat) {
  auto stream = audit_.begin("/api/v1/pods?resourceVersion=4&watch=true");
  ASSERT_TRUE(stream);
  stream->on_event("ADDED", 5, at(0));
  stream->on_event("ADDED", 5, at(0));
  EXPECT_EQ(found(), std::set{Property::kWatchesWhole});
}

}  // namespace
}  // namespace spillway::sim
