// Promises that only the store in memory makes.
#include "store/memory_store.h"

#include "store/store_client.h"
#include "store/test_loop.h"

#include <gmock/gmock.h>

namespace spillway::store {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(MemoryStore, ABurstIsOneTask) {
  TestLoop loop;
  MemoryStore store(loop.poster());
  std::vector<std::string> order;
  RecordingWatcher watcher;
  store.watch("", Revision(), watcher);
  for (int i = 0; i < 3; ++i) {
    store.write(Write{"a", value_of(std::to_string(i)), std::nullopt}, [&order, &watcher](Result<WriteResult> result) {
      order.push_back(fmt::format("write {} after {} changes", result->revision.number(), watcher.seen.size()));
    });
    store.range({}, [&](Result<RangeResult> result) { order.push_back("list " + describe(result->entries.front())); });
  }
  EXPECT_EQ(loop.waiting(), 1U);
  loop.run_posted();
  EXPECT_THAT(order, ElementsAre("write 1 after 3 changes", "list a=0 c1 m1 v1", "write 2 after 3 changes",
                                 "list a=1 c1 m2 v2", "write 3 after 3 changes", "list a=2 c1 m3 v3"));
}

TEST(MemoryStore, BoundsTheBytesThatWait) {
  TestLoop loop;
  StoreLimits limits;
  limits.pending_bytes_max = 100;
  MemoryStore store(loop.poster(), limits);
  std::vector<int> written;
  const auto write = [&] {
    store.write(Write{"a", value_of(std::string(59, 'x')), std::nullopt},
                [&written](const Result<WriteResult>& result) { written.push_back(result.has_value() ? 1 : 0); });
  };
  write();
  write();
  loop.run_posted();
  write();  // the waiting write was dropped
  loop.run_posted();
  std::ranges::sort(written);
  EXPECT_THAT(written, ElementsAre(0, 1, 1));
}

TEST(MemoryStore, BoundsItsHistory) {
  TestLoop loop;
  MemoryStore store(loop.poster(), StoreLimits{}, 100);
  StoreClient client(store, loop);
  RecordingWatcher watcher;
  store.watch("", Revision(), watcher);
  for (std::uint64_t i = 1; i <= 1'000; ++i) {
    ASSERT_TRUE(client.put(fmt::format("k{}", i % 3), "v"));
    ASSERT_LE(i - store.compacted().number(), 112U);
    if (i > 100) {
      ASSERT_GE(i - store.compacted().number(), 100U);
    }
  }
  EXPECT_THAT(watcher.seen, SizeIs(1'000));
  const Result<RangeResult> old = client.range({.at = Revision(500)});
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, ErrorCode::kExpired);
  EXPECT_TRUE(client.range({.at = Revision(900)}));
}

}  // namespace
}  // namespace spillway::store
