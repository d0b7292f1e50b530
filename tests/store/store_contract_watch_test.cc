// Promises that every store makes (store/store.h) about its watches and what they have delivered.
#include "store/store_contract.h"

#include <gmock/gmock.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace spillway::store::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(StoreContract, WatchSeesEveryWriteOnceBeforeItsCompletion) {
  RecordingWatcher watcher;
  store_->watch("a", Revision(), watcher);
  put("a", "1");
  EXPECT_THAT(watcher.seen, ElementsAre("1 a: (none) -> 1"));
  put("b", "1");
  put("ab", "1");
  put("a", "2");
  remove("a");
  EXPECT_THAT(watcher.seen, ElementsAre("1 a: (none) -> 1", "3 ab: (none) -> 1", "4 a: 1 -> 2", "5 a: 2 -> (none)"));
  EXPECT_THAT(watcher.created, ElementsAre(Revision(1), Revision(3), Revision(1), Revision(1)));
  EXPECT_FALSE(watcher.end);
}

TEST_P(StoreContract, WatchReplaysThePast) {
  put("a", "1");
  put("b", "1");
  put("a", "2");
  remove("b");
  put("a", "3");
  put("b", "2");
  RecordingWatcher all;
  RecordingWatcher some;
  store_->watch("", Revision(1), all);
  store_->watch("a", Revision(3), some);
  EXPECT_THAT(all.seen, IsEmpty()) << "nothing is delivered inside watch()";
  run_until_seen(all, 5);
  run_until_seen(some, 1);
  EXPECT_THAT(all.seen,
              ElementsAre("2 b: (none) -> 1", "3 a: 1 -> 2", "4 b: 1 -> (none)", "5 a: 2 -> 3", "6 b: (none) -> 2"));
  EXPECT_THAT(some.seen, ElementsAre("5 a: 2 -> 3"));
  put("a", "4");
  EXPECT_EQ(all.seen.back(), "7 a: 3 -> 4");
  EXPECT_EQ(some.seen.back(), "7 a: 3 -> 4");
}

TEST_P(StoreContract, WatchOfTheFutureWaits) {
  RecordingWatcher watcher;
  store_->watch("", Revision(2), watcher);
  put("a", "1");
  put("a", "2");
  EXPECT_THAT(watcher.seen, IsEmpty());
  put("a", "3");
  EXPECT_THAT(watcher.seen, ElementsAre("3 a: 2 -> 3"));
}

TEST_P(StoreContract, WatchOfForgottenHistoryEnds) {
  put("a", "1");
  put("a", "2");
  put("a", "3");
  ASSERT_TRUE(client_->compact(Revision(2)));
  RecordingWatcher expired;
  RecordingWatcher just_in_time;
  store_->watch("", Revision(1), expired);
  store_->watch("", Revision(2), just_in_time);
  EXPECT_FALSE(expired.end) << "nothing is delivered inside watch()";
  ASSERT_TRUE(loop_.run_until([&] { return expired.end.has_value(); }));
  EXPECT_EQ(expired.end->code, ErrorCode::kExpired);
  EXPECT_THAT(expired.seen, IsEmpty());
  run_until_seen(just_in_time, 1);
  EXPECT_THAT(just_in_time.seen, ElementsAre("3 a: 2 -> 3"));
  put("a", "4");
  EXPECT_THAT(expired.seen, IsEmpty());
}

TEST_P(StoreContract, UnwatchIsTheEnd) {
  RecordingWatcher watcher;
  const WatchId live = store_->watch("", Revision(), watcher);
  put("a", "1");
  store_->unwatch(live);
  put("a", "2");
  EXPECT_THAT(watcher.seen, SizeIs(1));
  RecordingWatcher never;
  store_->unwatch(store_->watch("", Revision(), never));
  put("a", "3");
  EXPECT_THAT(never.seen, IsEmpty());
}

/// Ends its own watch and starts another one during a delivery.
class RestlessWatcher final : public Watcher {
 public:
  RestlessWatcher(Store& store, RecordingWatcher& successor) : store_(store), successor_(successor) {}

  void start() { id_ = store_.watch("", Revision(), *this); }

  void on_changes(const std::vector<Change>& changes) override {
    ++calls;
    store_.unwatch(id_);
    store_.watch("", changes.front().revision, successor_);
  }

  void on_watch_end(const Error&) override { ADD_FAILURE() << "unwatched"; }

  int calls = 0;

 private:
  Store& store_;
  RecordingWatcher& successor_;
  WatchId id_ = 0;
};

TEST_P(StoreContract, WatchersMayBeginAndEndInsideADelivery) {
  RecordingWatcher successor;
  RestlessWatcher restless(*store_, successor);
  restless.start();
  put("a", "1");
  put("a", "2");
  put("a", "3");
  run_until_seen(successor, 2);
  EXPECT_EQ(restless.calls, 1);
  EXPECT_THAT(successor.seen, ElementsAre("2 a: 1 -> 2", "3 a: 2 -> 3"));
}

