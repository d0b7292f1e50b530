// Goal: no container is ever squeezed by its pod during a resize, memory that is used is not taken away, and resizes
// are tried in upstream's order.
#include "policy/containers/pod_resize.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::containers {
namespace {

GroupAmounts amounts(std::int64_t mebibytes_of_memory, std::int64_t cpu_milli) {
  return {.memory_limit = mebibytes(mebibytes_of_memory), .cpu_limit_milli = cpu_milli, .cpu_request_milli = cpu_milli};
}

std::string text_of(const std::vector<ResizeStep>& steps) {
  std::string text;
  for (const ResizeStep& each : steps) {
    text += each.resource == ResizedResource::kMemory ? "memory " : "cpu ";
    text += (each.container.empty() ? "pod" : each.container) + (each.lowers_memory ? " lowered;" : ";");
  }
  return text;
}

TEST(ResizeSteps, APodGrowsBeforeItsContainersAndShrinksAfterThem) {
  const std::vector<GroupChange> grow = {{.container = "a", .before = amounts(10, 100), .after = amounts(20, 200)}};
  EXPECT_EQ(text_of(resize_steps({.container = {}, .before = amounts(10, 100), .after = amounts(20, 200)}, grow)),
            "memory pod;memory a;cpu pod;cpu a;");
  const std::vector<GroupChange> shrink = {{.container = "a", .before = amounts(20, 200), .after = amounts(10, 100)}};
  EXPECT_EQ(text_of(resize_steps({.container = {}, .before = amounts(20, 200), .after = amounts(10, 100)}, shrink)),
            "memory a lowered;memory pod lowered;cpu a;cpu pod;");
}

TEST(ResizeSteps, ContainersThatShrinkAreFirst) {
  const std::vector<GroupChange> both = {
      {.container = "grows", .before = amounts(10, 100), .after = amounts(20, 100)},
      {.container = "shrinks", .before = amounts(20, 100), .after = amounts(10, 100)},
      {.container = "stays", .before = amounts(5, 50), .after = amounts(5, 50)}};
  EXPECT_EQ(text_of(resize_steps({.container = {}, .before = amounts(35, 250), .after = amounts(35, 250)}, both)),
            "memory shrinks lowered;memory grows;");
}

TEST(ResizeSteps, NoLimitIsTheLargest) {
  const GroupAmounts none{.memory_limit = {}, .cpu_limit_milli = {}, .cpu_request_milli = 100};
  const std::vector<GroupChange> limited = {{.container = "a", .before = none, .after = amounts(10, 100)}};
  EXPECT_EQ(text_of(resize_steps({.container = {}, .before = none, .after = none}, limited)),
            "memory a lowered;cpu a;");
  const std::vector<GroupChange> freed = {{.container = "a", .before = amounts(10, 100), .after = none}};
  EXPECT_EQ(text_of(resize_steps({.container = {}, .before = none, .after = none}, freed)), "memory a;cpu a;");
}

TEST(ResizeSteps, MemoryInUseIsNotTakenAway) {
  const std::vector<GroupChange> shrink = {{.container = "a", .before = amounts(20, 100), .after = amounts(10, 100)}};
  const auto steps = resize_steps({.container = {}, .before = amounts(20, 100), .after = amounts(10, 100)}, shrink);
  EXPECT_EQ(refuse_to_lower(steps, {}), std::nullopt) << "what cannot be read hinders nothing";
  const std::vector<MemoryUse> little = {{"a", mebibytes(10) - Bytes{1}}, {"", mebibytes(1)}};
  EXPECT_EQ(refuse_to_lower(steps, little), std::nullopt);
  const std::vector<MemoryUse> container = {{"a", mebibytes(10)}};
  EXPECT_EQ(refuse_to_lower(steps, container),
            "cannot decrease memory limits: attempting to set container \"a\" memory limit (10485760) below current "
            "usage (10485760)");
  const std::vector<MemoryUse> pod = {{"", mebibytes(11)}};
  EXPECT_EQ(
      refuse_to_lower(steps, pod),
      "cannot decrease memory limits: attempting to set pod memory limit (10485760) below current usage (11534336)");
  const std::vector<MemoryUse> both = {{"a", mebibytes(10)}, {"", mebibytes(11)}};
  EXPECT_TRUE(refuse_to_lower(steps, both)->starts_with("cannot decrease memory limits: [attempting")) << "as Go joins";
}

TEST(ResizeRank, OrderIsUpstreams) {
  const WallTime early{seconds(100)};
  const WallTime late{seconds(200)};
  const std::vector<ResizeRank> order = {{.raises_requests = false,
                                          .priority = 0,
                                          .guaranteed = false,
                                          .pending_since = {},
                                          .pod = {"ns", "a"},
                                          .uid = "1"},
                                         {.raises_requests = true,
                                          .priority = 9,
                                          .guaranteed = false,
                                          .pending_since = late,
                                          .pod = {"ns", "b"},
                                          .uid = "2"},
                                         {.raises_requests = true,
                                          .priority = 5,
                                          .guaranteed = true,
                                          .pending_since = late,
                                          .pod = {"ns", "c"},
                                          .uid = "3"},
                                         {.raises_requests = true,
                                          .priority = 5,
                                          .guaranteed = false,
                                          .pending_since = early,
                                          .pod = {"ns", "d"},
                                          .uid = "4"},
                                         {.raises_requests = true,
                                          .priority = 5,
                                          .guaranteed = false,
                                          .pending_since = late,
                                          .pod = {"ns", "a"},
                                          .uid = "5"},
                                         {.raises_requests = true,
                                          .priority = 5,
                                          .guaranteed = false,
                                          .pending_since = {},
                                          .pod = {"ns", "a"},
                                          .uid = "6"}};
  std::vector<ResizeRank> sorted = order;
  std::ranges::reverse(sorted);
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, order);
}

