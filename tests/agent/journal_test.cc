#include "agent/journal.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

JournalEntry entry() {
  JournalEntry made;
  made.at = WallTime(microseconds(1'700'000'000'123'456));
  made.node = "n1";
  made.action = {.uid = "u1",
                 .pod = {"shop", "cart"},
                 .grace_period_seconds = 1,
                 .message = "The node was low on resource: memory. ",
                 .annotations = {{"starved_resource", "memory"}},
                 .disruption_target = true,
                 .metric_label = "memory.available"};
  made.emergency = true;
  made.reasons = {{policy::ReasonCode::kThresholdMet,
                   {{"signal", std::string("memory.available")}, {"available", std::int64_t{104857599}}}}};
  made.candidates = {{{"shop", "cart"}, {policy::ReasonCode::kRankedFirst, {{"priority", std::int64_t{-5}}}}}};
  return made;
}

TEST(Journal, LinesSayEverythingAgain) {
  const JournalEntry written = entry();
  const std::string line = to_line(written);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const JournalEntry read = parse_line(line).value();
  EXPECT_EQ(read.at, written.at);
  EXPECT_EQ(read.node, written.node);
  EXPECT_EQ(read.action, written.action);
  EXPECT_EQ(read.emergency, written.emergency);
  EXPECT_EQ(read.reasons, written.reasons);
  EXPECT_EQ(read.candidates, written.candidates);
}

TEST(Journal, RefusesWhatItDidNotWrite) {
  const std::string line = to_line(entry());
  for (const std::string& bad : {std::string(), std::string("{}"), line.substr(0, line.size() / 2),
                                 std::string(R"({"action":"evict"})"), std::string("[1]")}) {
    EXPECT_FALSE(parse_line(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace spillway::agent
