// Back-off of replacements for evicted pods: every short sequence of evictions against the rule in words, a loop over a
// day, and pods that only happen to leave together.
#include "policy/workloads/eviction_backoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace spillway::workloads {
namespace {

constexpr Instant kBegin{hours(1)};

TEST(EvictionBackoff, ALoopSlowsDownToOneEvictionInAQuarterOfAnHour) {
  EvictionBackoff backoff;
  Instant now = kBegin;
  Duration wait{};
  for (int i = 0; i < 40; ++i) {
    const std::string pod = "p" + std::to_string(i);
    const EvictionBackoff::Node& node = backoff.evicted("n", pod, Duration::zero(), now);
    ASSERT_EQ(node.wait, wait) << i;
    ASSERT_EQ(node.in_a_row, i + 1);
    ASSERT_EQ(backoff.held(now), i == 0 ? 0U : 1U) << "the first eviction costs nothing";
    now += wait;
    ASSERT_EQ(backoff.held(now), 0U);
    ASSERT_EQ(backoff.next_end(now), std::nullopt);
    now += seconds(3);  // the lifetime of the next pod
    backoff.tidy(now);
    wait = std::clamp(2 * wait, EvictionBackoff::kMin, EvictionBackoff::kMax);
  }
  EXPECT_EQ(wait, EvictionBackoff::kMax);
}

/// A node that loses all pods of an owner, one after the other, is no loop, however many they are.
TEST(EvictionBackoff, WhatWasThereBeforeIsReplacedAtOnce) {
  for (const Duration gap : {seconds(0), seconds(1), seconds(10), seconds(100)}) {
    EvictionBackoff backoff;
    Instant now = kBegin;
    for (int i = 0; i < 110; ++i) {
      backoff.evicted("n", std::to_string(i), seconds(1) + (now - kBegin), now);
      ASSERT_EQ(backoff.held(now), 0U) << i;
      now += gap;
    }
  }
}

TEST(EvictionBackoff, WhatWasThereBeforeWaitsWithTheOthersAndNoLonger) {
  EvictionBackoff backoff;
  backoff.evicted("n", "a", hours(1), kBegin);
  backoff.evicted("n", "b", seconds(4), kBegin + seconds(5));
  const Instant end = kBegin + seconds(15);
  EXPECT_EQ(backoff.evicted("n", "c", hours(1), kBegin + seconds(6)).until, end);
  EXPECT_EQ(backoff.held(kBegin + seconds(6)), 2U);
  EXPECT_EQ(backoff.pod_held_until("c", kBegin + seconds(6)), end);
  EXPECT_EQ(backoff.evicted("n", "d", hours(1), end).until, end);
  EXPECT_EQ(backoff.held(end), 0U);
  EXPECT_EQ(backoff.evicted("n", "e", seconds(1), end).until, end + seconds(20));
}

/// Every sequence of four evictions from two nodes, at five distances, of pods made just now or long ago: what one node
/// does changes nothing for the other, and each step is what the rule says in words.
TEST(EvictionBackoff, EveryShortSequenceIsWhatTheRuleSays) {
  struct Expected {
    std::optional<Instant> until;
    Duration wait{};
    std::size_t pods = 0;
  };

  constexpr std::array<Duration, 2> kAges = {Duration::zero(), hours(2)};
  constexpr std::array<Duration, 5> kGaps = {milliseconds(1), seconds(10), seconds(25), minutes(30),
                                             EvictionBackoff::kForgottenAfter + minutes(1)};
  constexpr int kSteps = 4;
  int sequences = 1;
  for (int i = 0; i < kSteps; ++i) sequences *= 4 * static_cast<int>(kGaps.size());
  for (int sequence = 0; sequence < sequences; ++sequence) {
    EvictionBackoff backoff;
    std::array<Expected, 2> expected;
    Instant now = kBegin;
    int rest = sequence;
    for (int i = 0; i < kSteps; ++i) {
      const std::size_t which = static_cast<std::size_t>(rest % 2);
      rest /= 2;
      const Duration age = kAges.at(static_cast<std::size_t>(rest % 2));
      rest /= 2;
      now += kGaps.at(static_cast<std::size_t>(rest) % kGaps.size());
      rest /= static_cast<int>(kGaps.size());
      Expected& node = expected.at(which);
      if (!node.until || now > *node.until + minutes(30)) {
        node = {now, Duration::zero(), 0};
      } else if (now < *node.until) {
        ++node.pods;
      } else if (age == Duration::zero()) {
        node.wait = node.wait == Duration::zero() ? seconds(10) : std::min(2 * node.wait, Duration(minutes(15)));
        node.until = now + node.wait;
        node.pods = 1;
      }
      const std::string name = which == 0 ? "a" : "b";
      const std::string pod = "p" + std::to_string(i);
      backoff.evicted(name, pod, age, now);
      const bool waits = now < *node.until;
      ASSERT_EQ(backoff.node_held_until(name, now), waits ? node.until : std::nullopt) << sequence << " " << i;
      ASSERT_EQ(backoff.pod_held_until(pod, now), waits ? node.until : std::nullopt) << sequence << " " << i;
      std::size_t held = 0;
      std::optional<Instant> first;
      for (const Expected& each : expected) {
        if (!each.until || now >= *each.until) continue;
        held += each.pods;
        first = std::min(first.value_or(*each.until), *each.until);
      }
      ASSERT_EQ(backoff.held(now), held) << sequence << " " << i;
      ASSERT_EQ(backoff.next_end(now), first) << sequence << " " << i;
    }
  }
}

TEST(EvictionBackoff, KeepsNoNodeForEver) {
  EvictionBackoff backoff;
  for (int i = 0; i < 100; ++i) backoff.evicted(std::to_string(i), "p", Duration::zero(), kBegin + seconds(i));
  backoff.tidy(kBegin + EvictionBackoff::kForgottenAfter + seconds(50));
  EXPECT_EQ(backoff.nodes().size(), 50U);
  backoff.tidy(kBegin + hours(2));
  EXPECT_TRUE(backoff.nodes().empty());
}

}  // namespace
}  // namespace spillway::workloads
