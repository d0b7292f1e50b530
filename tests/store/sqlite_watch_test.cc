// A watch is served from memory as far as that reaches back, else from the file: at that edge nothing is lost and
// nothing delivered twice.
#include "store/scratch_directory.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store_client.h"
#include "store/test_loop.h"

#include <gtest/gtest.h>

#include <deque>

namespace spillway::store {
namespace {

class Revisions final : public Watcher {
 public:
  void on_changes(const std::vector<Change>& changes) override {
    for (const Change& change : changes) seen.push_back(change.revision.number());
  }

  void on_watch_end(const Error& error) override { end = error; }

  std::vector<std::uint64_t> seen;
  std::optional<Error> end;
};

class SqliteWatch : public ::testing::Test {
 protected:
  void open() {
    store_.reset();
    SqliteOptions options;
    options.limits.pending_operations_max = 10'000;
    options.limits.pending_bytes_max = std::size_t{64} * 1024 * 1024;
    auto opened = SqliteStore::open(directory_.file("test.db"), loop_.poster(), std::move(options));
    ASSERT_TRUE(opened) << opened.error().text();
    store_ = *std::move(opened);
  }

  void write(int count, std::size_t bytes) {
    int done = 0;
    for (int i = 0; i < count; ++i) {
      store_->write(Write{"k", value_of(std::string(bytes, 'x')), std::nullopt},
                    [&](const Result<WriteResult>& result) {
                      ASSERT_TRUE(result);
                      ++done;
                    });
    }
    ASSERT_TRUE(loop_.run_until([&] { return done == count; }));
  }

  /// Every watch in `after` sees each revision after its own up to the head, once, in order.
  void expect_all(const std::vector<std::uint64_t>& after) {
    std::deque<Revisions> watchers(after.size());
    for (std::size_t i = 0; i < after.size(); ++i) store_->watch("", Revision(after[i]), watchers[i]);
    write(1, 1);  // and a write during the replay of history
    const std::uint64_t head = store_->revision().number();
    for (std::size_t i = 0; i < after.size(); ++i) {
      ASSERT_TRUE(loop_.run_until(
          [&] { return watchers[i].end || (!watchers[i].seen.empty() && watchers[i].seen.back() == head); }));
      ASSERT_FALSE(watchers[i].end) << watchers[i].end->text();
      std::vector<std::uint64_t> wanted;
      for (std::uint64_t revision = after[i] + 1; revision <= head; ++revision) wanted.push_back(revision);
      EXPECT_EQ(watchers[i].seen, wanted) << "a watch after " << after[i];
    }
    store_.reset();
  }

  TestLoop loop_;
  ScratchDirectory directory_;
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(SqliteWatch, FromAroundTheOldestChangeThatCanBeKeptByNumber) {
  open();
  write(4'200, 1);  // 4096 can be kept
  expect_all({100, 101, 102, 103, 104, 105, 106, 4'198, 4'199, 4'200});
}

TEST_F(SqliteWatch, FromAroundTheOldestChangeThatCanBeKeptByBytes) {
  open();
  write(40, std::size_t{1024} * 1024);  // 16 MiB can be kept
  std::vector<std::uint64_t> all;
  for (std::uint64_t revision = 15; revision <= 40; ++revision) all.push_back(revision);
  expect_all(all);
}

TEST_F(SqliteWatch, ChangesAreKeptOnlyWhileAWatchCatchesUp) {
  open();
  Revisions watcher;
  store_->watch("", Revision(), watcher);
  write(10, 100);
  ASSERT_TRUE(loop_.run_until([&] { return watcher.seen.size() == 10; }));
  write(2, 100);
  const telemetry::MemoryRows rows = store_->memory();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_GT(rows[0].bytes, 0U) << "pages of SQLite";
  EXPECT_EQ(rows[1].count, 0U) << "changes";
  EXPECT_EQ(watcher.seen.size(), 12U);
  Revisions late;
  store_->watch("", Revision(3), late);
  write(1, 100);
  ASSERT_TRUE(loop_.run_until([&] { return late.seen.size() == 10; }));
  EXPECT_EQ(late.seen.back(), 13U);
  write(1, 100);
  EXPECT_EQ(store_->memory()[1].bytes, 0U);
  store_.reset();
}

TEST_F(SqliteWatch, FromBeforeTheStartOfTheProcess) {
  open();
  write(10, 1);
  open();  // nothing is in memory
  write(1, 1);
  expect_all({0, 5, 9, 10, 11});
}

TEST_F(SqliteWatch, FromTheRevisionThatIsCompactedAndFromOneBeforeIt) {
  open();
  write(20, 1);
  StoreClient client(*store_, loop_);
  ASSERT_TRUE(client.compact(Revision(10)));
  Revisions before;
  Revisions at;
  store_->watch("", Revision(9), before);
  store_->watch("", Revision(10), at);
  ASSERT_TRUE(loop_.run_until([&] { return before.end && at.seen.size() == 10; }));
  EXPECT_EQ(before.end->code, ErrorCode::kExpired);
  EXPECT_TRUE(before.seen.empty());
  EXPECT_EQ(at.seen.front(), 11U);
  store_.reset();
}

}  // namespace
}  // namespace spillway::store
