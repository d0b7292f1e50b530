// The output of `spillway top`.
#include "cli/text/top_table.h"

#include "base/utf8.h"
#include "cli/text/value_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

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
  Decision decision;
  decision.reasons = std::move(reasons);
  return {std::move(node), "Ready", std::move(decision), {}};
}

std::string order_of(std::vector<NodeRow> rows) {
  std::string names;
  for (const NodeRow& each : nearest_first(std::move(rows))) names += each.node + " ";
  return names;
}

TEST(TopTable, TheNearestThresholdOfEachNodeAndThePodThatWouldGo) {
  NodeRow first = row("n1", {memory(300, 100, 1000), inodes(60, 50, 1000)});
  first.decision->candidates = {
      {{.kind = "Pod", .ns = "kube-system", .name = "spared"}, {ReasonCode::kCriticalPodSpared, {}}, ""},
      {{.kind = "Pod", .ns = "shop", .name = "hog"}, {ReasonCode::kRankedFirst, {}}, ""}};
  EXPECT_EQ(top_table({first, row("n2", {foreseen(memory(300, 100, 1000), 90)})}, Paint::kNone),
            "NODE   STATE   SIGNAL              AVAILABLE   THRESHOLD   LEFT    MET IN   NEXT EVICTED\n"
            "n1     Ready   nodefs.inodesFree   60          50          10      -        shop/hog\n"
            "n2     Ready   memory.available    300Mi       100Mi       200Mi   90s      -\n");
}

TEST(TopTable, MemoryIsShownUnlessAnotherSignalIsNear) {
  EXPECT_EQ(top_table({row("n1", {memory(900, 100, 1000), inodes(600, 50, 1000)})}, Paint::kNone),
            "NODE   STATE   SIGNAL             AVAILABLE   THRESHOLD   LEFT    MET IN   NEXT EVICTED\n"
            "n1     Ready   memory.available   900Mi       100Mi       800Mi   -        -\n");
}

TEST(TopTable, FitsTheScreen) {
  NodeRow first = row("node-with-a-long-name", {memory(300, 100, 1000)});
  first.state = "Ready,MemoryPressure";
  first.decision->candidates = {
      {{.kind = "Pod", .ns = "shop", .name = "hog-7d9f8c6b5-x2x4z"}, {ReasonCode::kRankedFirst, {}}, ""}};
  const std::string text = top_table({first}, Paint::kNone, Width::kUsual, 80);
  EXPECT_EQ(text,
            "NODE                   STATE                 AVAILABLE  MET IN  NEXT EVICTED\n"
            "node-with-a-long-name  Ready,MemoryPressure  300Mi      -       shop/hog-7d9f8c6b5-x2x4z\n")
      << "a name is not cut";
}

TEST(TopTable, LeastMemoryFirst) {
  std::string names;
  for (const NodeRow& each :
       least_memory_first({row("a", {memory(300, 100, 1000)}), row("b", {}), row("c", {memory(200, 100, 1000)})})) {
    names += each.node;
  }
  EXPECT_EQ(names, "cab");
}

TEST(TopTable, WideHasARowForEachThreshold) {
  NodeRow first = row("n1", {memory(300, 100, 1000), inodes(60, 50, 1000)});
  first.decision->candidates = {{{.kind = "Pod", .ns = "shop", .name = "hog"}, {ReasonCode::kRankedFirst, {}}, ""}};
  EXPECT_EQ(top_table({first}, Paint::kNone, Width::kWide),
            "NODE   STATE   SIGNAL              AVAILABLE   THRESHOLD   LEFT    MET IN   NEXT EVICTED\n"
            "n1     Ready   nodefs.inodesFree   60          50          10      -        shop/hog\n"
            "n1     Ready   memory.available    300Mi       100Mi       200Mi   -        -\n");
}

TEST(TopTable, AThresholdThatIsReachedIsReachedNow) {
  EXPECT_EQ(top_table({row("n1", {memory(60, 100, 1000)})}, Paint::kTerminal),
            "NODE   STATE   SIGNAL             AVAILABLE   THRESHOLD   LEFT    MET IN   NEXT EVICTED\n"
            "\x1b[31mn1     Ready   memory.available   60Mi        100Mi       -40Mi   now      -\x1b[0m\n");
}

TEST(TopTable, ANodeThatIsSilentSaysWhy) {
  EXPECT_EQ(top_table({{"n1", "NotReady", {}, "not read, because it is not Ready"}}, Paint::kNone),
            "NODE   STATE      SIGNAL   AVAILABLE   THRESHOLD   LEFT   MET IN   NEXT EVICTED\n"
            "n1     NotReady   -        -           -           -      -        -\n"
            "\nn1: not read, because it is not Ready\n");
  EXPECT_EQ(top_table({}, Paint::kNone), "No nodes.\n");
}