TEST_P(StoreContract, ListThenWatchMissesNothingUnderWrites) {
  int written = 0;
  std::function<void()> write_next = [&] {
    if (written == 300) return;
    store_->write(Write{fmt::format("k{}", written % 5), value_of(std::to_string(written)), std::nullopt},
                  [&](Result<WriteResult> result) {
                    ASSERT_TRUE(result);
                    ++written;
                    write_next();
                  });
  };
  write_next();
  std::deque<RecordingWatcher> watchers;
  std::vector<Revision> starts;
  for (int i = 0; i < 10; ++i) {
    store_->range({}, [&](Result<RangeResult> result) {
      ASSERT_TRUE(result);
      EXPECT_LE(result->revision, store_->revision()) << "shown before it was delivered";
      starts.push_back(result->revision);
      store_->watch("", result->revision, watchers.emplace_back());
    });
    ASSERT_TRUE(loop_.run_until([&] { return written >= i * 30 && starts.size() == static_cast<std::size_t>(i) + 1; }));
  }
  ASSERT_TRUE(loop_.run_until([&] { return written == 300; }));
  for (std::size_t i = 0; i < watchers.size(); ++i) {
    run_until_seen(watchers[i], 300 - starts[i].number());
    EXPECT_THAT(watchers[i].seen, SizeIs(300 - starts[i].number()));
  }
}

TEST_P(StoreContract, ABarrierAnswersWhatHasBeenDelivered) {
  RecordingWatcher watcher;
  store_->watch("", Revision(), watcher);
  store_->write(Write{"a", value_of("1"), std::nullopt}, [](Result<WriteResult>) {});
  put("a", "2");
  std::optional<Revision> reached;
  store_->barrier([&](Result<Revision> result) {
    ASSERT_TRUE(result) << result.error().text();
    reached = *result;
    EXPECT_THAT(watcher.seen, SizeIs(2));
  });
  EXPECT_FALSE(reached) << "completed inside the call";
  ASSERT_TRUE(loop_.run_until([&] { return reached.has_value(); }));
}

/// Keeps each batch of changes that it was given at once.
class BatchWatcher final : public Watcher {
 public:
  void on_changes(const std::vector<Change>& changes) override { batches.push_back(changes); }

  void on_watch_end(const Error& error) override { ADD_FAILURE() << error.text(); }

  std::vector<std::vector<Change>> batches;
};

TEST_P(StoreContract, KeysGoByThemselvesWhereTheStoreSaysSo) {
  // Keys that are written within half a second end together. A busy machine may hold the writes up for longer: then
  // they are written again, in another folder.
  for (const std::string folder : {"e1/", "e2/", "e3/", "e4/", "e5/"}) {
    BatchWatcher watcher;
    const WatchId watch = store_->watch(folder, store_->revision(), watcher);
    const auto began = std::chrono::steady_clock::now();
    for (const char* key : {"a", "b", "c"}) {
      const auto written = client_->write({.key = folder + key, .value = value_of("x"), .ttl = seconds(1)});
      ASSERT_TRUE(written && written->committed);
    }
    ASSERT_TRUE(client_->write({.key = folder + "d", .value = value_of("x"), .ttl = seconds(1)}));
    put(folder + "d", "stays");  // a write without a time to live ends the earlier one
    const bool in_time = std::chrono::steady_clock::now() - began < milliseconds(500) || folder == "e5/";
    const auto is_over = [&] { return !watcher.batches.empty() && watcher.batches.back().front().value == nullptr; };
    if (!store_->expires_keys()) {
      EXPECT_FALSE(is_over());
      EXPECT_THAT(list({folder}), SizeIs(4));
      store_->unwatch(watch);
      return;
    }
    if (!in_time) {  // their ends must not fall into what follows
      const auto left = [&] {
        std::set<std::string> keys;
        for (const std::vector<Change>& batch : watcher.batches)
          for (const Change& change : batch)
            change.value ? void(keys.insert(change.key)) : void(keys.erase(change.key));
        return keys;
      };
      ASSERT_TRUE(loop_.run_until([&] { return left() == std::set<std::string>{folder + "d"}; })) << "they stay";
      store_->unwatch(watch);
      continue;
    }
    ASSERT_TRUE(loop_.run_until(is_over)) << "they stay";
    const std::vector<Change>& last = watcher.batches.back();
    ASSERT_THAT(last, SizeIs(3)) << "one revision is told at once";
    for (const Change& change : last) EXPECT_EQ(change.revision, last.front().revision);
    EXPECT_THAT(list({folder}), SizeIs(1));
    store_->unwatch(watch);
    return;
  }
}

}  // namespace
}  // namespace spillway::store::contract
