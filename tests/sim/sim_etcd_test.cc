// The simulated etcd does what etcd does, and the product's store over it stays right whatever breaks.
#include "sim/etcd/sim_etcd.h"

#include "sim/etcd/checked_store.h"
#include "store/etcd/etcd_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::sim {
namespace {

using store::EtcdFailure;
using store::EtcdRange;
using store::EtcdRangeAnswer;
using store::EtcdTxn;
using store::EtcdTxnAnswer;
using store::Revision;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

store::Value text(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

class RecordedWatch final : public store::EtcdTransport::WatchReceiver {
 public:
  void on_watch_message(store::EtcdWatchMessage message) override {
    ++messages;
    if (message.canceled) compacted = message.compacted;
    if (!message.fragment) ++whole;
    for (const store::EtcdEvent& event : message.events)
      events.push_back(fmt::format("{} {}", event.revision.number(), event.key));
  }

  void on_watch_broken(const EtcdFailure& why) override { broken = why.message; }

  std::vector<std::string> events;
  int messages = 0;
  int whole = 0;
  std::optional<Revision> compacted;
  std::string broken;
};

class SimEtcdMembers : public ::testing::Test {
 protected:
  void begin(SimEtcdOptions options) {
    etcd_.emplace(time_, Rng(7), options);
    client_ = etcd_->connect("client");
  }

  void run(Duration duration) { time_.run_until(time_.now().mono + duration); }

  template <typename Answer>
  auto keep(std::optional<std::expected<Answer, EtcdFailure>>& kept) {
    return [&kept](std::expected<Answer, EtcdFailure> answer) { kept = std::move(answer); };
  }

  std::optional<std::expected<EtcdTxnAnswer, EtcdFailure>> txn(std::size_t member, EtcdTxn txn,
                                                               Duration at_most = seconds(8)) {
    std::optional<std::expected<EtcdTxnAnswer, EtcdFailure>> kept;
    client_->txn(member, std::move(txn), at_most, keep(kept));
    run(at_most);
    return kept;
  }

  std::optional<std::expected<EtcdRangeAnswer, EtcdFailure>> read(std::size_t member, const std::string& key,
                                                                  Revision at = {}) {
    std::optional<std::expected<EtcdRangeAnswer, EtcdFailure>> kept;
    client_->range(member, {.key = key, .range_end = {}, .at = at}, seconds(8), keep(kept));
    run(seconds(8));
    return kept;
  }

  std::string refusal_of_put(std::size_t member, const std::string& key) {
    const auto answer = txn(member, {.key = key, .put = text("x")});
    if (!answer) return "no answer";
    return *answer ? "" : answer->error().message;
  }

  VirtualTime time_;
  std::optional<SimEtcd> etcd_;
  std::unique_ptr<store::EtcdTransport> client_;
};

TEST_F(SimEtcdMembers, ComparesAndReturnsThePresentValue) {
  begin({.replicas = 3});
  using Compare = EtcdTxn::Compare;
  const auto made = txn(0, {.key = "a", .put = text("1"), .compare = Compare::kModRevision, .compared = 0});
  ASSERT_TRUE(made && *made && (*made)->succeeded);
  EXPECT_EQ((*made)->present, Revision(2)) << "etcd begins at 1";
  const auto refused =
      txn(1, {.key = "a", .put = text("2"), .compare = Compare::kModRevision, .compared = 7, .read_otherwise = true});
  ASSERT_TRUE(refused && *refused);
  EXPECT_FALSE((*refused)->succeeded);
  EXPECT_EQ((*refused)->entry->mod_revision, Revision(2));
  const auto absent = txn(2, {.key = "b", .put = nullptr, .compare = Compare::kModRevision, .compared = 0});
  ASSERT_TRUE(absent && *absent);
  EXPECT_TRUE((*absent)->succeeded) << "an absent key has mod_revision 0";
  EXPECT_EQ((*absent)->deleted, 0U);
  EXPECT_EQ((*absent)->present, Revision(2));
}

TEST_F(SimEtcdMembers, AReadShowsWhatWasWrittenThroughAnyMember) {
  begin({.replicas = 3, .faults = {.pace = {.late_ppm = 900'000, .late_max = seconds(1)}}});
  for (std::size_t i = 0; i < 12; ++i) {
    const auto made = txn(i % 3, {.key = "a", .put = text(std::to_string(i))});
    ASSERT_TRUE(made && *made);
    const auto found = read((i + 1) % 3, "a");
    ASSERT_TRUE(found && *found);
    EXPECT_EQ(*(*found)->entries.front().value, std::to_string(i));
  }
}

TEST_F(SimEtcdMembers, WithoutAMajorityNothingIsReadOrWritten) {
  begin({.replicas = 3});
  ASSERT_EQ(refusal_of_put(0, "a"), "");
  etcd_->replicas().stop(1);
  run(seconds(3));
  EXPECT_EQ(refusal_of_put(0, "a"), "") << "two of three";
  etcd_->replicas().part(2);
  EXPECT_THAT(refusal_of_put(0, "a"), HasSubstr("etcdserver: request timed out"));
  const auto found = read(0, "a");
  ASSERT_TRUE(found && !*found);
  EXPECT_THAT(found->error().message, HasSubstr("etcdserver: request timed out"));
  EXPECT_THAT(refusal_of_put(1, "a"), HasSubstr("connection refused"));
  etcd_->replicas().rejoin(2);
  run(seconds(3));
  EXPECT_EQ(refusal_of_put(0, "a"), "");
}

TEST_F(SimEtcdMembers, TheOutcomeOfAWriteIsUnknownIfItsLeaderIsLost) {
  begin({.replicas = 3, .faults = {.pace = {.commit_max = seconds(1)}}});
  int unknown = 0;
  int stored = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string key = fmt::format("k{}", i);
    std::optional<std::expected<EtcdTxnAnswer, EtcdFailure>> answer;
    client_->txn(0, {.key = key, .put = text("x")}, seconds(8), keep(answer));
    run(milliseconds(500));
    etcd_->replicas().depose();
    run(seconds(10));
    ASSERT_TRUE(answer);
    const auto found = read(0, key);
    ASSERT_TRUE(found && *found);
    const bool is_there = !(*found)->entries.empty();
    if (*answer) {
      EXPECT_TRUE(is_there);
    } else {
      EXPECT_THAT(answer->error().message, HasSubstr("possibly due to previous leader failure"));
      ++unknown;
      stored += is_there ? 1 : 0;
    }
  }
  EXPECT_GT(unknown, 0);
  EXPECT_GT(stored, 0) << "what nobody knows of was never stored";
  EXPECT_LT(stored, unknown) << "what nobody knows of was always stored";
}

TEST_F(SimEtcdMembers, ARequestMayBeDoneAfterItsDeadline) {
  begin({.replicas = 1, .faults = {.slow_ppm = 1'000'000, .slow_max = seconds(20)}});
  int late = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string key = fmt::format("k{}", i);
    const auto answer = txn(0, {.key = key, .put = text("x")}, seconds(1));
    ASSERT_TRUE(answer);
    if (*answer) continue;
    EXPECT_EQ(answer->error().code, 4);
    const Revision before = etcd_->history().revision();
    run(seconds(20));
    late += etcd_->history().revision() > before ? 1 : 0;
  }
  EXPECT_GT(late, 0);
}

TEST_F(SimEtcdMembers, AWatchShowsWhatItsMemberHasAppliedAndGoesWithIt) {
  begin({.replicas = 3});
  RecordedWatch seen;
  RecordedWatch cut;
  const auto stream = client_->watch(1, Revision(2), false, seen);
  const auto other = client_->watch(2, Revision(2), false, cut);
  run(seconds(1));
  etcd_->replicas().part(2);
  run(seconds(2));
  ASSERT_EQ(refusal_of_put(0, "a"), "");
  EXPECT_THAT(seen.events, ElementsAre("2 a"));
  EXPECT_THAT(cut.events, IsEmpty());
  etcd_->replicas().stop(1);
  run(seconds(1));
  EXPECT_EQ(seen.broken, "Socket closed");
}

TEST_F(SimEtcdMembers, AWatchOfWhatIsCompactedIsCanceled) {
  begin({.replicas = 1});
  for (const char* key : {"a", "b", "c"}) ASSERT_EQ(refusal_of_put(0, key), "");
  etcd_->compact(Revision(4));
  run(seconds(1));
  RecordedWatch seen;
  const auto stream = client_->watch(0, Revision(2), false, seen);
  RecordedWatch in_time;
  const auto other = client_->watch(0, Revision(4), false, in_time);
  run(seconds(1));
  EXPECT_EQ(seen.compacted, Revision(4));
  EXPECT_THAT(in_time.events, ElementsAre("4 c"));
  const auto found = read(0, "a", Revision(3));
  ASSERT_TRUE(found && !*found);
  EXPECT_EQ(found->error().message, "etcdserver: mvcc: required revision has been compacted");
  const auto ahead = read(0, "a", Revision(9));
  ASSERT_TRUE(ahead && !*ahead);
  EXPECT_EQ(ahead->error().message, "etcdserver: mvcc: required revision is a future revision");
}

TEST_F(SimEtcdMembers, KeysOfALeaseGoInOneRevision) {
  begin({.replicas = 3});
  std::optional<std::expected<store::EtcdLease, EtcdFailure>> lease;
  client_->grant(0, seconds(30), seconds(8), keep(lease));
  run(seconds(1));
  ASSERT_TRUE(lease && *lease);
  for (const char* key : {"a", "b", "c"})
    ASSERT_TRUE(txn(0, {.key = key, .put = text("x"), .lease = (*lease)->id}, seconds(1)));
  ASSERT_TRUE(txn(0, {.key = "b", .put = text("stays")}, seconds(1)));
  RecordedWatch seen;
  const auto stream = client_->watch(0, Revision(6), false, seen);
  run(seconds(60));
  EXPECT_THAT(seen.events, ElementsAre("6 a", "6 c"));
  const auto gone = txn(0, {.key = "d", .put = text("x"), .lease = (*lease)->id});
  ASSERT_TRUE(gone && !*gone);
  EXPECT_EQ(gone->error().message, "etcdserver: requested lease not found");
}

TEST_F(SimEtcdMembers, AFullOneDeletesUntilItIsDisarmed) {
  begin({.replicas = 1, .quota_bytes = 100});
  ASSERT_TRUE(*txn(0, {.key = "a", .put = text(std::string(80, 'x'))}));
  EXPECT_EQ(refusal_of_put(0, std::string(40, 'b')), "etcdserver: mvcc: database space exceeded");
  const auto gone = txn(0, {.key = "a", .put = nullptr});
  ASSERT_TRUE(gone && *gone);
  EXPECT_EQ((*gone)->deleted, 1U);
  etcd_->compact(etcd_->history().revision());
  EXPECT_EQ(refusal_of_put(0, "b"), "etcdserver: mvcc: database space exceeded") << "the alarm stays";
  etcd_->disarm();
  EXPECT_EQ(refusal_of_put(0, "b"), "");
}

TEST_F(SimEtcdMembers, ItsWatchesAreWrongWhereThatIsAskedFor) {
  begin({.replicas = 1, .faults = {.repeat_ppm = 1'000'000, .early_progress_ppm = 1'000'000}});
  RecordedWatch repeats;
  auto stream = client_->watch(0, Revision(2), false, repeats);
  ASSERT_EQ(refusal_of_put(0, "a"), "");
  ASSERT_EQ(refusal_of_put(0, "b"), "");
  EXPECT_THAT(repeats.events, ElementsAre("2 a", "2 a", "3 b"));
  EXPECT_EQ(repeats.messages, 4);
  etcd_->set_faults({.gap_ppm = 1'000'000});
  RecordedWatch gaps;
  stream = client_->watch(0, Revision(2), false, gaps);
  run(seconds(1));
  EXPECT_THAT(gaps.events, ElementsAre("3 b"));
  etcd_->set_faults({.fragment_ppm = 1'000'000, .future_shows_past = true});
  RecordedWatch early;
  stream = client_->watch(0, Revision(9), false, early);
  run(seconds(1));
  EXPECT_THAT(early.events, ElementsAre("3 b"));
  RecordedWatch pieces;
  stream = client_->watch(0, Revision(2), false, pieces);
  run(seconds(1));
  EXPECT_EQ(pieces.messages, 2);
  EXPECT_EQ(pieces.whole, 1);
}

/// A watcher; CheckedStore checks the changes that it gets.
class Follower final : public store::Watcher {
 public:
  void on_changes(const std::vector<store::Change>& changes) override { reached = changes.back().revision; }

  void on_reached(Revision revision) override { reached = revision; }

  void on_watch_end(const Error& error) override { end = error; }

  Revision reached;
  std::optional<Error> end;
};

/// Some stores of one etcd in which members stop, are parted and lose their lead, and whose watches misbehave.
class ManyStores {
 public:
  explicit ManyStores(std::uint64_t seed)
      : rng_(seed), etcd_(time_, rng_.fork("etcd"), {.replicas = rng_.below(2) == 0 ? 1U : 3U, .faults = faults()}) {
    for (int i = 0; i < 3; ++i) open(i);
  }

  void run() {
    for (int step = 0; step < 300; ++step) {
      time_.run_until(time_.now().mono + milliseconds(static_cast<std::int64_t>(rng_.below(1'500))));
      break_something();
      for (auto& each : stores_) work(*each);
    }
    etcd_.set_faults({});
    for (std::size_t member = 0; member < etcd_.replicas().count(); ++member) {
      etcd_.replicas().start(member);
      etcd_.replicas().rejoin(member);
    }
    for (auto& each : stores_) etcd_.reach_again(each->name);
    time_.run_until(time_.now().mono + minutes(1));
    // Progress messages need a new revision.
    etcd_.write({{"/registry/last", text("x")}});
    time_.run_until(time_.now().mono + minutes(1));
    for (auto& each : stores_) {
      if (!each->follower.end && each->follower.reached != etcd_.history().revision())
        violations.push_back(fmt::format("{} stays at {} of {}", each->name, each->follower.reached.number(),
                                         etcd_.history().revision().number()));
    }
  }

  std::vector<std::string> violations;
  int committed = 0;

 private:
  struct One {
    std::string name;
    std::unique_ptr<CheckedStore> store;
    Follower follower;
    store::WatchId watch = 0;
  };

  EtcdFaults faults() {
    EtcdFaults faults{.pace = {.late_ppm = 50'000}, .slow_ppm = 10'000, .lost_ppm = 5'000, .fragment_ppm = 300'000};
    if (rng_.below(2) == 0) faults.repeat_ppm = 100'000;
    if (rng_.below(2) == 0) faults.early_progress_ppm = 100'000;
    if (rng_.below(2) == 0) faults.gap_ppm = 10'000;
    faults.future_shows_past = rng_.below(2) == 0;
    return faults;
  }

  void open(int number) {
    auto one = std::make_unique<One>();
    one->name = fmt::format("server {}", number);
    store::EtcdOptions options{.carries_previous = true, .seed = static_cast<std::uint64_t>(number)};
    auto store = std::make_unique<store::EtcdStore>(
        etcd_.connect(one->name),
        [this](std::move_only_function<void()> task) { time_.after(Duration::zero(), std::move(task)); },
        std::move(options));
    one->store = std::make_unique<CheckedStore>(
        std::move(store), etcd_.history(), acknowledged_, one->name,
        [this](const Violated&, std::string text) { violations.push_back(std::move(text)); });
    one->watch = one->store->watch("/registry/", Revision(1), one->follower);
    stores_.push_back(std::move(one));
  }

  void break_something() {
    const std::size_t member = rng_.below(etcd_.replicas().count());
    const std::string& server = stores_[rng_.below(stores_.size())]->name;
    const auto repair = [this](auto task) {
      time_.after(milliseconds(static_cast<std::int64_t>(rng_.below(30'000))), std::move(task));
    };
    switch (rng_.below(40)) {
      case 0:
        etcd_.replicas().stop(member);
        return repair([this, member] { etcd_.replicas().start(member); });
      case 1:
        etcd_.replicas().part(member);
        return repair([this, member] { etcd_.replicas().rejoin(member); });
      case 2:
        return etcd_.replicas().depose();
      case 3:
        etcd_.cut_off(server);
        return repair([this, server] { etcd_.reach_again(server); });
      case 4:
      case 5:  // as when a lease ends
        return etcd_.write({{"/registry/pods/0", text("a")}, {"/registry/pods/1", text("b")}});
      default:
        break;
    }
  }

  /// A watch that has ended begins with a list, as the API server does.
  void work(One& one) {
    if (one.follower.end) {
      one.store->unwatch(one.watch);
      one.follower.end.reset();
      one.store->range({.prefix = "/registry/"}, [&one](const Result<store::RangeResult>& list) {
        if (!list) {
          one.follower.end = list.error();
          return;
        }
        one.follower.reached = list->revision;
        one.watch = one.store->watch("/registry/", list->revision, one.follower);
      });
    }
    const std::string key = fmt::format("/registry/pods/{}", rng_.below(5));
    one.store->range({.prefix = key, .limit = 1}, [this, &one, key](const Result<store::RangeResult>& found) {
      if (!found) return;
      const bool exists = !found->entries.empty() && found->entries.front().key == key;
      store::Write write{.key = key,
                         .value = exists && rng_.below(4) == 0 ? nullptr : text(fmt::format("{}", ++values_)),
                         .expected = exists ? found->entries.front().mod_revision : Revision()};
      one.store->write(std::move(write), [this](const Result<store::WriteResult>& result) {
        committed += result && result->committed ? 1 : 0;
      });
    });
    one.store->barrier([](const Result<Revision>&) {});
  }

  Rng rng_;
  VirtualTime time_;
  SimEtcd etcd_;
  Acknowledged acknowledged_;
  std::vector<std::unique_ptr<One>> stores_;
  int values_ = 0;
};

class StoresOfOneEtcd : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(StoresOfOneEtcd, ShowOneHistoryWhateverBreaks) {
  ManyStores stores(GetParam());
  stores.run();
  EXPECT_THAT(stores.violations, IsEmpty());
  EXPECT_GT(stores.committed, 100);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StoresOfOneEtcd, ::testing::Range<std::uint64_t>(1, 31));

}  // namespace
}  // namespace spillway::sim