TEST(TopTable, SortsReachedThenForeseenThenTheSmallerShareThenSilent) {
  EXPECT_EQ(order_of({{"e", "NotReady", {}, "gone"},
                      row("d", {memory(500, 100, 1000)}),
                      row("c", {memory(400, 100, 1000)}),
                      row("b", {foreseen(memory(900, 100, 1000), 30)}),
                      row("a", {foreseen(memory(900, 100, 1000), 20)}),
                      row("z", {memory(99, 100, 1000)}),
                      row("f", {})}),
            "e z a b c d f ")
      << "a node that is not plainly Ready comes first";
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
  ASSERT_NE(nearest_threshold(*some.decision), nullptr);
  EXPECT_EQ(policy::text_fact(*nearest_threshold(*some.decision), "signal"), "memory.available");
}

/// The UTF-8 form.
std::string utf8(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(static_cast<unsigned char>(value)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & 0x3f))};
  return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f))};
}

/// Every character that moves, hides or reorders the text around it, but line feed and tab.
std::vector<std::string> unprintables() {
  std::vector<std::string> all;
  const auto add = [&](char32_t first, char32_t last) {
    for (char32_t c = first; c <= last; ++c)
      if (c != U'\n' && c != U'\t') all.push_back(utf8(c));
  };
  add(0x00, 0x1f);
  add(0x7f, 0x9f);
  add(0x2028, 0x202e);
  add(0x2066, 0x2069);
  return all;
}

TEST(Printable, HasNoCharacterThatMovesATerminal) {
  ASSERT_EQ(unprintables().size(), 30u + 33 + 7 + 4);
  for (const std::string& each : unprintables()) {
    const std::string marks(each.size(), '?');
    EXPECT_EQ(printable("a" + each + "b"), "a" + marks + "b");
    EXPECT_EQ(printable_line(each + each), marks + marks);
    EXPECT_EQ(printable_painted("\x1b[31m" + each + "\x1b[0m"), "\x1b[31m" + marks + "\x1b[0m");
  }
  for (int byte = 0x80; byte < 0x100; ++byte)
    EXPECT_EQ(printable(std::string{static_cast<char>(byte), 'x'}), "?x") << "not UTF-8: " << byte;
  EXPECT_EQ(printable("\xc2"), "?");
  EXPECT_EQ(printable("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(printable_line("a\tb\nc"), "a b c");
}

TEST(Printable, KeepsEverythingElse) {
  for (char32_t c = 0xa0; c < 0xd800; ++c) {
    if ((c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069)) continue;
    ASSERT_EQ(printable(utf8(c)), utf8(c)) << static_cast<std::uint32_t>(c);
  }
  EXPECT_EQ(printable("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
}

TEST(Printable, PaintIsColoursAlone) {
  EXPECT_EQ(printable_painted("\x1b[1;32mx\x1b[m"), "\x1b[1;32mx\x1b[m");
  for (const std::string evil : {"\x1b[2J", "\x1b]0;t", "\x1b[31", "\x1b[?25l", "\x1b[1;1H", "\x1b", "\x1b(0", "\x1bP"})
    EXPECT_EQ(printable_painted(evil + "x\x1b[0m"), "?" + evil.substr(1) + "x\x1b[0m");
}

TEST(TopTable, WhatANodeSaysMovesNoTerminal) {
  for (const std::string& each : unprintables()) {
    const std::string evil = "x" + each + "[2J\n" + each + "]0;PWNED\x07\t";
    NodeRow shown = row("n1" + evil, {memory(300, 100, 1000)});
    shown.state = "Ready,MemoryPressure" + evil;
    shown.decision->reasons.front().facts.front() = {"signal", "memory.available" + evil};
    shown.decision->candidates = {
        {{.kind = "Pod", .ns = "a" + evil, .name = "b" + evil}, {ReasonCode::kRankedFirst, {}}, ""}};
    const NodeRow silent{"n2" + evil, "NotReady" + evil, {}, "why" + evil};
    for (const Width width : {Width::kUsual, Width::kWide}) {
      const std::string text = top_table({shown, silent}, Paint::kNone, width);
      EXPECT_EQ(text.find(each), std::string::npos) << text;
      EXPECT_EQ(text.find_first_of("\x1b\x07\t"), std::string::npos) << text;
      EXPECT_EQ(std::ranges::count(text, '\n'), 5) << text;
    }
  }
}

TEST(Table, CellsAndHeadingsAreOneLineOfText) {
  for (const std::string& each : unprintables()) {
    Table table({"A" + each, "B\n"});
    table.add({"a" + each + "\nforged", "\t" + each});
    const std::string text = table.text("");
    EXPECT_EQ(text.find(each), std::string::npos) << text;
    EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
  }
}

}  // namespace
}  // namespace spillway::cli
