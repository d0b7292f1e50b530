// Goal: whatever an etcd and the way to it do wrong, no write is done twice or answered wrongly, and no watcher misses
// an event or gets one twice.
#include "store/etcd/etcd_store.h"

#include "store/fake_etcd.h"
#include "store/store_client.h"

#include <gmock/gmock.h>

#include <array>

namespace spillway::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Fault = FakeEtcd::Fault;

TEST(EtcdFailures, AreClassifiedByTheirWords) {
  const std::vector<std::tuple<int, std::string, EtcdVerdict, ErrorCode>> rows = {
      {11, "etcdserver: mvcc: required revision has been compacted", EtcdVerdict::kCompacted, ErrorCode::kExpired},
      {11, "etcdserver: mvcc: required revision is a future revision", EtcdVerdict::kFuture, ErrorCode::kTimeout},
      {8, "etcdserver: mvcc: database space exceeded", EtcdVerdict::kNoSpace, ErrorCode::kServiceUnavailable},
      {8, "etcdserver: too many requests", EtcdVerdict::kBusy, ErrorCode::kTooManyRequests},
      {8, "grpc: received message larger than max (3 vs. 2)", EtcdVerdict::kTooLarge,
       ErrorCode::kRequestEntityTooLarge},
      {3, "etcdserver: request is too large", EtcdVerdict::kTooLarge, ErrorCode::kRequestEntityTooLarge},
      {14, "etcdserver: request timed out, possibly due to previous leader failure", EtcdVerdict::kUnknown,
       ErrorCode::kTimeout},
      {14, "etcdserver: leader changed", EtcdVerdict::kUnknown, ErrorCode::kTimeout},
      {4, "Deadline Exceeded", EtcdVerdict::kUnknown, ErrorCode::kTimeout},
      {14, "Socket closed", EtcdVerdict::kUnknown, ErrorCode::kTimeout},
      {14, "etcdserver: no leader", EtcdVerdict::kNotDone, ErrorCode::kServiceUnavailable},
      {14, "failed to connect to all addresses", EtcdVerdict::kNotDone, ErrorCode::kServiceUnavailable},
      {7, "etcdserver: permission denied", EtcdVerdict::kDenied, ErrorCode::kServiceUnavailable},
      {15, "etcdserver: corrupt cluster", EtcdVerdict::kCorrupt, ErrorCode::kServiceUnavailable},
      {13, "Received RST_STREAM", EtcdVerdict::kUnknown, ErrorCode::kServiceUnavailable}};
  for (const auto& [code, words, verdict, error_code] : rows) {
    EXPECT_EQ(classify({code, words}), verdict) << words;
    EXPECT_EQ(error_of({code, words}).code, error_code) << words;
  }
}

TEST(EtcdKeys, AreUnderThePrefix) {
  const EtcdKeys keys("/registry", "/mine");
  EXPECT_EQ(keys.in_etcd("/registry/pods/a"), "/mine/pods/a");
  EXPECT_EQ(keys.in_port("/mine/pods/a"), "/registry/pods/a");
  EXPECT_FALSE(keys.in_port("/others/pods/a"));
  EXPECT_EQ(end_of_prefix("/mine/"), "/mine0");
  EXPECT_EQ(end_of_prefix("a\xff\xff"), "b");
  EXPECT_EQ(end_of_prefix("\xff"), std::string(1, '\0'));
  EXPECT_EQ(end_of_prefix(""), std::string(1, '\0'));
}

struct EtcdStoreTest : ::testing::Test {
  EtcdStoreTest() { reopen(); }

  void reopen(const std::string& name = {}, telemetry::Registry* metrics = nullptr) {
    client_.reset();
    EtcdOptions options;
    options.name = name;
    options.metrics = metrics;
    options.root = "";
    options.prefix = "/";
    store_ = std::make_unique<EtcdStore>(etcd_.connect(), loop_.poster(), options);
    client_.emplace(*store_, loop_);
  }

  Revision put(const std::string& key, const std::string& text) {
    const auto done = client_->put(key, text);
    EXPECT_TRUE(done && done->committed);
    return done ? done->revision : Revision();
  }

