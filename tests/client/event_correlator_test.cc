// Goal: the events of every object are sent, and no object crowds out the others.
#include "client/event_correlator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace spillway::client {
namespace {

class EventCorrelatorTest : public ::testing::Test {
 protected:
  CorrelatedEvent say(std::string message, std::string object = "p", std::string container = {}) {
    return correlator.correlate({.about = {.kind = "Pod", .ns = "shop", .name = object, .field_path = container},
                                 .type = EventType::kWarning,
                                 .reason = "Failed",
                                 .message = std::move(message)},
                                now);
  }

  EventCorrelator correlator{EventCorrelator::Limits{.known_max = 100}};
  Instant now{hours(1)};
};

TEST_F(EventCorrelatorTest, TheTenthTextForOneReasonIsCombined) {
  for (int i = 1; i < 10; ++i) {
    const CorrelatedEvent event = say(fmt::format("text {}", i));
    EXPECT_FALSE(event.key.combined) << i;
    EXPECT_EQ(event.message, fmt::format("text {}", i));
  }
  const CorrelatedEvent tenth = say("text 10", "p", "spec.containers{c}");
  EXPECT_TRUE(tenth.key.combined);
  EXPECT_EQ(tenth.message, "(combined from similar events): text 10");
  EXPECT_EQ(tenth.key.about.field_path, "");
  const CorrelatedEvent next = say("text 11");
  EXPECT_EQ(next.key, tenth.key) << "one event";
  EXPECT_EQ(next.message, "(combined from similar events): text 11");
  EXPECT_FALSE(say("text 3").key.combined) << "it has an event of its own";
}

TEST_F(EventCorrelatorTest, OtherReasonsAndObjectsAreNotSimilar) {
  for (int i = 1; i < 10; ++i) say(fmt::format("text {}", i));
  EXPECT_FALSE(say("text 10", "q").key.combined);
  const auto other_reason = correlator.correlate({.about = {.kind = "Pod", .ns = "shop", .name = "p"},
                                                  .type = EventType::kWarning,
                                                  .reason = "Killing",
                                                  .message = "m"},
                                                 now);
  EXPECT_FALSE(other_reason.key.combined);
  EXPECT_TRUE(say("text 10").key.combined);
}

TEST_F(EventCorrelatorTest, SimilarEventsAreForgottenAfterTenQuietMinutes) {
  for (int i = 1; i < 10; ++i) say(fmt::format("text {}", i));
  now += minutes(10);
  EXPECT_TRUE(say("text 10").key.combined) << "ten minutes are within";
  now += minutes(10) + Duration(1);
  EXPECT_FALSE(say("text 11").key.combined);
}

TEST_F(EventCorrelatorTest, AnObjectSpeaksTwentyFiveTimesAndThenEveryFiveMinutes) {
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(say("m").passes) << i;
  EXPECT_FALSE(say("m").passes);
  EXPECT_FALSE(say("other words", "p", "spec.containers{c}").passes) << "its containers are one with it";
  EXPECT_TRUE(say("m", "q").passes) << "others are not held back";
  now += minutes(5) + milliseconds(1);
  EXPECT_TRUE(say("m").passes);
  EXPECT_FALSE(say("m").passes);
}

TEST_F(EventCorrelatorTest, TheObjectWithTheOldestEventIsForgottenFirst) {
  for (int i = 0; i < 26; ++i) say("m");
  for (int i = 0; i < 99; ++i) say("m", fmt::format("q{}", i));
  EXPECT_FALSE(say("m").passes);
  for (int i = 0; i < 100; ++i) say("m", fmt::format("r{}", i));
  EXPECT_TRUE(say("m").passes);
}

}  // namespace
}  // namespace spillway::client
