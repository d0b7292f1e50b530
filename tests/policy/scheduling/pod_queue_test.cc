// The queue of pods against a list that is sorted anew at every question, over drawn histories; and its promises one by
// one.
#include "policy/scheduling/pod_queue.h"

#include "base/rng.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace spillway::scheduling {
namespace {

constexpr Instant kStart{};

api::Pod waiting_pod(const std::string& name, std::int32_t priority = 0) {
  api::Pod pod;
  pod.metadata.ns = "shop";
  pod.metadata.name = name;
  pod.metadata.uid = "uid-" + name;
  pod.spec.priority = priority;
  return pod;
}

TEST(PodQueue, ARefusedPodWaitsForAChangeAndForItsBackoff) {
  PodQueue queue;
  Instant now = kStart;
  queue.enter(waiting_pod("a"), now);
  for (const int wait : {1, 2, 4, 8, 10, 10}) {
    ASSERT_EQ(queue.pop(now), "shop/a");
    queue.refuse("shop/a", now);
    EXPECT_EQ(queue.pop(now + hours(1)), std::nullopt) << "nothing has changed";
    queue.wake("shop/a");
    EXPECT_EQ(queue.next_due(), now + seconds(wait));
    EXPECT_EQ(queue.pop(now + seconds(wait) - milliseconds(1)), std::nullopt) << wait;
    now += seconds(wait);
  }
  ASSERT_EQ(queue.pop(now), "shop/a");
  queue.refuse("shop/a", now);
  EXPECT_EQ(queue.next_due(), std::nullopt) << "it waits for a change, not for a time";
}

TEST(PodQueue, KnowsWhatAPodHasBeenThrough) {
  PodQueue queue;
  EXPECT_EQ(queue.course_of("shop/a"), std::nullopt);
  queue.enter(waiting_pod("a"), kStart);
  EXPECT_EQ(queue.course_of("shop/a"), std::nullopt) << "it was never tried";
  queue.pop(kStart + seconds(1));
  EXPECT_EQ(queue.course_of("shop/a"), (PodQueue::Course{1, kStart, kStart + seconds(1)}));
  queue.refuse("shop/a", kStart + seconds(2));
  EXPECT_EQ(queue.course_of("shop/a"), (PodQueue::Course{1, kStart, kStart + seconds(1)}));
  queue.wake("shop/a");
  queue.pop(kStart + seconds(9));
  EXPECT_EQ(queue.course_of("shop/a"), (PodQueue::Course{2, kStart, kStart + seconds(9)}));
  queue.erase("shop/a");
  EXPECT_EQ(queue.course_of("shop/a"), std::nullopt);
}

TEST(PodQueue, AChangeAfterTheBackoffCountsAtOnce) {
  PodQueue queue;
  queue.enter(waiting_pod("a"), kStart);
  ASSERT_EQ(queue.pop(kStart), "shop/a");
  queue.refuse("shop/a", kStart);
  queue.wake("shop/a");
  queue.wake("shop/a");
  EXPECT_EQ(queue.pop(kStart + seconds(5)), "shop/a");
  EXPECT_EQ(queue.pop(kStart + hours(1)), std::nullopt) << "it is being tried";
}

TEST(PodQueue, AChangeWhileItIsTriedCounts) {
  PodQueue queue;
  queue.enter(waiting_pod("a"), kStart);
  ASSERT_EQ(queue.pop(kStart), "shop/a");
  EXPECT_FALSE(queue.wake("shop/a"));
  queue.refuse("shop/a", kStart);
  EXPECT_EQ(queue.refused(), 0U);
  EXPECT_EQ(queue.pop(kStart), std::nullopt) << "its back-off is not over";
  ASSERT_EQ(queue.pop(kStart + seconds(1)), "shop/a");
  queue.refuse("shop/a", kStart + seconds(1));
  EXPECT_EQ(queue.refused(), 1U) << "that was another attempt";
}

TEST(PodQueue, WakesWhoWasRefusedLongAgo) {
  PodQueue queue;
  EXPECT_EQ(queue.refused_since(), std::nullopt);
  for (const std::string name : {"a", "b"}) {
    queue.enter(waiting_pod(name), kStart);
    ASSERT_EQ(queue.pop(kStart), "shop/" + name);
  }
  queue.refuse("shop/b", kStart + seconds(1));
  queue.refuse("shop/a", kStart + seconds(2));
  EXPECT_EQ(queue.refused_since(), kStart + seconds(1));
  EXPECT_EQ(queue.wake_refused_until(kStart), std::vector<std::string>());
  EXPECT_EQ(queue.wake_refused_until(kStart + seconds(1)), std::vector<std::string>{"shop/b"});
  EXPECT_EQ(queue.refused_since(), kStart + seconds(2));
  queue.erase("shop/a");
  EXPECT_EQ(queue.refused_since(), std::nullopt);
}

TEST(PodQueue, CountsAddedPodsAndTheRefusingPlugins) {
  using Counts = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;
  FilterSet two;
  two.insert(Filter::kNodePorts);
  two.insert(Filter::kNodeName);
  PodQueue queue;
  queue.enter(waiting_pod("a"), kStart);
  queue.pop(kStart);
  queue.refuse("shop/a", kStart, two);
  const std::string scheduler = waiting_pod("a").spec.scheduler_name;
  EXPECT_EQ(queue.refusals(), (std::map<std::pair<std::string, Filter>, std::size_t>{
                                  {{scheduler, Filter::kNodeName}, 1}, {{scheduler, Filter::kNodePorts}, 1}}));
  queue.wake("shop/a", "NodeAdd");
  EXPECT_EQ(queue.refusals().size(), 2U) << "until it is tried again";
  queue.pop(kStart + seconds(9));
  EXPECT_TRUE(queue.refusals().empty());
  queue.fail("shop/a", kStart + seconds(9));
  EXPECT_EQ(queue.incoming(), (Counts{{{"active", "UnschedulablePodAdd"}, 1},
                                      {{"active", "BackoffComplete"}, 1},
                                      {{"backoff", "NodeAdd"}, 1},
                                      {{"backoff", "ScheduleAttemptFailure"}, 1},
                                      {{"unschedulable", "ScheduleAttemptFailure"}, 1}}));
  queue.pop(kStart + hours(1));
  queue.refuse("shop/a", kStart + hours(1), two);
  queue.erase("shop/a");
  EXPECT_TRUE(queue.refusals().empty());
}

TEST(PodQueue, AFailureIsNoRefusal) {
  PodQueue queue;
  queue.enter(waiting_pod("a"), kStart);
  ASSERT_EQ(queue.pop(kStart), "shop/a");
  queue.fail("shop/a", kStart);
  EXPECT_EQ(queue.refused(), 0U);
  EXPECT_EQ(queue.pop(kStart), std::nullopt);
  EXPECT_EQ(queue.pop(kStart + seconds(1)), "shop/a") << "nothing has to change for it";
}

TEST(PodQueue, WhoIsRefusedGoesBehindItsEquals) {
  PodQueue queue;
  queue.enter(waiting_pod("a"), kStart);
  ASSERT_EQ(queue.pop(kStart), "shop/a");
  queue.refuse("shop/a", kStart + seconds(2));
  queue.enter(waiting_pod("b"), kStart + seconds(1));
  queue.enter(waiting_pod("c", 5), kStart + seconds(3));
  queue.wake("shop/a");
  const Instant later = kStart + minutes(1);
  EXPECT_EQ(queue.pop(later), "shop/c");
  EXPECT_EQ(queue.pop(later), "shop/b");
  EXPECT_EQ(queue.pop(later), "shop/a");
}

TEST(PodQueue, AnotherPodOfTheNameStartsAnew) {
  PodQueue queue;
  queue.enter(waiting_pod("a"), kStart);
  ASSERT_EQ(queue.pop(kStart), "shop/a");
  queue.refuse("shop/a", kStart);
  api::Pod other = waiting_pod("a");
  other.metadata.uid = "another";
  queue.enter(other, kStart);
  EXPECT_EQ(queue.refused(), 0U);
  EXPECT_EQ(queue.pop(kStart), "shop/a");
}

/// A model of the queue's answers, which sorts everything at each question.
struct Model {
  struct Pod {
    std::int32_t priority = 0;
    Instant entered;
    int attempts = 0;
    std::optional<Instant> ready;  // nullopt: refused, or being tried
    Instant until;
    bool is_refused = false;
    bool is_tried = false;
    bool is_woken = false;  // while the pod is being tried
  };

