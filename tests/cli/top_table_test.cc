// What `spillway top` prints.
#include "cli/text/top_table.h"

#include <gtest/gtest.h>

namespace spillway::cli {
namespace {

using policy::Decision;
using policy::Reason;
using policy::ReasonCode;

constexpr std::int64_t kMi = 1 << 20;

Reason memory(std::int64_t available, std::int64_t threshold, std::int64_t capacity) {
  return {available < threshold ? ReasonCode::kThresholdMet : ReasonCode::kThresholdNotMet,
          {{"signal", std::string("memory.available")},
           {"available_bytes", available * kMi},
           {"threshold_bytes", threshold * kMi},
           {"capacity_bytes", capacity * kMi}}};
}

Reason inodes(std::int64_t free, std::int64_t threshold, std::int64_t capacity) {
  return {ReasonCode::kThresholdNotMet,
          {{"signal", std::string("nodefs.inodesFree")},
           {"available_inodes", free},
           {"threshold_inodes", threshold},
           {"capacity_inodes", capacity}}};
}

Reason foreseen(Reason reason, double seconds) {
  reason.facts.push_back({"forecast_seconds", seconds});
  return reason;
}

NodeRow row(std::string node, std::vector<Reason> reasons) {
  Decision standing;
  standing.reasons = std::move(reasons);
  return {std::move(node), "Ready", std::move(standing), {}};
}

std::string order_of(std::vector<NodeRow> rows) {
  std::string names;
  for (const NodeRow& each : nearest_first(std::move(rows))) names += each.node + " ";
  return names;
}

TEST(TopTable, TheNearestThresholdOfEachNodeAndThePodThatWouldGo) {
  NodeRow first = row("n1", {memory(300, 100, 1000), inodes(60, 50, 1000)});
  first.standing->candidates = {
      {{.kind = "Pod", .ns = "kube-system", .name = "spared"}, {ReasonCode::kCriticalPodSpared, {}}, ""},
      {{.kind = "Pod", .ns = "shop", .name = "hog"}, {ReasonCode::kRankedFirst, {}}, ""}};
  EXPECT_EQ(top_table({first, row("n2", {foreseen(memory(300, 100, 1000), 90)})}, Paint::kNone),
            "NODE   STATE   SIGNAL              AVAILABLE   THRESHOLD   LEFT    MET IN   NEXT EVICTED\n"
            "n1     Ready   nodefs.inodesFree   60          50          10      -        shop/hog\n"
            "n2     Ready   memory.available    300Mi       100Mi       200Mi   90s      -\n");
}

TEST(TopTable, WideHasARowForEachThreshold) {
  NodeRow first = row("n1", {memory(300, 100, 1000), inodes(60, 50, 1000)});
  first.standing->candidates = {{{.kind = "Pod", .ns = "shop", .name = "hog"}, {ReasonCode::kRankedFirst, {}}, ""}};
  EXPECT_EQ(top_table({first}, Paint::kNone, Width::kWide),
            "NODE   STATE   SIGNAL              AVAILABLE   THRESHOLD   LEFT    MET IN   NEXT EVICTED\n"
            "n1     Ready   nodefs.inodesFree   60          50          10      -        shop/hog\n"
            "n1     Ready   memory.available    300Mi       100Mi       200Mi   -        -\n");
}

TEST(TopTable, AThresholdThatIsMetIsMetNow) {
  EXPECT_EQ(top_table({row("n1", {memory(60, 100, 1000)})}, Paint::kTerminal),
            "NODE   STATE   SIGNAL             AVAILABLE   THRESHOLD   LEFT    MET IN   NEXT EVICTED\n"
            "\x1b[31mn1     Ready   memory.available   60Mi        100Mi       -40Mi   now      -\x1b[0m\n");
}

TEST(TopTable, ANodeThatIsSilentSaysWhy) {
  EXPECT_EQ(top_table({{"n1", "NotReady", {}, "not asked, because it is not Ready"}}, Paint::kNone),
            "NODE   STATE      SIGNAL   AVAILABLE   THRESHOLD   LEFT   MET IN   NEXT EVICTED\n"
            "n1     NotReady   -        -           -           -      -        -\n"
            "\nn1: not asked, because it is not Ready\n");
  EXPECT_EQ(top_table({}, Paint::kNone), "No nodes.\n");
}

TEST(TopTable, MetComesBeforeForeseenBeforeTheSmallerShareBeforeSilent) {
  EXPECT_EQ(order_of({{"e", "NotReady", {}, "gone"},
                      row("d", {memory(500, 100, 1000)}),
                      row("c", {memory(400, 100, 1000)}),
                      row("b", {foreseen(memory(900, 100, 1000), 30)}),
                      row("a", {foreseen(memory(900, 100, 1000), 20)}),
                      row("z", {memory(99, 100, 1000)}),
                      row("f", {})}),
            "z a b c d e f ");
}

TEST(TopTable, WhatIsForeseenForLaterThanAnHourIsNotForeseen) {
  EXPECT_EQ(order_of({row("late", {foreseen(memory(900, 100, 1000), 3601)}), row("near", {memory(400, 100, 1000)})}),
            "near late ");
  EXPECT_EQ(order_of({row("near", {memory(400, 100, 1000)}), row("soon", {foreseen(memory(900, 100, 1000), 3600)})}),
            "soon near ");
}

TEST(TopTable, AnUnmeasuredThresholdIsNotTheNearest) {
  const NodeRow some =
      row("n", {{ReasonCode::kObservationMissing, {{"signal", std::string("pid.available")}}}, memory(300, 100, 1000)});
  ASSERT_NE(nearest_threshold(*some.standing), nullptr);
  EXPECT_EQ(policy::text_fact(*nearest_threshold(*some.standing), "signal"), "memory.available");
}

}  // namespace
}  // namespace spillway::cli
