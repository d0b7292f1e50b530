// Promises that every store makes (store/store.h), run against each of them: writes, reads, compaction, barriers.
#include "store/store_contract.h"

#include <gmock/gmock.h>

namespace spillway::store::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
  for (int i = 0; i < 150; ++i) {  // one and a half times the bound of waiting writes
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

TEST_P(StoreContract, PendingCompletionsDieWithTheStore) {
  bool completed = false;
  store_->write(Write{"a", value_of("1"), std::nullopt}, [&](Result<WriteResult>) { completed = true; });
  store_->range({}, [&](Result<RangeResult>) { completed = true; });
  client_.reset();
  store_.reset();
  loop_.run_posted();
  EXPECT_FALSE(completed);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract,
                         ::testing::Values(Kind::kMemory, Kind::kSqlite, Kind::kEtcd, Kind::kSimEtcd), name_of);

}  // namespace
}  // namespace spillway::store::contract