  /// Writes, and advances the clock until calls are repeated.
  Result<WriteResult> write(const std::string& key, const std::string& text, std::optional<Revision> expected) {
    std::optional<Result<WriteResult>> answer;
    store_->write({key, value_of(text), expected}, [&](Result<WriteResult> result) { answer = std::move(result); });
    for (int turns = 0; turns < 100 && !answer; ++turns) {
      loop_.run_posted();
      if (!answer) etcd_.advance(milliseconds(200));
    }
    return answer ? *answer : make_error(ErrorCode::kInternalError, "no answer");
  }

  TestLoop loop_;
  FakeEtcd etcd_{loop_};
  std::unique_ptr<EtcdStore> store_;
  std::optional<StoreClient> client_;
};

TEST_F(EtcdStoreTest, AWriteWhoseAnswerIsLostIsCompletedOnceAndTruly) {
  etcd_.faults = {Fault::kAnswerLost};
  const auto created = write("a", "1", Revision());
  ASSERT_TRUE(created) << created.error().text();
  EXPECT_TRUE(created->committed);
  EXPECT_EQ(created->revision, etcd_.revision());
  etcd_.faults = {Fault::kAnswerLost, Fault::kRequestLost, Fault::kNotReached};
  const auto updated = write("a", "2", created->revision);
  ASSERT_TRUE(updated);
  EXPECT_TRUE(updated->committed);
  EXPECT_EQ(updated->revision.number(), created->revision.number() + 1);
  EXPECT_EQ(etcd_.writes_of("/a"), 2U);
}

TEST_F(EtcdStoreTest, AWriteThatWasNotDoneIsDoneByTheNextMember) {
  const auto expect_second = [this](Fault fault, std::optional<Revision> expected) {
    etcd_.asked.clear();
    etcd_.faults = {fault};
    const auto done = write("a", "x", expected);
    ASSERT_TRUE(done && done->committed);
    ASSERT_THAT(etcd_.asked, SizeIs(2));
    EXPECT_NE(etcd_.asked[0], etcd_.asked[1]);
  };
  expect_second(Fault::kNotReached, Revision());
  expect_second(Fault::kNotReached, etcd_.revision());
  expect_second(Fault::kRequestLost, etcd_.revision());
  EXPECT_EQ(etcd_.writes_of("/a"), 3U);
}

TEST_F(EtcdStoreTest, ACreationThatMayBeDoneIsNotMadeTwice) {
  // The object of an attempt whose answer is lost is deleted by another client: the key is free again.
  const auto create = [this] {
    etcd_.faults = {Fault::kAnswerLost};
    etcd_.then = [this] { etcd_.write({{"/a", nullptr}}); };
    return write("a", "ours", Revision());
  };
  const auto unknown = create();
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(unknown.error().text(), HasSubstr("may have been stored"));
  EXPECT_EQ(etcd_.writes_of("/a"), 2U);
  RecordingWatcher watcher;  // now our bytes are seen
  const WatchId watch = store_->watch("", etcd_.revision(), watcher);
  loop_.run_posted();
  const auto seen = create();
  ASSERT_TRUE(seen) << seen.error().text();
  EXPECT_TRUE(seen->committed);
  EXPECT_EQ(seen->revision.number() + 1, etcd_.revision().number());
  EXPECT_EQ(etcd_.writes_of("/a"), 4U);
  store_->unwatch(watch);
}

TEST_F(EtcdStoreTest, ACreationOfWhichNothingIsFoundMayYetBeDone) {
  etcd_.faults = {Fault::kRequestLost};
  const auto done = write("a", "ours", Revision());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(etcd_.writes_of("/a"), 0U);
}

TEST_F(EtcdStoreTest, AMemberThatDidNotAnswerIsLeftAloneForAWhile) {
  etcd_.members.resize(3);
  reopen();
  etcd_.faults = {Fault::kNotReached};
  put("a", "1");
  const std::size_t faulty = etcd_.asked.front();
  for (int i = 0; i < 6; ++i) put("a", "x");
  EXPECT_EQ(std::ranges::count(etcd_.asked, faulty), 1);
  etcd_.advance(EtcdCalls::kAvoidedFor);
  for (int i = 0; i < 3; ++i) put("a", "x");
  EXPECT_EQ(std::ranges::count(etcd_.asked, faulty), 2);
}