  std::map<std::string, Pod> pods;

  std::optional<std::string> pop(Instant now) {
    std::optional<std::tuple<std::int64_t, Instant, std::string>> best;
    for (const auto& [key, pod] : pods) {
      if (!pod.ready || *pod.ready > now) continue;
      const std::tuple rank(-static_cast<std::int64_t>(pod.priority), pod.entered, key);
      if (!best || rank < *best) best = rank;
    }
    if (!best) return std::nullopt;
    Pod& next = pods.at(std::get<2>(*best));
    next.ready.reset();
    ++next.attempts;
    next.is_tried = true;
    next.is_woken = false;
    return std::get<2>(*best);
  }

  void refuse(const std::string& key, Instant now) {
    const auto pod = pods.find(key);
    if (pod == pods.end()) return;
    pod->second.entered = now;
    pod->second.ready.reset();
    pod->second.is_refused = true;
    pod->second.until = now + std::min<Duration>(seconds(10), seconds(1 << std::min(pod->second.attempts - 1, 5)));
    if (pod->second.attempts == 0) pod->second.until = now;
    const bool was_woken = pod->second.is_tried && pod->second.is_woken;
    pod->second.is_tried = false;
    if (was_woken) wake(key);
  }

  void wake(const std::string& key) {
    const auto pod = pods.find(key);
    if (pod == pods.end()) return;
    pod->second.is_woken = true;
    if (!pod->second.is_refused) return;
    pod->second.is_refused = false;
    pod->second.ready = pod->second.until;
  }
};

TEST(PodQueue, EqualsAListThatIsSortedEachTime) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    PodQueue queue;
    Model model;
    Instant now = kStart;
    for (int step = 0; step < 150; ++step) {
      now += milliseconds(static_cast<std::int64_t>(rng.below(1500)));
      const std::string name(1, static_cast<char>('a' + rng.below(5)));
      const std::string key = "shop/" + name;
      switch (rng.below(6)) {
        case 0:
          if (!model.pods.contains(key)) {
            const auto priority = static_cast<std::int32_t>(rng.below(3)) - 1;
            queue.enter(waiting_pod(name, priority), now);
            model.pods[key] = {.priority = priority, .entered = now, .ready = now};
          }
          break;
        case 1:
          queue.wake(key);
          model.wake(key);
          break;
        case 2:
          if (rng.below(4) == 0) {
            queue.erase(key);
            model.pods.erase(key);
          }
          break;
        default: {
          const auto next = queue.pop(now);
          ASSERT_EQ(next, model.pop(now)) << fmt::format("seed {} step {}", seed, step);
          if (!next) break;
          if (rng.below(5) == 0) {
            queue.wake(*next);
            model.wake(*next);
          }
          queue.refuse(*next, now);
          model.refuse(*next, now);
          if (rng.below(3) == 0) {
            queue.wake(*next);
            model.wake(*next);
          }
        }
      }
      const auto refused = std::ranges::count_if(model.pods, [](const auto& pod) { return pod.second.is_refused; });
      ASSERT_EQ(queue.refused(), static_cast<std::size_t>(refused)) << seed;
    }
  }
}

}  // namespace
}  // namespace spillway::scheduling
