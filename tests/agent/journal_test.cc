#include "agent/contract/journal.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

JournalEntry entry() {
  JournalEntry made;
  policy::Decision& decision = made.decision;
  decision.at = WallTime(microseconds(1'700'000'000'123'456));
  decision.by = "n1";
  decision.area = policy::Area::kEviction;
  decision.verdict = policy::Verdict::kActs;
  decision.action = "evict";
  decision.subject = {.kind = "Pod", .ns = "shop", .name = "cart", .uid = "u1"};
  decision.message = "The node was low on resource: memory. ";
  decision.reasons = {{policy::ReasonCode::kThresholdMet,
                       {{"signal", std::string("memory.available")}, {"available_bytes", std::int64_t{104857599}}}}};
  decision.candidates = {
      {decision.subject, {policy::ReasonCode::kRankedFirst, {{"priority", std::int64_t{-5}}}}, "priority"}};
  decision.candidates_total = 7;
  decision.cost = {{"grace_seconds", std::int64_t{1}}, {"share", 0.25}};
  made.emergency = true;
  made.eviction = eviction::EvictPod{.uid = "u1",
                                     .pod = {"shop", "cart"},
                                     .grace_period_seconds = 1,
                                     .message = decision.message,
                                     .annotations = {{"starved_resource", "memory"}},
                                     .disruption_target = true,
                                     .metric_label = "memory.available"};
  return made;
}

TEST(Journal, LinesSayEverythingAgain) {
  const JournalEntry written = entry();
  const std::string line = to_line(written);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto read = std::get<JournalEntry>(parse_line(line).value());
  EXPECT_EQ(read.decision, written.decision);
  EXPECT_EQ(read.eviction, written.eviction);
  EXPECT_EQ(read.emergency, written.emergency);
}

TEST(Journal, ADecisionWithoutAnEvictionIsALineToo) {
  JournalEntry written = entry();
  written.eviction.reset();
  written.decision.area = policy::Area::kAdmission;
  const auto read = std::get<JournalEntry>(parse_line(to_line(written)).value());
  EXPECT_EQ(read.decision, written.decision);
  EXPECT_FALSE(read.eviction);
}

TEST(Journal, TheResultIsAddedToTheDecision) {
  JournalEntry other = entry();
  other.decision.subject.uid = "u2";
  const Aftermath aftermath{
      .uid = "u1", .at = other.decision.at, .facts = {{"gone_after_seconds", 0.5}, {"freed_bytes", std::int64_t{7}}}};
  const std::string text = to_line(entry()) + "\n" + to_line(other) + "\n" + to_line(aftermath) + "\n{\"dec";
  const std::vector<JournalEntry> entries = read_journal(text);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].decision.cost.size(), 4u);
  EXPECT_EQ(entries[0].decision.cost.back(), (policy::Fact{"freed_bytes", std::int64_t{7}}));
  EXPECT_EQ(entries[1].decision.cost.size(), 2u);
}

TEST(Journal, AnIntentIsReadUntilItsEntryFollows) {
  JournalEntry intent = entry();
  intent.intent = true;
  const std::string text = to_line(intent) + "\n";
  ASSERT_EQ(read_journal(text).size(), 1u);
  const std::vector<JournalEntry> both = read_journal(text + to_line(entry()) + "\n");
  ASSERT_EQ(both.size(), 1u);
  EXPECT_FALSE(both.front().intent);
}

TEST(Journal, RefusesWhatItDidNotWrite) {
  const std::string line = to_line(entry());
  for (const std::string& bad :
       {std::string(), std::string("{}"), line.substr(0, line.size() / 2), std::string(R"({"decision":{}})"),
        std::string(R"({"aftermath":{"uid":"u"}})"), std::string("[1]")}) {
    EXPECT_FALSE(parse_line(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace spillway::agent