TEST_F(EtcdStoreTest, AWriteThatWasDoneAndIsOverwrittenByTheTimeItIsAskedForWasDone) {
  const Revision known = put("a", "1");
  RecordingWatcher watcher;
  const WatchId watch = store_->watch("", etcd_.revision(), watcher);
  loop_.run_posted();
  etcd_.faults = {Fault::kAnswerLost};
  etcd_.then = [this] { etcd_.write({{"/a", value_of("theirs")}}); };
  const auto done = write("a", "ours", known);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(done->committed);
  EXPECT_EQ(done->revision.number(), known.number() + 1);
  etcd_.faults = {Fault::kAnswerLost};
  etcd_.then = [this] { etcd_.write({{"/b", nullptr}}), etcd_.write({{"/b", value_of("theirs")}}); };
  const auto created = write("b", "ours", Revision());
  ASSERT_TRUE(created) << created.error().text();
  EXPECT_TRUE(created->committed);
  store_->unwatch(watch);
}

TEST_F(EtcdStoreTest, WhatCannotBeKnownIsNotCalledRefused) {
  const Revision known = put("a", "1");
  const auto expect_unknown = [](const Result<WriteResult>& done) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(done.error().text(), HasSubstr("may have been stored"));
  };
  // No watch is open, so the store cannot see if its write was executed.
  etcd_.write({{"/a", value_of("theirs")}});
  etcd_.faults = {Fault::kRequestLost};
  expect_unknown(write("a", "ours", known));
  RecordingWatcher watcher;
  const WatchId watch = store_->watch("", etcd_.revision(), watcher);
  loop_.run_posted();
  // A creation may still be done, once the key is free again.
  etcd_.faults = {Fault::kRequestLost};
  expect_unknown(write("a", "ours", Revision()));
  // Our deletion may have been executed, and the key created again since.
  const Revision there = put("a", "2");
  etcd_.faults = {Fault::kAnswerLost};
  etcd_.then = [this] { etcd_.write({{"/a", value_of("again")}}); };
  std::optional<Result<WriteResult>> removed;
  store_->write({"a", nullptr, there}, [&](Result<WriteResult> result) { removed = std::move(result); });
  for (int turns = 0; turns < 100 && !removed; ++turns) {
    loop_.run_posted();
    etcd_.advance(milliseconds(200));
  }
  ASSERT_TRUE(removed);
  expect_unknown(*removed);
  store_->unwatch(watch);
}

TEST_F(EtcdStoreTest, AWatchThatBeganBehindAGapSaysNothingOfTheWritesInIt) {
  const Revision known = put("a", "1");
  const std::uint64_t ours = etcd_.revision().number() + 1;
  for (FakeEtcd::Member& member : etcd_.members) member.omits = {ours};
  RecordingWatcher first;
  store_->watch("", etcd_.revision(), first);
  loop_.run_posted();
  etcd_.faults = {Fault::kAnswerLost};
  etcd_.then = [this] { etcd_.write({{"/a", value_of("theirs")}}); };
  std::optional<Result<WriteResult>> done;
  store_->write({"a", value_of("ours"), known}, [&](Result<WriteResult> result) { done = std::move(result); });
  RecordingWatcher second;
  std::optional<WatchId> again;
  for (int turns = 0; turns < 100 && !done; ++turns) {
    loop_.run_posted();
    if (first.end && !again) again = store_->watch("", etcd_.revision(), second);
    if (!done) etcd_.advance(milliseconds(20));
  }
  ASSERT_TRUE(first.end) << "every member leaves it out";
  EXPECT_EQ(etcd_.writes_of("/a"), 3U) << "it was done";
  ASSERT_TRUE(done);
  ASSERT_FALSE(*done) << "answered as refused";
  EXPECT_EQ(done->error().code, ErrorCode::kTimeout);
  EXPECT_THAT(done->error().text(), HasSubstr("may have been stored"));
  if (again) store_->unwatch(*again);
}

TEST_F(EtcdStoreTest, AWriteOfAnotherServerIsNotTakenForOurs) {
  put("a", "1");
  RecordingWatcher watcher;
  const WatchId watch = store_->watch("", etcd_.revision(), watcher);
  const Revision known = etcd_.revision();
  etcd_.write({{"/a", value_of("theirs")}});
  etcd_.faults = {Fault::kRequestLost};
  const auto done = write("a", "ours", known);
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->committed);
  ASSERT_TRUE(done->current);
  EXPECT_EQ(*done->current->value, "theirs");
  EXPECT_EQ(done->current->key, "a");
  store_->unwatch(watch);
}

