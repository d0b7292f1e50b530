// Pods of a DaemonSet that are deleted first after its template has changed.
#include "policy/workloads/daemon_update.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::workloads {
namespace {

PodPtr pod(const std::string& name, const std::string& generation = {}) {
  api::Pod made;
  made.metadata.name = name;
  if (!generation.empty()) made.metadata.labels[std::string(kTemplateGenerationLabel)] = generation;
  return std::make_shared<const api::Pod>(std::move(made));
}

std::vector<std::string> names(const std::vector<PodPtr>& pods) {
  std::vector<std::string> all;
  for (const PodPtr& each : pods) all.push_back(each->metadata.name);
  return all;
}

using Names = std::vector<std::string>;

TEST(DaemonUpdate, DistinguishesTemplates) {
  api::DaemonSet set;
  EXPECT_TRUE(is_updated(set, *pod("made before templates were counted")));
  EXPECT_TRUE(is_updated(set, *pod("p", "1")));
  EXPECT_FALSE(is_updated(set, *pod("p", "2")));
  set.metadata.annotations[std::string(kTemplateGenerationAnnotation)] = "2";
  EXPECT_TRUE(is_updated(set, *pod("p", "2")));
  EXPECT_FALSE(is_updated(set, *pod("p", "1")));
  EXPECT_FALSE(is_updated(set, *pod("p")));
}

DaemonBounds bounds(api::Json surge, api::Json unavailable, std::int64_t desired) {
  api::DaemonSet set;
  set.max_surge = std::move(surge);
  set.max_unavailable = std::move(unavailable);
  return daemon_bounds(set, desired);
}

TEST(DaemonUpdate, BoundsAreNumbersOrShares) {
  EXPECT_EQ(bounds({}, {}, 10), (DaemonBounds{0, 1}));
  EXPECT_EQ(bounds({}, 3, 10), (DaemonBounds{0, 3}));
  EXPECT_EQ(bounds(0, "25%", 10), (DaemonBounds{0, 3}));
  EXPECT_EQ(bounds("0%", "0%", 10), (DaemonBounds{0, 1}));
  EXPECT_EQ(bounds(0, "many", 10), (DaemonBounds{0, 1}));
  EXPECT_EQ(bounds(0, "100%", 0), (DaemonBounds{0, 0})) << "pods that nobody wants do not go one by one";
  EXPECT_EQ(bounds(2, 0, 10), (DaemonBounds{2, 0}));
  EXPECT_EQ(bounds("11%", 0, 10), (DaemonBounds{2, 0}));
  EXPECT_EQ(bounds(-3, 0, 10), (DaemonBounds{0, 1}));
}

DaemonPlace old(const std::string& node, bool available) {
  return {.node = node, .updated = {}, .outdated = {pod(node), available}};
}

DaemonPlace fresh(const std::string& node, bool available) {
  return {.node = node, .updated = {pod(node), available}, .outdated = {}};
}

DaemonPlace both(const std::string& node, bool fresh_available) {
  return {.node = node, .updated = {pod("new-" + node), fresh_available}, .outdated = {pod(node), true}};
}

TEST(DaemonUpdate, TakesWhatIsNotAvailableAndAsManyMoreAsThereIsRoomFor) {
  const DaemonPlace nothing{};
  const auto gone = [](const std::vector<DaemonPlace>& places, std::int64_t unavailable) {
    const DaemonStep step = next_daemon_step(places, {.surge = 0, .unavailable = unavailable}, std::int64_t{100});
    EXPECT_TRUE(step.create.empty());
    return names(step.remove);
  };
  const DaemonPlace a = old("a", true);
  const DaemonPlace b = old("b", true);
  EXPECT_EQ(gone({a, b, fresh("d", true)}, 1), Names({"a"}));
  EXPECT_EQ(gone({a, b, fresh("d", true)}, 5), Names({"a", "b"}));
  EXPECT_EQ(gone({a, fresh("e", false)}, 1), Names({}));
  EXPECT_EQ(gone({a, nothing}, 1), Names({}));
  EXPECT_EQ(gone({a, both("f", true)}, 1), Names({})) << "the node is put in order first";
  EXPECT_EQ(gone({a, b, nothing, fresh("e", false)}, 3), Names({"a"}));
  EXPECT_EQ(gone({a, old("c", false), nothing}, 1), Names({"c"}));
  EXPECT_EQ(gone({fresh("d", true), fresh("e", false)}, 1), Names({}));
}

TEST(DaemonUpdate, SurgesWhereThereIsRoomForIt) {
  const auto step = [](const std::vector<DaemonPlace>& places, std::int64_t surge) {
    return next_daemon_step(places, {.surge = surge, .unavailable = 0}, static_cast<std::int64_t>(places.size()));
  };
  const DaemonPlace a = old("a", true);
  const DaemonPlace b = old("b", true);
  EXPECT_EQ(step({a, b}, 1).create, Names({"a"}));
  EXPECT_EQ(step({a, b}, 5).create, Names({"a", "b"}));
  EXPECT_EQ(step({a, b, both("c", false)}, 2).create, Names({"a"}));
  EXPECT_EQ(step({a, both("c", false)}, 1).create, Names({}));
  EXPECT_EQ(step({a, old("broken", false), both("c", false)}, 1).create, Names({"broken"}))
      << "where nothing serves, a successor takes nobody's room";
  EXPECT_EQ(names(step({a, both("c", true)}, 1).remove), Names({"c"}));
  DaemonPlace failing = b;
  failing.held = true;
  EXPECT_EQ(step({a, failing}, 1).create, Names({}));
  DaemonPlace crowded = b;
  crowded.crowded = true;
  EXPECT_EQ(step({a, crowded}, 1).create, Names({}));
  EXPECT_TRUE(step({a, crowded}, 1).remove.empty());
}

TEST(DaemonUpdate, UnderASurgeNodesAreLeftWhenOthersServe) {
  DaemonPlace left = old("left", true);
  left.wanted = false;
  const DaemonBounds one{.surge = 1, .unavailable = 0};
  EXPECT_TRUE(next_daemon_step({left, {.node = "next", .updated = {}, .outdated = {}}}, one, 1).remove.empty());
  EXPECT_EQ(names(next_daemon_step({left, fresh("next", true)}, one, 1).remove), Names({"left"}));
  left.outdated.available = false;
  EXPECT_EQ(names(next_daemon_step({left, fresh("next", false)}, one, 1).remove), Names({"left"}));
}

}  // namespace
}  // namespace spillway::workloads
