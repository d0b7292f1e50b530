// One sync of a DaemonSet: every combination of a few nodes and pods against the invariants of any plan.
#include "policy/workloads/daemon_plan.h"

#include "policy/workloads/daemon_update.h"

#include <gtest/gtest.h>

#include <set>

namespace spillway::workloads {
namespace {

constexpr Now kNow{.mono = Instant{hours(1)}, .wall = WallTime{seconds(1'000'000)}};

enum class State { kReady, kStarting, kFailed, kTerminating, kOutdated };
constexpr std::array kStates{State::kReady, State::kStarting, State::kFailed, State::kTerminating, State::kOutdated};

PodPtr pod(const std::string& name, State state) {
  api::Pod made;
  made.metadata.name = made.metadata.uid = name;
  made.metadata.labels[std::string(kTemplateGenerationLabel)] = state == State::kOutdated ? "1" : "2";
  made.status.phase = state == State::kFailed ? "Failed" : "Running";
  if (state == State::kTerminating) made.metadata.deletion_timestamp = kNow.wall;
  const bool ready = state == State::kReady || state == State::kOutdated;
  made.status.conditions.push_back({.type = "Ready", .status = ready ? "True" : "False"});
  return std::make_shared<const api::Pod>(std::move(made));
}

api::DaemonSet daemon_set() {
  api::DaemonSet set;
  set.metadata.uid = "set";
  set.metadata.generation = 7;
  set.metadata.annotations[std::string(kTemplateGenerationAnnotation)] = "2";
  return set;
}

std::set<std::string> names(const std::vector<PodPtr>& pods) {
  std::set<std::string> all;
  for (const PodPtr& each : pods) EXPECT_TRUE(all.insert(each->metadata.name).second) << "removed twice";
  return all;
}

/// Checks a plan for a node that may run a pod, or keep one, or neither.
void check_node(const DaemonView& view, const std::string& node, const DaemonFit& fit, const DaemonPlan& plan) {
  const auto found = view.by_node.find(node);
  const std::vector<PodPtr> here = found == view.by_node.end() ? std::vector<PodPtr>() : found->second;
  const std::set<std::string> removed = names(plan.remove);
  std::size_t stay = 0;
  for (const PodPtr& each : here) {
    const bool gone = removed.contains(each->metadata.name);
    if (each->metadata.deletion_timestamp) {
      EXPECT_FALSE(gone) << "a pod that leaves is deleted again";
    } else if (api::is_terminal(*each)) {
      EXPECT_TRUE(gone) << "a failed pod stays";
    } else {
      stay += gone ? 0 : 1;
    }
  }
  EXPECT_LE(stay, fit.should_continue ? 1U : 0U) << "one pod too many on " << node;
  const auto created = std::ranges::count(plan.create, node);
  EXPECT_EQ(created, fit.should_run && here.empty() ? 1 : 0) << "created on " << node;
}

/// Nodes "run", "keep" and "none" by what they are to the set, with up to two pods each, and pods of a node that is
/// gone.
TEST(DaemonPlan, EveryNodeHasOnePodOrWhatItMayHave) {
  const std::map<std::string, DaemonFit> fits{{"keep", {.should_run = false, .should_continue = true}},
                                              {"none", {}},
                                              {"run", {.should_run = true, .should_continue = true}}};
  const api::DaemonSet set = daemon_set();
  int cases = 0;
  std::vector<std::vector<State>> contents{{}};
  for (const State first : kStates) {
    contents.push_back({first});
    for (const State second : kStates) contents.push_back({first, second});
  }
  for (const auto& on_run : contents) {
    for (const auto& on_other : contents) {
      for (const std::string other : {"keep", "none", "gone"}) {
        DaemonView view{.set = set, .fits = fits, .by_node = {}};
        for (std::size_t i = 0; i < on_run.size(); ++i)
          view.by_node["run"].push_back(pod("run" + std::to_string(i), on_run[i]));
        for (std::size_t i = 0; i < on_other.size(); ++i)
          view.by_node[other].push_back(pod(other + std::to_string(i), on_other[i]));
        FailureBackoff backoff;
        const DaemonPlan plan = plan_daemons(view, DaemonActs::kAllowed, backoff, kNow);
        for (const auto& [node, fit] : fits) check_node(view, node, fit, plan);
        if (other == "gone") check_node(view, other, {}, plan);
        EXPECT_EQ(plan.status.desired_number_scheduled, 1);
        EXPECT_EQ(plan.status.number_unavailable, 1 - plan.status.number_available);
        EXPECT_EQ(plan.status.observed_generation, 7);
        FailureBackoff untouched;
        const DaemonPlan waits = plan_daemons(view, DaemonActs::kAwaited, untouched, kNow);
        EXPECT_TRUE(waits.create.empty() && waits.remove.empty());
        EXPECT_EQ(waits.status, plan.status);
        EXPECT_EQ(untouched.size(), 0U);
        ++cases;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_EQ(cases, 31 * 31 * 3);
}

TEST(DaemonPlan, AFailedPodsSuccessorWaits) {
  const api::DaemonSet set = daemon_set();
  FailureBackoff backoff;
  DaemonView view{.set = set, .fits = {{"n", {true, true}}}, .by_node = {{"n", {pod("p", State::kFailed)}}}};
  EXPECT_EQ(names(plan_daemons(view, DaemonActs::kAllowed, backoff, kNow).remove), std::set<std::string>{"p"});
  view.by_node.clear();
  const DaemonPlan waits = plan_daemons(view, DaemonActs::kAllowed, backoff, kNow);
  EXPECT_TRUE(waits.create.empty());
  EXPECT_EQ(waits.requeue_at, kNow.mono + FailureBackoff::kMin);
  EXPECT_EQ(
      plan_daemons(view, DaemonActs::kAllowed, backoff, {.mono = *waits.requeue_at, .wall = kNow.wall}).create.size(),
      1U);
}

TEST(DaemonPlan, IsBounded) {
  const api::DaemonSet set = daemon_set();
  DaemonView view{.set = set, .fits = {}, .by_node = {}};
  for (int i = 0; i < 400; ++i) view.fits[std::to_string(i)] = {true, true};
  for (int i = 0; i < 100; ++i) view.by_node["gone"].push_back(pod(std::to_string(i), State::kReady));
  FailureBackoff backoff;
  const DaemonPlan plan = plan_daemons(view, DaemonActs::kAllowed, backoff, kNow);
  EXPECT_EQ(plan.create.size() + plan.remove.size(), kDaemonBurstMax);
  EXPECT_EQ(plan.status.desired_number_scheduled, 400);
}

TEST(DaemonPlan, ASetThatIsBeingDeletedDoesNothing) {
  api::DaemonSet set = daemon_set();
  set.metadata.deletion_timestamp = kNow.wall;
  FailureBackoff backoff;
  const DaemonView view{.set = set, .fits = {{"n", {true, true}}}, .by_node = {{"gone", {pod("p", State::kFailed)}}}};
  const DaemonPlan plan = plan_daemons(view, DaemonActs::kAllowed, backoff, kNow);
  EXPECT_TRUE(plan.create.empty() && plan.remove.empty());
}

TEST(DaemonPlan, OutdatedPodsGoOnlyWhenNothingElseIsToBeDone) {
  api::DaemonSet set = daemon_set();
  set.max_unavailable = 2;  // the bound would allow it
  FailureBackoff backoff;
  DaemonView view{.set = set,
                  .fits = {{"a", {true, true}}, {"b", {true, true}}},
                  .by_node = {{"a", {pod("old", State::kOutdated)}}}};
  DaemonPlan plan = plan_daemons(view, DaemonActs::kAllowed, backoff, kNow);
  EXPECT_EQ(plan.create, std::vector<std::string>{"b"});
  EXPECT_TRUE(plan.remove.empty());
  view.by_node["b"] = {pod("new", State::kReady)};
  plan = plan_daemons(view, DaemonActs::kAllowed, backoff, kNow);
  EXPECT_EQ(names(plan.remove), std::set<std::string>{"old"});
}

/// A pod that has been ready for so long.
PodPtr ready_since(const std::string& name, State state, std::int64_t seconds_ago) {
  api::Pod made = *pod(name, state);
  made.status.conditions.front().last_transition_time = WallTime{seconds(1'000'000 - seconds_ago)};
  return std::make_shared<const api::Pod>(std::move(made));
}

DaemonPlan plan_of(const DaemonView& view) {
  FailureBackoff backoff;
  return plan_daemons(view, DaemonActs::kAllowed, backoff, kNow);
}

TEST(DaemonPlan, ASurgePutsTheNewPodBesideTheOldOne) {
  api::DaemonSet set = daemon_set();
  set.max_surge = 1;
  set.max_unavailable = 0;
  DaemonView view{.set = set,
                  .fits = {{"a", {true, true}}, {"b", {true, true}}},
                  .by_node = {{"a", {pod("old-a", State::kOutdated)}}, {"b", {pod("old-b", State::kOutdated)}}}};
  DaemonPlan plan = plan_of(view);
  EXPECT_EQ(plan.create, std::vector<std::string>{"a"});
  EXPECT_TRUE(plan.remove.empty());
  EXPECT_EQ(plan.status.number_available, 2);
  view.by_node["a"].push_back(pod("z-new-a", State::kStarting));
  plan = plan_of(view);
  EXPECT_TRUE(plan.create.empty() && plan.remove.empty()) << "the old pod serves until the new one is available";
  EXPECT_EQ(plan.status.number_available, 2);
  EXPECT_EQ(plan.status.updated_number_scheduled, 0);
  view.by_node["a"] = {pod("old-a", State::kOutdated), pod("z-new-a", State::kReady)};
  plan = plan_of(view);
  EXPECT_TRUE(plan.create.empty());
  EXPECT_EQ(names(plan.remove), std::set<std::string>{"old-a"});
}

TEST(DaemonPlan, ASurgeKeepsNoPodThatDoesNotServe) {
  api::DaemonSet set = daemon_set();
  set.max_surge = "50%";
  set.max_unavailable = 0;
  api::Pod broken = *pod("broken", State::kStarting);
  broken.metadata.labels[std::string(kTemplateGenerationLabel)] = "1";
  DaemonView view{.set = set, .fits = {{"a", {true, true}}}, .by_node = {}};
  view.by_node["a"] = {std::make_shared<const api::Pod>(broken), pod("new", State::kStarting)};
  EXPECT_EQ(names(plan_of(view).remove), std::set<std::string>{"broken"});
  view.by_node["a"] = {pod("a", State::kReady), pod("b", State::kReady), pod("c", State::kOutdated),
                       pod("d", State::kOutdated)};
  EXPECT_EQ(names(plan_of(view).remove), (std::set<std::string>{"b", "c", "d"}));
}

TEST(DaemonPlan, ASurgeDoesNotWaitForAPodThatIsBeingDeleted) {
  api::DaemonSet set = daemon_set();
  api::Pod going = *pod("going", State::kReady);
  going.metadata.deletion_timestamp = kNow.wall;
  DaemonView view{
      .set = set, .fits = {{"a", {true, true}}}, .by_node = {{"a", {std::make_shared<const api::Pod>(going)}}}};
  EXPECT_TRUE(plan_of(view).create.empty());
  set.max_surge = 1;
  set.max_unavailable = 0;
  EXPECT_EQ(plan_of(view).create, std::vector<std::string>{"a"});
  set.update_strategy = "OnDelete";
  EXPECT_TRUE(plan_of(view).create.empty());
}

TEST(DaemonPlan, APodThatKeepsFailingHoldsItsPartOfTheSurge) {
  api::DaemonSet set = daemon_set();
  set.max_surge = 1;
  set.max_unavailable = 0;
  DaemonView view{.set = set,
                  .fits = {{"a", {true, true}}, {"b", {true, true}}},
                  .by_node = {{"a", {pod("old-a", State::kOutdated), pod("new-a", State::kFailed)}},
                              {"b", {pod("old-b", State::kOutdated)}}}};
  FailureBackoff backoff;
  EXPECT_EQ(names(plan_daemons(view, DaemonActs::kAllowed, backoff, kNow).remove), std::set<std::string>{"new-a"});
  view.by_node["a"].pop_back();
  const DaemonPlan waits = plan_daemons(view, DaemonActs::kAllowed, backoff, kNow);
  EXPECT_TRUE(waits.create.empty()) << "a template that fails is not tried on the next node meanwhile";
  ASSERT_EQ(waits.requeue_at, kNow.mono + FailureBackoff::kMin);
  const Now later{.mono = *waits.requeue_at, .wall = kNow.wall};
  EXPECT_EQ(plan_daemons(view, DaemonActs::kAllowed, backoff, later).create, std::vector<std::string>{"a"});
}

TEST(DaemonPlan, APodCountsWhenItHasBeenReadyForLongEnough) {
  api::DaemonSet set = daemon_set();
  set.min_ready_seconds = 30;
  DaemonView view{
      .set = set,
      .fits = {{"a", {true, true}}, {"b", {true, true}}},
      .by_node = {{"a", {ready_since("new", State::kReady, 20)}}, {"b", {ready_since("old", State::kOutdated, 540)}}}};
  DaemonPlan plan = plan_of(view);
  EXPECT_TRUE(plan.remove.empty());
  EXPECT_EQ(plan.requeue_at, kNow.mono + seconds(10));
  EXPECT_EQ(plan.status.number_ready, 2);
  EXPECT_EQ(plan.status.number_available, 1);
  EXPECT_EQ(plan.status.number_unavailable, 1);
  view.by_node["a"] = {ready_since("new", State::kReady, 30)};
  plan = plan_of(view);
  EXPECT_EQ(names(plan.remove), std::set<std::string>{"old"});
  EXPECT_EQ(plan.requeue_at, std::nullopt);
}

}  // namespace
}  // namespace spillway::workloads
