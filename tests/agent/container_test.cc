#include "agent/containers/container_env.h"
#include "agent/containers/pod_resources.h"
#include "agent/contract/kill_grace.h"
#include "agent/pods/pod_worker.h"

#include <gtest/gtest.h>

#include <limits>

namespace spillway::agent {
namespace {

TEST(Expand, FollowsTheRulesOfReferences) {
  const Environment variables{{"A", "1"}, {"B", "2"}, {"EMPTY", ""}};

  struct Row {
    std::string_view text;
    std::string_view want;
  };

  for (const Row& row : {Row{"$(A)", "1"}, Row{"x$(A)y$(B)z", "x1y2z"}, Row{"$$(A)", "$(A)"}, Row{"$$$(A)", "$1"},
                         Row{"$(C)", "$(C)"}, Row{"$(A", "$(A"}, Row{"$A", "$A"}, Row{"$", "$"}, Row{"$$", "$"},
                         Row{"", ""}, Row{"$(EMPTY)", ""}, Row{"$()", "$()"}}) {
    EXPECT_EQ(expand(row.text, variables), row.want) << row.text;
  }
}

TEST(FieldOf, KnowsTheFieldsOfAPod) {
  api::Pod pod;
  pod.metadata.name = "web";
  pod.metadata.ns = "shop";
  pod.metadata.uid = "u1";
  pod.metadata.labels["app"] = "cart";
  pod.spec.node_name = "n1";
  const PodAddresses addresses{"10.0.0.7", "10.1.0.3"};
  const auto field_at = [&](std::string path) { return field_of(pod, addresses, {{}, std::move(path)}); };
  EXPECT_EQ(field_at("metadata.name").value(), "web");
  EXPECT_EQ(field_at("metadata.namespace").value(), "shop");
  EXPECT_EQ(field_at("metadata.uid").value(), "u1");
  EXPECT_EQ(field_at("metadata.labels['app']").value(), "cart");
  EXPECT_EQ(field_at("metadata.labels['none']").value(), "");
  EXPECT_EQ(field_at("spec.nodeName").value(), "n1");
  EXPECT_EQ(field_at("status.podIP").value(), "10.1.0.3");
  EXPECT_EQ(field_at("status.hostIP").value(), "10.0.0.7");
  EXPECT_FALSE(field_at("spec.secret").has_value());
}

TEST(CommandLine, NeedsAtLeastOneWord) {
  api::Container container;
  container.name = "c";
  EXPECT_EQ(command_line_of(container, {}).error().text(),
            "process runtime needs command: container c has neither command nor args");
  container.args = {"only", "args"};
  EXPECT_EQ(command_line_of(container, {}).value(), container.args);
}

TEST(OomScore, FollowsQosAndRequest) {
  api::Pod pod;
  api::Container& container = pod.spec.containers.emplace_back();
  EXPECT_EQ(oom_score_adj(pod, container, gibibytes(1)), 1000);
  container.resources.requests["memory"] = api::Quantity::of_bytes(mebibytes(256));
  EXPECT_EQ(oom_score_adj(pod, container, gibibytes(1)), 750);
  container.resources.requests["memory"] = api::Quantity::of_bytes(gibibytes(4));
  EXPECT_EQ(oom_score_adj(pod, container, gibibytes(1)), 3);
  for (const char* resource : {"cpu", "memory"}) {
    container.resources.requests[resource] = api::Quantity::of_units(1);
    container.resources.limits[resource] = api::Quantity::of_units(1);
  }
  EXPECT_EQ(oom_score_adj(pod, container, gibibytes(1)), -997);
}

using Seconds = std::optional<std::int64_t>;

std::int64_t grace(std::int64_t previous, Seconds deletion, Seconds override, Seconds spec) {
  return effective_grace(previous, {deletion, override, spec}).seconds;
}

TEST(EffectiveGrace, NeverGrowsAndIsAtLeastOneSecond) {
  EXPECT_EQ(grace(0, {}, {}, 30), 30);
  EXPECT_EQ(grace(0, 5, {}, 30), 5);
  EXPECT_EQ(grace(5, 10, {}, 30), 5);
  EXPECT_EQ(grace(30, {}, 1, 30), 1);
  EXPECT_EQ(grace(0, {}, 0, 30), 1) << "an override of zero counts";
  EXPECT_EQ(grace(0, {}, {}, {}), 1);
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(grace(0, {}, {}, kLargest), kGraceSecondsMax) << "nanoseconds stay in range";
  EXPECT_EQ(grace(0, kLargest, {}, 30), kGraceSecondsMax);
  EXPECT_EQ(grace(0, {}, {}, std::numeric_limits<std::int64_t>::min()), 1);
}

}  // namespace
}  // namespace spillway::agent
