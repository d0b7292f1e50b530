// Goal: a server with other keys than those that run does not serve beside them; a server that has gone binds no other.
#include "store/server_roster.h"

#include "store/memory_store.h"
#include "store/store_client.h"
#include "store/store_view.h"
#include "store/test_loop.h"

#include <gmock/gmock.h>

#include <memory>
#include <optional>

namespace spillway::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct ServerRosterTest : ::testing::Test {
  struct Server {
    Server(ServerRosterTest& test, const std::string& name, const std::string& keys)
        : view(test.store_, test.loop_),
          roster(view, name, keys,
                 {.now = test.timers_.clock(), .after = test.timers_.after(), .yield = [this] { ++yields; }}) {
      roster.join([this](Outcome result) {
        ++answers;
        outcome = std::move(result);
      });
      test.loop_.run_posted();
    }

    bool serves() const { return outcome && *outcome; }

    StoreView view;
    int answers = 0;
    int yields = 0;
    std::optional<Outcome> outcome;
    ServerRoster roster;
  };

  std::vector<std::string> entries() {
    std::vector<std::string> names;
    store_.range({std::string(ServerRoster::kPrefix), {}, 0, {}}, [&](const Result<RangeResult>& found) {
      for (const Entry& entry : found->entries) names.push_back(entry.key.substr(ServerRoster::kPrefix.size()));
    });
    loop_.run_posted();
    return names;
  }

  TestLoop loop_;
  MemoryStore store_{loop_.poster()};
  TestTimers timers_{loop_};
};

TEST_F(ServerRosterTest, ServersWithTheSameKeysServeAtOnce) {
  const Server first(*this, "a", "k1");
  const Server second(*this, "b", "k1");
  EXPECT_TRUE(first.serves());
  EXPECT_TRUE(second.serves());
  EXPECT_THAT(entries(), ElementsAre("a", "b"));
}

TEST_F(ServerRosterTest, OneWithOtherKeysIsRefusedAndNamesWhoHasThem) {
  const Server first(*this, "a", "k1");
  const Server other(*this, "b", "k2");
  EXPECT_FALSE(other.outcome);
  timers_.advance(ServerRoster::kBeatEvery + ServerRoster::kCheckEvery);
  ASSERT_TRUE(other.outcome);
  ASSERT_FALSE(*other.outcome);
  EXPECT_EQ(other.outcome->error().code, ErrorCode::kConflict);
  EXPECT_EQ(other.outcome->error().at, "a");
  timers_.advance(minutes(1));
  EXPECT_EQ(other.answers, 1);
  EXPECT_THAT(entries(), ElementsAre("a"));
}

TEST_F(ServerRosterTest, KeysOfADepartedServerBindNoServer) {
  std::make_unique<Server>(*this, "a", "k1").reset();
  const Server other(*this, "b", "k2");
  timers_.advance(ServerRoster::kGoneAfter - ServerRoster::kCheckEvery);
  EXPECT_FALSE(other.outcome);
  timers_.advance(ServerRoster::kCheckEvery * 2);
  EXPECT_TRUE(other.serves());
  EXPECT_THAT(entries(), ElementsAre("b"));
}

TEST_F(ServerRosterTest, OneThatLeavesInOrderIsNotWaitedFor) {
  Server first(*this, "a", "k1");
  first.roster.release([] {});
  loop_.run_posted();
  const Server other(*this, "b", "k2");
  EXPECT_TRUE(other.serves());
  timers_.advance(minutes(1));
  EXPECT_THAT(entries(), ElementsAre("b"));
}

TEST_F(ServerRosterTest, AnEntryIsTakenBackAlthoughItsWriteIsUnderWay) {
  ServerRoster roster(store_, "a", "k1", {.now = timers_.clock(), .after = timers_.after()});
  int joined = 0;
  roster.join([&](const Outcome&) { ++joined; });
  int released = 0;
  roster.release([&] { ++released; });
  EXPECT_EQ(released, 0);
  loop_.run_posted();
  EXPECT_EQ(released, 1);
  EXPECT_EQ(joined, 0);
  EXPECT_THAT(entries(), IsEmpty());
}