TEST_F(EtcdStoreTest, AnUnconditionalWriteIsNotRepeatedOnceItMayBeDone) {
  etcd_.faults = {Fault::kNotReached, Fault::kAnswerLost};
  const auto done = write("a", "1", std::nullopt);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(done.error().text(), HasSubstr("may have been stored"));
  EXPECT_EQ(etcd_.writes_of("/a"), 1U);
}

TEST_F(EtcdStoreTest, ADeletionWhoseAnswerIsLostIsDone) {
  const Revision known = put("a", "1");
  etcd_.faults = {Fault::kAnswerLost};
  const auto done = client_->remove("a", known);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->committed);
  EXPECT_EQ(etcd_.writes_of("/a"), 2U);
}

TEST_F(EtcdStoreTest, AWriteWithoutAMemberFailsWhenTheTimeIsOver) {
  etcd_.faults.assign(1000, Fault::kNotReached);
  const auto done = write("a", "1", Revision());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kServiceUnavailable);
  EXPECT_THAT(store_->refusing().value_or(""), HasSubstr("no leader"));
  EXPECT_LT(etcd_.asked.size(), 100U) << "it pauses";
  etcd_.faults.clear();
  put("a", "1");
  EXPECT_FALSE(store_->refusing());
}

TEST_F(EtcdStoreTest, AFullDatabaseIsReported) {
  etcd_.faults = {Fault::kNoSpace};
  const auto done = write("a", "1", Revision());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kServiceUnavailable);
  EXPECT_EQ(etcd_.asked.size(), 1U) << "no member has more";
  EXPECT_THAT(store_->refusing().value_or(""), HasSubstr("out of space"));
}

TEST_F(EtcdStoreTest, OneOfSeveralSaysItsName) {
  telemetry::Registry metrics;
  reopen("events", &metrics);
  put("a", "1");
  EXPECT_THAT(metrics.text(), HasSubstr("spillway_store_revision{store=\"events\"} "));
  etcd_.faults.assign(1000, Fault::kNotReached);
  const auto done = write("b", "1", Revision());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text(), HasSubstr("the etcd of events: "));
  EXPECT_THAT(store_->refusing().value_or(""), HasSubstr("the etcd of events does not answer: "));
  reopen();
}

// Watches

TEST_F(EtcdStoreTest, RepeatedEventsAreDropped) {
  for (FakeEtcd::Member& member : etcd_.members) member.repeats = true;
  RecordingWatcher watcher;
  store_->watch("", etcd_.revision(), watcher);
  put("a", "1");
  put("a", "2");
  EXPECT_THAT(watcher.seen, SizeIs(2));
}

TEST_F(EtcdStoreTest, WhatOneMemberLeavesOutAnotherOneKnows) {
  std::size_t watches = 0;
  for (std::size_t faulty = 0; faulty < 2; ++faulty) {  // the watch begins at one of the members
    reopen();
    for (FakeEtcd::Member& member : etcd_.members) member.omits.clear();
    etcd_.members[faulty].omits = {etcd_.revision().number() + 2};
    etcd_.watches = 0;
    RecordingWatcher watcher;
    store_->watch("", etcd_.revision(), watcher);
    loop_.run_posted();
    for (int i = 0; i < 3; ++i) etcd_.write({{"/a", value_of(std::to_string(i))}});
    for (int turns = 0; turns < 5; ++turns) etcd_.advance(seconds(1));
    loop_.run_posted();
    EXPECT_THAT(watcher.seen, SizeIs(3));
    EXPECT_FALSE(watcher.end);
    watches += etcd_.watches;
    store_.reset();
  }
  EXPECT_EQ(watches, 3U) << "one of the two had to go on elsewhere";
}

TEST_F(EtcdStoreTest, WhatEveryMemberLeavesOutEndsTheWatch) {
  for (FakeEtcd::Member& member : etcd_.members) member.omits = {etcd_.revision().number() + 2};
  RecordingWatcher watcher;
  store_->watch("", etcd_.revision(), watcher);
  loop_.run_posted();
  for (int i = 0; i < 3; ++i) etcd_.write({{"/a", value_of(std::to_string(i))}});
  loop_.run_posted();
  for (int i = 0; i < 10; ++i) etcd_.advance(seconds(1));
  EXPECT_THAT(watcher.seen, SizeIs(1)) << "up to the gap";
  ASSERT_TRUE(watcher.end);
  EXPECT_EQ(watcher.end->code, ErrorCode::kExpired);
}