TEST(PodResize, ResourcesOfAPodAreTakenAndPutBack) {
  api::PodSpec spec;
  spec.init_containers.emplace_back().name = "i";
  spec.containers.emplace_back().name = "c";
  spec.containers.back().resources.requests["cpu"] = api::Quantity::of_milli(100);
  const PodResources taken = resources_of(spec);
  EXPECT_EQ(taken.containers.size(), 2u);
  EXPECT_TRUE(has_resources(spec, taken));
  api::PodSpec larger = spec;
  larger.containers.back().resources.requests["cpu"] = api::Quantity::of_milli(200);
  EXPECT_FALSE(has_resources(larger, taken));
  EXPECT_TRUE(raises_requests(spec, larger));
  EXPECT_FALSE(raises_requests(larger, spec));
  set_resources(larger, taken);
  EXPECT_EQ(larger, spec);
  larger.resources.emplace();
  EXPECT_FALSE(has_resources(larger, taken));
}

TEST(PodResize, EventsNameAllContainersAndTheGeneration) {
  api::PodSpec spec;
  spec.containers.emplace_back().name = "c";
  spec.containers.back().resources.requests["cpu"] = api::Quantity::of_milli(100);
  EXPECT_EQ(resize_details(spec, 3, {}),
            R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"100m"}}}],"generation":3})");
  spec.init_containers.emplace_back().name = "i";
  EXPECT_EQ(resize_details(spec, 0, "no \"room\""),
            R"({"initContainers":[{"name":"i","resources":{}}],"containers":[{"name":"c","resources":)"
            R"({"requests":{"cpu":"100m"}}}],"error":"no \"room\""})");
}

TEST(PodResize, AConditionKeepsItsTransitionTimeWhileItsReasonStays) {
  const WallTime first{seconds(100)};
  const WallTime later{seconds(200)};
  const auto pending = resize_condition(kPodResizePending, "Deferred", "no room", 2, {}, first);
  EXPECT_EQ(pending.status, "True");
  EXPECT_EQ(pending.last_transition_time, first);
  const auto again = resize_condition(kPodResizePending, "Deferred", "less room", 3, pending, later);
  EXPECT_EQ(again.last_transition_time, first);
  EXPECT_EQ(again.last_probe_time, later);
  EXPECT_EQ(again.observed_generation, 3);
  EXPECT_EQ(resize_condition(kPodResizePending, "Infeasible", "no", 3, again, later).last_transition_time, later);
}

}  // namespace
}  // namespace spillway::containers
