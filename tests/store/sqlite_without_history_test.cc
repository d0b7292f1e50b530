// Keys without history: a watcher that resumes at any revision ends in the state of one that saw everything, exact
// states of the past are returned or refused and never guessed, and the rest of the store keeps its history.
#include "base/rng.h"
#include "store/sqlite/database.h"
#include "store/store_client.h"
#include "store/upkeep_fixture.h"

#include <algorithm>
#include <map>

namespace spillway::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Holds the state that a watcher reaches that began with some state.
class Follower final : public Watcher {
 public:
  explicit Follower(std::map<std::string, std::string> state = {}) : state_(std::move(state)) {}

  void on_changes(const std::vector<Change>& changes) override {
    for (const Change& change : changes) {
      EXPECT_LT(reached, change.revision) << "revisions grow";
      reached = change.revision;
      times_delivered[change.key] += 1;
      if (change.value) {
        state_[change.key] = *change.value;
      } else {
        state_.erase(change.key);
      }
    }
  }

  void on_reached(Revision revision) override { reached = std::max(reached, revision); }

  void on_watch_end(const Error& error) override { end = error; }

  const std::map<std::string, std::string>& state() const { return state_; }

  Revision reached;
  std::map<std::string, int> times_delivered;
  std::optional<Error> end;

 private:
  std::map<std::string, std::string> state_;
};

class WithoutHistory : public UpkeepTest {
 protected:
  void open_without(std::vector<std::string> prefixes) {
    close();
    SqliteOptions options;
    options.without_history = std::move(prefixes);
    auto opened = SqliteStore::open(path_, loop_.poster(), options);
    ASSERT_TRUE(opened) << opened.error().text();
    store_ = *std::move(opened);
    client_.emplace(*store_, loop_);
  }

  std::int64_t number(const std::string& sql) {
    auto connection = sqlite::Connection::open(path_, sqlite::Access::kReadOnly);
    EXPECT_TRUE(connection);
    const Result<std::int64_t> found = connection ? connection->number(sql) : Result<std::int64_t>(-1);
    return found ? *found : -1;
  }

  /// Watches from `after` until every key was seen.
  void follow(Revision after, Follower& follower) {
    const WatchId id = store_->watch("", after, follower);
    const Revision head = store_->revision();
    EXPECT_TRUE(loop_.run_until([&] { return follower.end || follower.reached >= head || after >= head; }));
    store_->unwatch(id);
  }

  void write_at_random(Rng& rng, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = (rng.below(4) == 0 ? "p" : "l") + std::to_string(rng.below(5));
      const auto written = rng.below(5) == 0 ? client_->remove(key)
                                             : client_->put(key, fmt::format("{} is {}", key, rng.below(1'000'000)));
      ASSERT_TRUE(written);
      record_state();
    }
  }

  /// Records the present state of all keys.
  void record_state() {
    const Result<RangeResult> now = client_->range({});
    ASSERT_TRUE(now);
    std::map<std::string, std::string> state;
    for (const Entry& entry : now->entries) state.emplace(entry.key, *entry.value);
    states_[now->revision.number()] = std::move(state);
  }

  void expect_each_revision_leads_to_the_same_end() {
    const std::uint64_t head = store_->revision().number();
    for (std::uint64_t after = store_->compacted().number(); after <= head; ++after) {
      SCOPED_TRACE(fmt::format("after {}", after));
      const auto began = states_.upper_bound(after);
      Follower follower(began == states_.begin() ? std::map<std::string, std::string>() : std::prev(began)->second);
      follow(Revision(after), follower);
      ASSERT_FALSE(follower.end) << follower.end->text();
      EXPECT_EQ(follower.state(), states_.rbegin()->second);
    }
  }

  std::map<std::uint64_t, std::map<std::string, std::string>> states_;
};

TEST_F(WithoutHistory, TheLogHoldsDeletionsAlone) {
  open_without({"l"});
  put("l1", "l1 is 1");
  put("l1", "l1 is 2");
  put("p1", "p1 is 1");
  ASSERT_TRUE(client_->remove("l1"));
  close();
  EXPECT_EQ(number("SELECT count(*) FROM log"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM log WHERE key = 'l1' AND deleted = 1 AND rev = 4 AND prev_rev = 2"), 1);
  EXPECT_THAT(problems(path_), IsEmpty());
}

TEST_F(WithoutHistory, EachRevisionLeadsToTheSameEnd) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    open_without({"l"});
    record_state();
    write_at_random(rng, 40);
    expect_each_revision_leads_to_the_same_end();
    open_without({"l"});  // memory is lost
    expect_each_revision_leads_to_the_same_end();
    close();
    EXPECT_THAT(problems(path_), IsEmpty());
    std::filesystem::remove(path_);
    states_.clear();
  }
}

TEST_F(WithoutHistory, OnlyTheLastChangeOfAKeyIsRepeated) {
  open_without({"l"});
  for (int i = 0; i < 5; ++i) put("l1", fmt::format("l1 is {}", i));
  put("l2", "l2 is 1");
  put("p1", "p1 is 1");
  put("p1", "p1 is 2");
  open_without({"l"});
  RecordingWatcher watcher;
  store_->watch("", Revision(1), watcher);
  ASSERT_TRUE(loop_.run_until([&] { return watcher.seen.size() >= 4; }));
  EXPECT_THAT(watcher.seen, ElementsAre("5 l1: (none) -> l1 is 4", "6 l2: (none) -> l2 is 1", "7 p1: (none) -> p1 is 1",
                                        "8 p1: p1 is 1 -> p1 is 2"));
  EXPECT_EQ(watcher.created.front(), Revision(1));
}