TEST_F(ServerRosterTest, OneOfTheSameNameTakesItsEntryOver) {
  std::make_unique<Server>(*this, "a", "k1").reset();
  const Server again(*this, "a", "k2");
  EXPECT_TRUE(again.serves());
  EXPECT_THAT(entries(), ElementsAre("a"));
}

TEST_F(ServerRosterTest, OfTwoOfOneNameTheLaterYields) {
  const Server first(*this, "a", "k1");
  timers_.advance(seconds(7));
  auto later = std::make_unique<Server>(*this, "a", "k1");
  EXPECT_TRUE(later->serves());
  timers_.advance(ServerRoster::kBeatEvery * 2);
  EXPECT_EQ(later->yields, 1);
  EXPECT_EQ(later->answers, 1);
  timers_.advance(minutes(1));
  EXPECT_EQ(later->yields, 1);
  later->roster.release([] {});
  loop_.run_posted();
  EXPECT_THAT(entries(), ElementsAre("a"));  // the entry of the first one
  EXPECT_EQ(first.yields, 0);
}

TEST_F(ServerRosterTest, OfThreeOfOneNameTheFirstStays) {
  const Server first(*this, "a", "k1");
  const Server second(*this, "a", "k1");
  const Server third(*this, "a", "k1");
  timers_.advance(ServerRoster::kBeatEvery * 4);
  EXPECT_EQ(first.yields, 0);
  EXPECT_EQ(second.yields, 1);
  EXPECT_EQ(third.yields, 1);
  EXPECT_THAT(entries(), ElementsAre("a"));
}

TEST_F(ServerRosterTest, AnEarlierProcessOfTheSameNameThatHasGoneIsNoReasonToYield) {
  auto before = std::make_unique<Server>(*this, "a", "k1");
  timers_.advance(ServerRoster::kBeatEvery * 3);
  before.reset();
  const Server again(*this, "a", "k1");
  timers_.advance(minutes(1));
  EXPECT_TRUE(again.serves());
  EXPECT_EQ(again.yields, 0);
}

TEST_F(ServerRosterTest, OfTwoThatStartAtOnceNotBothServe) {
  ServerRoster first(store_, "a", "k1", {.now = timers_.clock(), .after = timers_.after()});
  ServerRoster second(store_, "b", "k2", {.now = timers_.clock(), .after = timers_.after()});
  int serve = 0;
  for (ServerRoster* roster : {&first, &second}) roster->join([&](const Outcome& result) { serve += result ? 1 : 0; });
  loop_.run_posted();
  timers_.advance(minutes(1));
  EXPECT_LE(serve, 1);
}

TEST_F(ServerRosterTest, AStoreThatDoesNotAnswerIsReported) {
  StoreView view(store_, loop_);
  view.fails = true;
  ServerRoster roster(view, "a", "k1", {.now = timers_.clock(), .after = timers_.after()});
  std::optional<Outcome> outcome;
  roster.join([&](Outcome result) { outcome = std::move(result); });
  loop_.run_posted();
  ASSERT_TRUE(outcome && !*outcome);
  EXPECT_EQ(outcome->error().code, ErrorCode::kServiceUnavailable);
  EXPECT_THAT(entries(), IsEmpty());
}

TEST_F(ServerRosterTest, ADeletedEntryIsRestored) {
  Server first(*this, "a", "k1");
  store_.write({std::string(ServerRoster::kPrefix) + "a", nullptr, std::nullopt}, [](const Result<WriteResult>&) {});
  loop_.run_posted();
  timers_.advance(ServerRoster::kBeatEvery * 2);
  EXPECT_THAT(entries(), ElementsAre("a"));
}

}  // namespace
}  // namespace spillway::store
