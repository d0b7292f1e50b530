// Goal: hooks are over before their container gets SIGTERM, sidecars wait for the containers that they serve, and none
// waits longer than the grace.
#include "policy/containers/orderly_stop.h"

#include "policy/containers/utf8_text.h"

#include <gtest/gtest.h>

namespace spillway::containers {
namespace {

api::PodSpec pod_of(std::initializer_list<std::string> sidecars, std::initializer_list<std::string> regular,
                    const std::string& hooked = {}) {
  api::PodSpec spec;
  const auto add = [&](std::vector<api::Container>& list, const std::string& name) {
    list.emplace_back().name = name;
    if (name == hooked) list.back().lifecycle = api::parse_json(R"({"preStop":{"sleep":{"seconds":5}}})").value();
  };
  for (const std::string& name : sidecars) {
    add(spec.init_containers, name);
    spec.init_containers.back().restart_policy = "Always";
  }
  for (const std::string& name : regular) add(spec.containers, name);
  return spec;
}

StopStep stop_step(std::string name, std::int64_t grace) {
  return {StopStep::What::kStop, std::move(name), seconds(grace)};
}

constexpr Instant kStart{hours(1)};

TEST(OrderlyStop, IsNeededForHooksAndSidecarsOnly) {
  EXPECT_FALSE(OrderlyStop::is_needed(pod_of({}, {"a", "b"}), {"a", "b"}));
  EXPECT_TRUE(OrderlyStop::is_needed(pod_of({}, {"a"}, "a"), {"a"}));
  EXPECT_FALSE(OrderlyStop::is_needed(pod_of({}, {"a"}, "a"), {})) << "it does not run";
  EXPECT_TRUE(OrderlyStop::is_needed(pod_of({"s"}, {"a"}), {"a", "s"}));
  EXPECT_FALSE(OrderlyStop::is_needed(pod_of({"s"}, {"a"}), {"s"}));
}

TEST(OrderlyStop, GoesFromTheContainersToTheFirstSidecar) {
  OrderlyStop stop(pod_of({"first", "second"}, {"a", "b"}), {"first", "second", "a", "b"}, 30, kStart);
  EXPECT_EQ(stop.advance(kStart), (std::vector{stop_step("a", 30), stop_step("b", 30)}));
  stop.on_gone("a");
  EXPECT_TRUE(stop.advance(kStart + seconds(1)).empty());
  stop.on_gone("b");
  EXPECT_EQ(stop.advance(kStart + milliseconds(3900)), std::vector{stop_step("second", 27)});
  stop.on_gone("second");
  EXPECT_EQ(stop.advance(kStart + seconds(29)), std::vector{stop_step("first", 2)}) << "never less than two seconds";
  EXPECT_FALSE(stop.is_over());
  stop.on_gone("first");
  EXPECT_TRUE(stop.is_over());
}

TEST(OrderlyStop, StopsWhoStillWaitsWhenTheGraceIsOver) {
  OrderlyStop stop(pod_of({"s"}, {"a"}, "a"), {"s", "a"}, 4, kStart);
  EXPECT_EQ(stop.advance(kStart), (std::vector{StopStep{StopStep::What::kHook, "a", seconds(4)}}));
  EXPECT_EQ(stop.due(), kStart + seconds(4));
  EXPECT_EQ(stop.advance(stop.due()), (std::vector{stop_step("a", 2), stop_step("s", 2)}));
  stop.on_hook_done("a");
  EXPECT_TRUE(stop.advance(stop.due()).empty()) << "it has been told";
}

TEST(Utf8Text, ReplacesWhatIsNone) {
  EXPECT_EQ(utf8_text("plain ö"), "plain ö");
  EXPECT_EQ(utf8_text("a\xff"
                      "b\xc3"),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
}

}  // namespace
}  // namespace spillway::containers
