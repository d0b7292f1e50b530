// What every store promises (store/store.h), run against each of them.
#include "sim/etcd/sim_etcd.h"
#include "store/etcd/etcd_store.h"
#include "store/etcd/grpc/grpc_transport.h"
#include "store/etcd_process.h"
#include "store/memory_store.h"
#include "store/offset_store.h"
#include "store/scratch_directory.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store_client.h"
#include "store/test_loop.h"

#include <gmock/gmock.h>

namespace spillway::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

enum class Kind { kMemory, kSqlite, kEtcd, kSimEtcd };

std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  switch (info.param) {
    case Kind::kMemory:
      return "Memory";
    case Kind::kSqlite:
      return "Sqlite";
    case Kind::kEtcd:
      return "Etcd";
    case Kind::kSimEtcd:
      break;
  }
  return "SimEtcd";
}

StoreLimits small_limits() {
  StoreLimits limits;
  limits.key_bytes_max = 64;
  limits.value_bytes_max = 10'000;
  limits.pending_operations_max = 1'000;
  limits.pending_bytes_max = 1'000'000;
  return limits;
}

class StoreContract : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    switch (GetParam()) {
      case Kind::kMemory:
        store_ = std::make_unique<MemoryStore>(loop_.poster(), small_limits());
        break;
      case Kind::kSqlite: {
        SqliteOptions options;
        options.limits = small_limits();
        auto opened = SqliteStore::open(directory_.file("test.db"), loop_.poster(), options);
        ASSERT_TRUE(opened) << opened.error().text();
        store_ = *std::move(opened);
        break;
      }
      case Kind::kEtcd:
        if (EtcdProcess::shared() == nullptr) GTEST_SKIP() << "this machine has no etcd";
        open_etcd();
        break;
      case Kind::kSimEtcd:
        open_simulated_etcd();
        break;
    }
    ASSERT_TRUE(store_);
    client_.emplace(*store_, loop_);
  }

  /// Under a prefix of the test's own; its revisions begin at 0, as those of an empty store.
  void open_etcd() {
    auto transport = GrpcTransport::create({.servers = {EtcdProcess::shared()->url()}}, loop_.poster());
    ASSERT_TRUE(transport) << transport.error().text();
    open_over(*std::move(transport));
  }

  /// Three members that lag and send in pieces, on virtual time: half a minute of it for what is waited for.
  void open_simulated_etcd() {
    sim_etcd_.emplace(time_, Rng(1),
                      sim::SimEtcdOptions{.replicas = 3,
                                          .faults = {.pace = {.late_ppm = 10'000, .late_max = milliseconds(300)},
                                                     .fragment_ppm = 500'000,
                                                     .repeat_ppm = 200'000,
                                                     .early_progress_ppm = 100'000}});
    loop_.when_idle([this, until = Instant(), seen = std::uint64_t(0)]() mutable {
      const std::uint64_t revision = sim_etcd_->history().revision().number();
      if (std::exchange(seen, revision) != revision) until = time_.now().mono + seconds(30);
      return time_.run_next(until);
    });
    open_over(sim_etcd_->connect("test"));
  }

  void open_over(std::unique_ptr<EtcdTransport> transport) {
    EtcdOptions options;
    options.limits = small_limits();
    options.root = "";
    options.prefix = fmt::format("/{}/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    options.agrees_on_compaction = false;
    options.tells_previous = true;
    auto store = std::make_unique<EtcdStore>(std::move(transport), loop_.poster(), options);
    const Result<RangeResult> head = StoreClient(*store, loop_).range({});
    ASSERT_TRUE(head) << head.error().text();
    store_ = std::make_unique<OffsetStore>(std::move(store), head->revision);
  }

  /// Writes that are under way at once are done in any order.
  bool is_concurrent() const { return GetParam() == Kind::kEtcd || GetParam() == Kind::kSimEtcd; }

  Revision put(const std::string& key, const std::string& text) {
    const Result<WriteResult> result = client_->put(key, text);
    EXPECT_TRUE(result && result->committed);
    return result ? result->revision : Revision();
  }

  Revision remove(const std::string& key) {
    const Result<WriteResult> result = client_->remove(key);
    EXPECT_TRUE(result && result->committed);
    return result ? result->revision : Revision();
  }

  std::vector<std::string> list(Range range) {
    const Result<RangeResult> result = client_->range(std::move(range));
    EXPECT_TRUE(result) << result.error().text();
    return result ? describe(result->entries) : std::vector<std::string>();
  }

  ErrorCode range_error(Range range) {
    const Result<RangeResult> result = client_->range(std::move(range));
    EXPECT_FALSE(result);
    return result ? ErrorCode::kInternalError : result.error().code;
  }

  void run_until_seen(const RecordingWatcher& watcher, std::size_t count) {
    EXPECT_TRUE(loop_.run_until([&] { return watcher.seen.size() >= count; }));
  }

  TestLoop loop_;
  ScratchDirectory directory_;
  sim::VirtualTime time_;
  std::optional<sim::SimEtcd> sim_etcd_;
  std::unique_ptr<Store> store_;
  std::optional<StoreClient> client_;
};

TEST_P(StoreContract, StartsEmptyAtRevisionZero) {
  EXPECT_EQ(store_->revision(), Revision());
  EXPECT_EQ(store_->compacted(), Revision());
  const Result<RangeResult> result = client_->range({});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->revision, Revision());
  EXPECT_THAT(result->entries, IsEmpty());
}

TEST_P(StoreContract, CountsRevisionsAndVersions) {
  EXPECT_EQ(put("a", "1"), Revision(1));
  EXPECT_EQ(put("b", "1"), Revision(2));
  EXPECT_EQ(put("a", "2"), Revision(3));
  EXPECT_EQ(store_->revision(), Revision(3));
  EXPECT_THAT(list({}), ElementsAre("a=2 c1 m3 v2", "b=1 c2 m2 v1"));
}

TEST_P(StoreContract, StartsOverAfterDeletion) {
  put("a", "1");
  const Result<WriteResult> removed = client_->remove("a");
  ASSERT_TRUE(removed);
  EXPECT_TRUE(removed->committed);
  EXPECT_EQ(removed->revision, Revision(2));
  ASSERT_TRUE(removed->current);
  EXPECT_EQ(describe(*removed->current), "a=1 c1 m1 v1");
  EXPECT_THAT(list({}), IsEmpty());
  put("a", "2");
  EXPECT_THAT(list({}), ElementsAre("a=2 c3 m3 v1"));
}

TEST_P(StoreContract, ComparesBeforeItWrites) {
  put("a", "1");
  const Result<WriteResult> exists = client_->put("a", "x", Revision());
  ASSERT_TRUE(exists);
  EXPECT_FALSE(exists->committed);
  EXPECT_EQ(exists->revision, Revision(1));
  ASSERT_TRUE(exists->current);
  EXPECT_EQ(describe(*exists->current), "a=1 c1 m1 v1");

  const Result<WriteResult> stale = client_->put("a", "x", Revision(7));
  ASSERT_TRUE(stale);
  EXPECT_FALSE(stale->committed);

  const Result<WriteResult> absent = client_->put("b", "x", Revision(1));
  ASSERT_TRUE(absent);
  EXPECT_FALSE(absent->committed);
  EXPECT_FALSE(absent->current);

  const Result<WriteResult> right = client_->put("a", "2", Revision(1));
  ASSERT_TRUE(right);
  EXPECT_TRUE(right->committed);
  EXPECT_EQ(right->revision, Revision(2));
  EXPECT_FALSE(right->current);

  const Result<WriteResult> stale_delete = client_->remove("a", Revision(1));
  ASSERT_TRUE(stale_delete);
  EXPECT_FALSE(stale_delete->committed);
  EXPECT_THAT(list({}), ElementsAre("a=2 c1 m2 v2"));
}

TEST_P(StoreContract, DeletesNothingWithoutARevision) {
  put("a", "1");
  const Result<WriteResult> result = client_->remove("b");
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->committed);
  EXPECT_FALSE(result->current);
  EXPECT_EQ(result->revision, Revision(1));
  EXPECT_EQ(store_->revision(), Revision(1));
}

TEST_P(StoreContract, EachWriteOfABurstChecksItsOwnCondition) {
  std::vector<Result<WriteResult>> results;
  for (int i = 0; i < 10; ++i) {
    store_->write(Write{"a", value_of(std::to_string(i)), Revision()},
                  [&](Result<WriteResult> result) { results.push_back(std::move(result)); });
  }
  EXPECT_THAT(results, IsEmpty()) << "nothing completes inside write()";
  ASSERT_TRUE(loop_.run_until([&] { return results.size() == 10; }));
  std::vector<std::size_t> committed;
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i]);
    if (results[i]->committed) committed.push_back(i);
  }
  EXPECT_THAT(list({}), SizeIs(1));
  if (is_concurrent()) {
    EXPECT_THAT(committed, SizeIs(1));
  } else {
    EXPECT_THAT(committed, ElementsAre(0));
    EXPECT_THAT(list({}), ElementsAre("a=0 c1 m1 v1"));
  }
}