struct BatchWatcher final : Watcher {
  void on_changes(const std::vector<Change>& changes) override {
    for (const Change& change : changes) revisions.push_back(change.revision.number());
    batches.push_back(changes.size());
  }

  void on_reached(Revision revision) override { reached = revision; }

  void on_watch_end(const Error& error) override { end = error; }

  std::vector<std::uint64_t> revisions;
  std::vector<std::size_t> batches;
  std::optional<Revision> reached;
  std::optional<Error> end;
};

TEST_F(EtcdStoreTest, ARevisionIsDeliveredWholeHoweverItArrives) {
  for (FakeEtcd::Member& member : etcd_.members) member.fragment = 1;
  BatchWatcher watcher;
  const Revision before = etcd_.revision();
  store_->watch("", before, watcher);
  loop_.run_posted();
  etcd_.write({{"/a", value_of("1")}, {"/b", value_of("1")}, {"/c", value_of("1")}});
  loop_.run_posted();
  EXPECT_THAT(watcher.batches, ElementsAre(3U));
  EXPECT_EQ(store_->revision(), etcd_.revision());
}

TEST_F(EtcdStoreTest, AWatchGoesOnWhereItWasBroken) {
  RecordingWatcher watcher;
  store_->watch("", etcd_.revision(), watcher);
  put("a", "1");
  for (int i = 0; i < 5; ++i) {
    etcd_.break_watches();
    loop_.run_posted();
    etcd_.write({{"/a", value_of("x")}});
    for (int turns = 0; turns < 10; ++turns) etcd_.advance(seconds(1));
    loop_.run_posted();
  }
  EXPECT_THAT(watcher.seen, SizeIs(6));
  EXPECT_EQ(etcd_.watches, 6U);
}

TEST_F(EtcdStoreTest, AWatchThatSaysNothingAndIsBehindGoesOnElsewhere) {
  std::size_t watches = 0;
  for (std::size_t silent = 0; silent < 2; ++silent) {  // the watch begins at one of the members
    reopen();
    for (FakeEtcd::Member& member : etcd_.members) member.silent = false;
    etcd_.members[silent].silent = true;
    etcd_.watches = 0;
    RecordingWatcher watcher;
    store_->watch("", etcd_.revision(), watcher);
    loop_.run_posted();
    etcd_.write({{"/a", value_of("1")}});
    for (int turns = 0; turns < 30; ++turns) etcd_.advance(seconds(1));
    EXPECT_THAT(watcher.seen, SizeIs(1));
    watches += etcd_.watches;
    store_.reset();
  }
  EXPECT_EQ(watches, 3U) << "one of the two went on elsewhere";
}

TEST_F(EtcdStoreTest, AWatchWhoseHistoryIsGoneEnds) {
  for (FakeEtcd::Member& member : etcd_.members) member.silent = true;
  BatchWatcher watcher;
  store_->watch("", etcd_.revision(), watcher);
  loop_.run_posted();
  for (int i = 0; i < 3; ++i) etcd_.write({{"/a", value_of("x")}});
  etcd_.compact(etcd_.revision());
  for (FakeEtcd::Member& member : etcd_.members) member.silent = false;
  etcd_.push();
  loop_.run_posted();
  ASSERT_TRUE(watcher.end);
  EXPECT_EQ(watcher.end->code, ErrorCode::kExpired);
  EXPECT_EQ(store_->compacted(), etcd_.revision());
}

TEST_F(EtcdStoreTest, KeysOfOthersMoveTheRevisionAlone) {
  client_.reset();
  EtcdOptions options;
  options.root = "/registry";
  options.prefix = "/mine";
  store_ = std::make_unique<EtcdStore>(etcd_.connect(), loop_.poster(), options);
  BatchWatcher watcher;
  store_->watch("/registry/", etcd_.revision(), watcher);
  loop_.run_posted();
  const Revision ours = etcd_.write({{"/mine/a", value_of("1")}});
  const Revision theirs = etcd_.write({{"/others/a", value_of("1")}});
  loop_.run_posted();
  EXPECT_THAT(watcher.revisions, ElementsAre(ours.number()));
  EXPECT_EQ(watcher.reached, theirs);
  EXPECT_EQ(store_->revision(), theirs);
}

