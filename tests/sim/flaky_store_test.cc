// A store that refuses and dawdles keeps the promises of a store: completions in the order of the writes, each after
// its change, and what it refuses is not there.
#include "sim/flaky_store.h"

#include "store/memory_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace spillway::sim {
namespace {

class Changes final : public store::Watcher {
 public:
  void on_changes(const std::vector<store::Change>& changes) override { seen += changes.size(); }

  void on_watch_end(const Error&) override { ADD_FAILURE(); }

  std::size_t seen = 0;
};

TEST(FlakyStore, CompletesInOrderAndStoresNothingItRefuses) {
  VirtualTime time;
  store::MemoryStore memory(
      [&](std::move_only_function<void()> task) { time.after(Duration::zero(), std::move(task)); });
  FlakyStore flaky(memory, time, Rng(3));
  flaky.set_faults({.refused_ppm = 200'000, .late_ppm = 500'000});
  Changes changes;
  flaky.watch("", store::Revision(), changes);
  std::vector<int> stored;
  std::vector<int> refused;
  constexpr int kWrites = 200;
  for (int i = 0; i < kWrites; ++i) {
    flaky.write({std::to_string(i), std::make_shared<const std::string>("x"), store::Revision()},
                [&, i](const Result<store::WriteResult>& result) {
                  if (!result) return refused.push_back(i);
                  EXPECT_GE(changes.seen, result->revision.number()) << "told before its change";
                  stored.push_back(i);
                });
    if (i % 3 == 0) time.run_until(time.now().mono + milliseconds(20));
  }
  time.run_until(time.now().mono + seconds(10));
  EXPECT_EQ(stored.size() + refused.size(), static_cast<std::size_t>(kWrites)) << "each is answered once";
  EXPECT_GT(refused.size(), 10U);
  EXPECT_TRUE(std::ranges::is_sorted(stored));
  EXPECT_EQ(memory.revision().number(), stored.size());
}

}  // namespace
}  // namespace spillway::sim