TEST_P(StoreContract, CompletesWritesInOrderWithoutGaps) {
  std::vector<std::uint64_t> revisions;
  for (int i = 0; i < 500; ++i) {
    store_->write(Write{fmt::format("k{}", i % 7), value_of("v"), std::nullopt}, [&](Result<WriteResult> result) {
      ASSERT_TRUE(result);
      revisions.push_back(result->revision.number());
    });
  }
  ASSERT_TRUE(loop_.run_until([&] { return revisions.size() == 500; }));
  if (is_concurrent()) std::ranges::sort(revisions);
  for (std::size_t i = 0; i < revisions.size(); ++i) EXPECT_EQ(revisions[i], i + 1);
}

TEST_P(StoreContract, KeepsAnyBytes) {
  const std::string key("k\0y\xff\x80", 5);
  const std::string text("\0\xff\n", 3);
  put(key, text);
  put("empty", "");
  const Result<RangeResult> result = client_->range({});
  ASSERT_TRUE(result);
  ASSERT_THAT(result->entries, SizeIs(2));
  EXPECT_EQ(*result->entries[0].value, "");
  EXPECT_EQ(result->entries[1].key, key);
  EXPECT_EQ(*result->entries[1].value, text);
}

TEST_P(StoreContract, RefusesWhatIsTooLarge) {
  const auto code_of = [&](const std::string& key, std::size_t bytes) {
    const Result<WriteResult> result = client_->put(key, std::string(bytes, 'x'));
    EXPECT_FALSE(result);
    return result ? ErrorCode::kInternalError : result.error().code;
  };
  EXPECT_EQ(code_of("a", 10'001), ErrorCode::kRequestEntityTooLarge);
  EXPECT_EQ(code_of(std::string(65, 'k'), 1), ErrorCode::kRequestEntityTooLarge);
  EXPECT_EQ(code_of("", 1), ErrorCode::kBadRequest);
  EXPECT_EQ(put("a", std::string(10'000, 'x')), Revision(1));
}

TEST_P(StoreContract, RefusesMoreThanItQueues) {
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 5'000; ++i) {
    store_->write(Write{"a", value_of("v"), std::nullopt}, [&](Result<WriteResult> result) {
      if (result) {
        ++accepted;
      } else {
        EXPECT_EQ(result.error().code, ErrorCode::kTooManyRequests);
        ++refused;
      }
    });
  }
  ASSERT_TRUE(loop_.run_until([&] { return accepted + refused == 5'000; }));
  EXPECT_GE(accepted, 1'000);
  EXPECT_EQ(store_->revision(), Revision(static_cast<std::uint64_t>(accepted)));
}

TEST_P(StoreContract, GivesBackTheBytesThatNoLongerWait) {
  for (int i = 0; i < 150; ++i) {  // one and a half times what may wait
    const Result<WriteResult> result = client_->put("a", std::string(10'000, 'x'));
    ASSERT_TRUE(result) << i << ": " << result.error().text();
  }
}

TEST_P(StoreContract, RefusesMoreBytesThanItQueues) {
  int answered = 0;
  int refused = 0;
  for (int i = 0; i < 900; ++i) {
    store_->write(Write{"a", value_of(std::string(10'000, 'x')), std::nullopt}, [&](const Result<WriteResult>& result) {
      ++answered;
      if (result) return;
      EXPECT_EQ(result.error().code, ErrorCode::kTooManyRequests);
      ++refused;
    });
  }
  ASSERT_TRUE(loop_.run_until([&] { return answered == 900; }));
  EXPECT_GT(refused, 0);
  EXPECT_EQ(store_->revision(), Revision(static_cast<std::uint64_t>(900 - refused)));
}

TEST_P(StoreContract, ListsByPrefixBytewise) {
  for (const char* key : {"/p/b", "/p/a", "/q/a", "/p", "/p/B", "/p/\xff", "/p/a/x"}) put(key, "1");
  std::vector<std::string> keys;
  const Result<RangeResult> result = client_->range({.prefix = "/p/"});
  ASSERT_TRUE(result);
  for (const Entry& entry : result->entries) keys.push_back(entry.key);
  EXPECT_THAT(keys, ElementsAre("/p/B", "/p/a", "/p/a/x", "/p/b", "/p/\xff"));
  EXPECT_EQ(result->remaining, 0U);
}

TEST_P(StoreContract, PagesThroughOneState) {
  for (int i = 0; i < 10; ++i) put(fmt::format("k{}", i), "old");
  const Result<RangeResult> first = client_->range({.prefix = "k", .limit = 4});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->remaining, 6U);
  EXPECT_EQ(first->revision, Revision(10));
  remove("k5");
  put("k6", "new");
  put("k55", "new");
  put("k0", "new");
  const Range second{.prefix = "k", .start_after = first->entries.back().key, .limit = 4, .at = first->revision};
  const Result<RangeResult> page = client_->range(second);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->revision, Revision(10));
  EXPECT_EQ(page->remaining, 2U);
  EXPECT_THAT(describe(page->entries),
              ElementsAre("k4=old c5 m5 v1", "k5=old c6 m6 v1", "k6=old c7 m7 v1", "k7=old c8 m8 v1"));
  const Range third{.prefix = "k", .start_after = "k7", .limit = 4, .at = first->revision};
  EXPECT_THAT(list(third), ElementsAre("k8=old c9 m9 v1", "k9=old c10 m10 v1"));
}

TEST_P(StoreContract, StartAfterNeedNotExistNorBeInTheRange) {
  for (const char* key : {"a", "k1", "k3", "z"}) put(key, "1");
  EXPECT_THAT(list({.prefix = "k", .start_after = "k2"}), ElementsAre("k3=1 c3 m3 v1"));
  EXPECT_THAT(list({.prefix = "k", .start_after = "a"}), SizeIs(2));
  EXPECT_THAT(list({.prefix = "k", .start_after = "y"}), IsEmpty());
}

TEST_P(StoreContract, ShowsEveryPastState) {
  put("a", "1");
  put("b", "1");
  put("a", "2");
  remove("b");
  put("b", "3");
  remove("a");
  EXPECT_THAT(list({.at = Revision()}), IsEmpty());
  EXPECT_THAT(list({.at = Revision(1)}), ElementsAre("a=1 c1 m1 v1"));
  EXPECT_THAT(list({.at = Revision(2)}), ElementsAre("a=1 c1 m1 v1", "b=1 c2 m2 v1"));
  EXPECT_THAT(list({.at = Revision(3)}), ElementsAre("a=2 c1 m3 v2", "b=1 c2 m2 v1"));
  EXPECT_THAT(list({.at = Revision(4)}), ElementsAre("a=2 c1 m3 v2"));
  EXPECT_THAT(list({.at = Revision(5)}), ElementsAre("a=2 c1 m3 v2", "b=3 c5 m5 v1"));
  EXPECT_THAT(list({.at = Revision(6)}), ElementsAre("b=3 c5 m5 v1"));
  EXPECT_EQ(range_error({.at = Revision(7)}), ErrorCode::kTimeout);
}

TEST_P(StoreContract, ForgetsWhatIsCompacted) {
  put("a", "1");
  put("a", "2");
  put("c", "1");
  put("a", "3");
  const Result<Revision> compacted = client_->compact(Revision(3));
  ASSERT_TRUE(compacted);
  EXPECT_EQ(*compacted, Revision(3));
  EXPECT_EQ(store_->compacted(), Revision(3));
  EXPECT_EQ(range_error({.at = Revision(2)}), ErrorCode::kExpired);
  EXPECT_THAT(list({.at = Revision(3)}), ElementsAre("a=2 c1 m2 v2", "c=1 c3 m3 v1"));
  EXPECT_THAT(list({}), ElementsAre("a=3 c1 m4 v3", "c=1 c3 m3 v1"));
}

TEST_P(StoreContract, CompactsOnlyForwardAndNotAhead) {
  put("a", "1");
  put("a", "2");
  ASSERT_TRUE(client_->compact(Revision(2)));
  const Result<Revision> again = client_->compact(Revision(1));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, Revision(2));
  const Result<Revision> ahead = client_->compact(Revision(3));
  ASSERT_FALSE(ahead);
  EXPECT_EQ(ahead.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(list({}), ElementsAre("a=2 c1 m2 v2"));
}

TEST_P(StoreContract, CompactedDeletionsLeaveNothing) {
  put("a", "1");
  remove("a");
  put("a", "2");
  remove("a");
  ASSERT_TRUE(client_->compact(Revision(4)));
  EXPECT_THAT(list({}), IsEmpty());
  EXPECT_EQ(put("a", "3"), Revision(5));
  EXPECT_THAT(list({}), ElementsAre("a=3 c5 m5 v1"));
  EXPECT_THAT(list({.at = Revision(4)}), IsEmpty());
}

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

/// Ends its own watch and starts another one from inside a delivery.
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

TEST_P(StoreContract, WatchersMayComeAndGoInsideADelivery) {
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

TEST_P(StoreContract, PendingCompletionsDieWithTheStore) {
  bool completed = false;
  store_->write(Write{"a", value_of("1"), std::nullopt}, [&](Result<WriteResult>) { completed = true; });
  store_->range({}, [&](Result<RangeResult>) { completed = true; });
  client_.reset();
  store_.reset();
  loop_.run_posted();
  EXPECT_FALSE(completed);
}

TEST_P(StoreContract, ABarrierTellsWhatHasBeenDelivered) {
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

/// What it was told at once, each time.
class BatchWatcher final : public Watcher {
 public:
  void on_changes(const std::vector<Change>& changes) override { batches.push_back(changes); }

  void on_watch_end(const Error& error) override { ADD_FAILURE() << error.text(); }

  std::vector<std::vector<Change>> batches;
};

TEST_P(StoreContract, KeysGoByThemselvesWhereTheStoreSaysSo) {
  BatchWatcher watcher;
  const WatchId watch = store_->watch("e/", store_->revision(), watcher);
  for (const char* key : {"e/a", "e/b", "e/c"}) {
    const auto written = client_->write({.key = key, .value = value_of("x"), .ttl = seconds(1)});
    ASSERT_TRUE(written && written->committed);
  }
  ASSERT_TRUE(client_->write({.key = "e/d", .value = value_of("x"), .ttl = seconds(1)}));
  put("e/d", "stays");  // a write without one takes it away
  const auto is_over = [&] { return !watcher.batches.empty() && watcher.batches.back().front().value == nullptr; };
  if (!store_->expires_keys()) {
    EXPECT_FALSE(is_over());
    EXPECT_THAT(list({"e/"}), SizeIs(4));
    store_->unwatch(watch);
    return;
  }
  ASSERT_TRUE(loop_.run_until(is_over)) << "they stay";
  const std::vector<Change>& last = watcher.batches.back();
  ASSERT_THAT(last, SizeIs(3)) << "one revision is told at once";
  for (const Change& change : last) EXPECT_EQ(change.revision, last.front().revision);
  EXPECT_THAT(list({"e/"}), SizeIs(1));
  store_->unwatch(watch);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract,
                         ::testing::Values(Kind::kMemory, Kind::kSqlite, Kind::kEtcd, Kind::kSimEtcd), name_of);

}  // namespace
}  // namespace spillway::store