TEST_F(EtcdStoreTest, AnAnswerWaitsForItsEventButNotForEver) {
  RecordingWatcher watcher;
  store_->watch("", etcd_.revision(), watcher);
  loop_.run_posted();
  for (FakeEtcd::Member& member : etcd_.members) member.silent = true;
  std::optional<Result<WriteResult>> answer;
  store_->write({"a", value_of("1"), std::nullopt}, [&](Result<WriteResult> result) { answer = std::move(result); });
  loop_.run_posted();
  EXPECT_FALSE(answer) << "its event has not come";
  etcd_.advance(EtcdStore::kHeldMax);
  ASSERT_TRUE(answer);
  EXPECT_TRUE((*answer)->committed);
  EXPECT_THAT(watcher.seen, IsEmpty());
  for (FakeEtcd::Member& member : etcd_.members) member.silent = false;
  etcd_.push();
  loop_.run_posted();
  EXPECT_THAT(watcher.seen, SizeIs(1));
}

TEST_F(EtcdStoreTest, TheBytesOfAWriteOfOursAreShared) {
  struct Keeps final : Watcher {
    void on_changes(const std::vector<Change>& changes) override { value = changes.back().value; }

    void on_watch_end(const Error&) override {}

    Value value;
  } watcher;

  store_->watch("", etcd_.revision(), watcher);
  loop_.run_posted();
  const Value written = value_of("1");
  bool done = false;
  store_->write({"a", written, std::nullopt}, [&](const Result<WriteResult>&) { done = true; });
  ASSERT_TRUE(loop_.run_until([&] { return done; }));
  EXPECT_EQ(watcher.value, written) << "the same, not another of the same content";
}

// Barriers, ranges, compaction

TEST_F(EtcdStoreTest, ManyBarriersAreTwoQuestions) {
  int reached = 0;
  for (int i = 0; i < 500; ++i)
    store_->barrier([&](const Result<Revision>& result) { reached += result && *result == etcd_.revision() ? 1 : 0; });
  loop_.run_posted();
  EXPECT_EQ(reached, 500);
  EXPECT_LE(etcd_.ranges, 2U);
}

TEST_F(EtcdStoreTest, ABarrierMeansWhatOthersWroteBeforeIt) {
  RecordingWatcher watcher;
  store_->watch("", etcd_.revision(), watcher);
  loop_.run_posted();
  for (FakeEtcd::Member& member : etcd_.members) member.silent = true;
  etcd_.write({{"/a", value_of("1")}});
  std::optional<Result<Revision>> reached;
  store_->barrier([&](Result<Revision> result) { reached = std::move(result); });
  loop_.run_posted();
  EXPECT_FALSE(reached);
  for (FakeEtcd::Member& member : etcd_.members) member.silent = false;
  etcd_.push();
  loop_.run_posted();
  ASSERT_TRUE(reached);
  EXPECT_EQ(**reached, etcd_.revision());
  EXPECT_THAT(watcher.seen, SizeIs(1));
}

TEST_F(EtcdStoreTest, ABarrierThatIsNotReachedIsRefused) {
  RecordingWatcher watcher;
  store_->watch("", etcd_.revision(), watcher);
  loop_.run_posted();
  for (FakeEtcd::Member& member : etcd_.members) member.silent = true;
  etcd_.write({{"/a", value_of("1")}});
  std::optional<Result<Revision>> reached;
  store_->barrier([&](Result<Revision> result) { reached = std::move(result); });
  loop_.run_posted();
  etcd_.advance(seconds(3));
  ASSERT_TRUE(reached);
  EXPECT_EQ(reached->error().code, ErrorCode::kTimeout);
}