TEST_F(WithoutHistory, AStateOfThePastIsAnsweredOrRefused) {
  open_without({"l"});
  put("l1", "l1 is 1");  // 1
  put("l2", "l2 is 1");  // 2
  put("p1", "p1 is 1");  // 3
  put("p1", "p1 is 2");  // 4
  put("l2", "l2 is 2");  // 5
  ASSERT_TRUE(client_->remove("l1"));
  const auto at = [&](std::uint64_t revision, const std::string& prefix, bool known_only = false) {
    const auto found =
        client_->range({.prefix = prefix, .start_after = {}, .at = Revision(revision), .known_only = known_only});
    if (!found) return std::vector<std::string>{found.error().code == ErrorCode::kExpired ? "expired" : "other"};
    return describe(found->entries);
  };
  EXPECT_THAT(at(3, "p"), ElementsAre("p1=p1 is 1 c3 m3 v1")) << "others have their past";
  EXPECT_THAT(at(4, "l1"), ElementsAre("l1=l1 is 1 c1 m1 v1")) << "its deletion tells what it was";
  EXPECT_THAT(at(1, "l"), ElementsAre("l1=l1 is 1 c1 m1 v1")) << "l2 did not exist yet";
  EXPECT_THAT(at(4, "l"), ElementsAre("expired")) << "nobody knows what l2 was";
  EXPECT_THAT(at(4, "", true), ElementsAre("l1=l1 is 1 c1 m1 v1", "p1=p1 is 2 c3 m4 v2"));
  EXPECT_THAT(at(5, "l"), ElementsAre("l1=l1 is 1 c1 m1 v1", "l2=l2 is 2 c2 m5 v2"));
}

TEST_F(WithoutHistory, APrefixThatLosesItsHistoryOrGetsItBack) {
  Rng rng(7);
  open();
  record_state();
  write_at_random(rng, 20);
  open_without({"l"});
  write_at_random(rng, 20);
  expect_each_revision_leads_to_the_same_end();
  close();
  EXPECT_THAT(problems(path_), IsEmpty());
  open();
  EXPECT_EQ(store_->compacted(), store_->revision()) << "what it was is not told";
  write_at_random(rng, 5);
  expect_each_revision_leads_to_the_same_end();
  close();
  EXPECT_THAT(problems(path_), IsEmpty());
}

TEST_F(WithoutHistory, CompactionForgetsDeletionsAndStepsOverWhatIsMissing) {
  open_without({"l"});
  put("l1", "l1 is 1");
  ASSERT_TRUE(client_->remove("l1"));
  for (int i = 0; i < 50; ++i) put("l2", fmt::format("l2 is {}", i));
  put("p1", "p1 is 1");
  ASSERT_EQ(client_->compact(Revision(52)).value_or(Revision()), Revision(52));
  Follower late;
  follow(Revision(10), late);
  EXPECT_TRUE(late.end && late.end->code == ErrorCode::kExpired);
  close();
  EXPECT_EQ(number("SELECT count(*) FROM log"), 1) << "the deletion is gone, p1 is not compacted";
  EXPECT_EQ(number("SELECT history_bytes FROM state"), 42);
  EXPECT_THAT(problems(path_), IsEmpty());
}

TEST_F(WithoutHistory, ReportsHowFarBackChangesGo) {
  open_without({"l"});
  for (int i = 0; i < 3; ++i) put("p1", "p1 is it");
  for (int i = 0; i < 30; ++i) put("l1", "l1 is it");
  put("p1", "p1 is new");
  std::vector<std::uint64_t> found;
  for (const std::uint64_t most : {0U, 1U, 2U, 100U}) {
    store_->oldest_within(store_->revision(), most,
                          [&](const Result<Revision>& oldest) { found.push_back(oldest ? oldest->number() : 999); });
  }
  ASSERT_TRUE(loop_.run_until([&] { return found.size() == 4; }));
  EXPECT_THAT(found, ElementsAre(34U, 3U, 2U, 0U));
}

TEST_F(WithoutHistory, AFileOfTheFirstSchemaIsTakenAsItIs) {
  open();
  write_some();
  close();
  tamper("DROP TABLE without_history; PRAGMA user_version=1");
  EXPECT_THAT(problems(path_), IsEmpty());
  open_without({"a"});
  EXPECT_THAT(list(), ElementsAre("a=a is 2 c1 m3 v2", "c=c is 1 c5 m5 v1"));
  close();
  EXPECT_EQ(number("PRAGMA user_version"), 2);
  EXPECT_THAT(problems(path_), IsEmpty());
}

struct Harm {
  const char* what;
  const char* sql;
  const char* finding;
};

TEST_F(WithoutHistory, CheckFindsWhatCannotBe) {
  const Harm harms[] = {
      {"gone without a deletion", "DELETE FROM current WHERE key = 'l1'", "bytes of objects"},
      {"older than its deletion", "UPDATE current SET create_rev = 1, mod_rev = 2 WHERE key = 'l2'",
       "expected it later than revision 4"},
      {"a deletion before its object", "UPDATE log SET prev_rev = 9 WHERE key = 'l2'", "expected growing revisions"},
      {"a deletion that is lost", "DELETE FROM log WHERE key = 'l2'", "bytes of history"},
  };
  for (const Harm& harm : harms) {
    SCOPED_TRACE(harm.what);
    open_without({"l"});
    put("l1", "l1 is 1");
    put("l2", "l2 is 1");
    put("p1", "p1 is 1");
    ASSERT_TRUE(client_->remove("l2"));
    put("l2", "l2 is 2");
    close();
    ASSERT_THAT(problems(path_), IsEmpty());
    tamper(harm.sql);
    EXPECT_THAT(problems(path_), ::testing::Contains(::testing::HasSubstr(harm.finding)));
    std::filesystem::remove(path_);
  }
}

}  // namespace
}  // namespace spillway::store