TEST_F(EtcdStoreTest, ALongRangeIsOneStateInPages) {
  std::vector<std::pair<std::string, Value>> many;
  for (int i = 0; i < 1'700; ++i) many.emplace_back(fmt::format("/k{:05}", i), value_of("x"));
  const Revision at = etcd_.write(many);
  std::optional<Result<RangeResult>> shown;
  etcd_.ranges = 0;
  store_->range({.prefix = "k"}, [&](Result<RangeResult> result) { shown = std::move(result); });
  etcd_.write({{"/k00000", value_of("new")}, {"/zz", value_of("")}});
  loop_.run_posted();
  ASSERT_TRUE(shown && *shown);
  EXPECT_THAT((*shown)->entries, SizeIs(1'700));
  EXPECT_EQ(etcd_.ranges, 3U) << "500, 1,000, the rest";
  EXPECT_GE((*shown)->revision, at);
  EXPECT_EQ((*shown)->entries.front().key, "k00000");
}

TEST_F(EtcdStoreTest, ARequestForACompactedRevisionReportsTheCompaction) {
  for (int i = 0; i < 5; ++i) put("a", std::to_string(i));
  const Revision kept = etcd_.revision();
  put("a", "last");
  etcd_.write({{"compact_rev_key", value_of(std::to_string(kept.number()))}});
  etcd_.compact(kept);
  reopen();  // a server that starts does not know about it
  EXPECT_EQ(store_->compacted(), Revision());
  const auto range_at = [&](Revision at) {
    std::optional<Result<RangeResult>> answer;
    store_->range({"", {}, 0, at}, [&](Result<RangeResult> result) { answer = std::move(result); });
    loop_.run_posted();
    return answer.value_or(make_error(ErrorCode::kInternalError, "no answer"));
  };
  const auto gone = range_at(Revision(2));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kExpired);
  EXPECT_EQ(store_->compacted(), kept);
  EXPECT_TRUE(range_at(kept));
}

TEST_F(EtcdStoreTest, ServersAgreeWhoCompacts) {
  EtcdOptions options;
  options.root = "";
  options.prefix = "/";
  EtcdStore other(etcd_.connect(), loop_.poster(), options);
  StoreClient there(other, loop_);
  for (int interval = 0; interval < 4; ++interval) {
    put("a", std::to_string(interval));
    const Revision target = Revision(etcd_.revision().number() - 1);
    const auto here = client_->compact(target);
    const auto also = there.compact(target);
    ASSERT_TRUE(here && also);
  }
  EXPECT_EQ(etcd_.compactions, 4U) << "one of the two in each interval";
  EXPECT_EQ(etcd_.writes_of("compact_rev_key"), 4U);
  EXPECT_GT(std::max(store_->compacted(), other.compacted()), Revision(1));
}

struct EtcdLeaseTest : EtcdStoreTest {
  void put_for(const std::string& key, Duration ttl) {
    const auto done = client_->write({.key = key, .value = value_of("x"), .ttl = ttl});
    EXPECT_TRUE(done && done->committed) << key;
  }
};

TEST_F(EtcdLeaseTest, OneLeaseIsGivenToManyKeysForAWhile) {
  for (int i = 0; i < 1'000; ++i) put_for(fmt::format("k{}", i), hours(1));
  ASSERT_THAT(etcd_.leases, SizeIs(1));
  EXPECT_EQ(etcd_.leases[1].life, hours(1) + seconds(60));
  put_for("one more", hours(1));
  EXPECT_THAT(etcd_.leases, SizeIs(2)) << "a lease has too many keys";
  etcd_.advance(seconds(59));
  put_for("later", hours(1));
  EXPECT_THAT(etcd_.leases, SizeIs(2));
  etcd_.advance(seconds(2));
  put_for("too late", hours(1));
  EXPECT_THAT(etcd_.leases, SizeIs(3)) << "the key would go before its time";
  put_for("other", minutes(10));
  EXPECT_THAT(etcd_.leases, SizeIs(4)) << "the key would go much too late";
  EXPECT_EQ(etcd_.leases[4].life, minutes(10) + seconds(30)) << "reuse is at most a twentieth";
}

TEST_F(EtcdLeaseTest, ManyWritesAtOnceWaitForOneGrant) {
  int done = 0;
  for (int i = 0; i < 50; ++i) {
    store_->write({.key = fmt::format("k{}", i), .value = value_of("x"), .ttl = hours(1)},
                  [&done](const Result<WriteResult>& result) { done += result && result->committed ? 1 : 0; });
  }
  ASSERT_TRUE(loop_.run_until([&] { return done == 50; }));
  EXPECT_THAT(etcd_.leases, SizeIs(1));
}

TEST_F(EtcdLeaseTest, ALeaseThatIsGoneIsReplaced) {
  put_for("a", hours(1));
  etcd_.end_lease(1);
  EXPECT_FALSE(client_->range({"a"})->entries.size() == 1);
  put_for("b", hours(1));
  EXPECT_THAT(etcd_.leases, SizeIs(2));
  EXPECT_THAT(etcd_.leases[2].keys, ElementsAre("/b"));
}

}  // namespace
}  // namespace spillway::store
