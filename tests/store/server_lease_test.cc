// Goal: of several servers of one store never two act, one takes the place of another without waiting longer than it
// has to, and one that has lost its place may have it again.
#include "store/server_lease.h"

#include "store/memory_store.h"
#include "store/store_client.h"
#include "store/store_view.h"
#include "store/test_loop.h"

#include <gmock/gmock.h>

namespace spillway::store {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ServerLeaseTest : ::testing::Test {
  struct Server {
    Server(ServerLeaseTest& test, const std::string& name)
        : view(test.store_, test.loop_),
          lease(view, name, {.now = test.timers_.clock(), .after = test.timers_.after()},
                {.on_taken = [this] { reported.emplace_back("taken"); },
                 .on_lost = [this](const std::string& why) { reported.push_back("lost: " + why); },
                 .on_waiting = [this](const std::string& holder) { reported.push_back("waits for " + holder); },
                 .on_failure = [this](const Error& error) { reported.push_back(error.text()); }}) {
      lease.start();
      test.loop_.run_posted();
    }

    StoreView view;
    std::vector<std::string> reported;
    ServerLease lease;
  };

  TestLoop loop_;
  MemoryStore store_{loop_.poster()};
  TestTimers timers_{loop_};
};

TEST_F(ServerLeaseTest, TheFirstServesAndTheSecondWaits) {
  Server first(*this, "a");
  EXPECT_THAT(first.reported, ElementsAre("taken"));
  Server second(*this, "b");
  timers_.advance(minutes(5));
  EXPECT_THAT(second.reported, ElementsAre("waits for a"));
  EXPECT_THAT(first.reported, ElementsAre("taken"));
}

TEST_F(ServerLeaseTest, AKeyThatOnlyBeginsAsTheLeaseDoesIsNotTheLease) {
  store_.write({std::string(ServerLease::kKey) + "s/x", value_of("7 z"), std::nullopt},
               [](const Result<WriteResult>&) {});
  loop_.run_posted();
  const Server first(*this, "a");
  EXPECT_THAT(first.reported, ElementsAre("taken"));
}

TEST_F(ServerLeaseTest, OneThatIsGoneIsReplacedWhenItsTimeIsOver) {
  auto first = std::make_unique<Server>(*this, "a");
  Server second(*this, "b");
  timers_.advance(seconds(5));
  first.reset();
  timers_.advance(ServerLease::kHeldFor - seconds(3));
  EXPECT_FALSE(second.lease.is_held());
  timers_.advance(seconds(5));
  EXPECT_THAT(second.reported, ElementsAre("waits for a", "taken"));
}

TEST_F(ServerLeaseTest, OneOfTheSameNameGoesOnAtOnce) {
  std::make_unique<Server>(*this, "a").reset();
  const Server again(*this, "a");
  EXPECT_THAT(again.reported, ElementsAre("taken"));
}

TEST_F(ServerLeaseTest, OneThatGivesItBackIsReplacedAtTheNextRead) {
  Server first(*this, "a");
  Server second(*this, "b");
  bool given = false;
  first.lease.give_back([&] { given = true; });
  loop_.run_posted();
  EXPECT_TRUE(given);
  timers_.advance(ServerLease::kCheckEvery);
  EXPECT_THAT(second.reported, ElementsAre("waits for a", "taken"));
  EXPECT_THAT(first.reported, ElementsAre("taken"));
}

TEST_F(ServerLeaseTest, AHolderThatCannotRenewEndsBeforeAnotherBegins) {
  Server first(*this, "a");
  Server second(*this, "b");
  timers_.advance(seconds(3));
  first.view.fails = true;
  std::optional<Instant> lost;
  std::optional<Instant> taken;
  for (int i = 0; i < 400; ++i) {
    timers_.advance(milliseconds(100));
    if (!lost && first.reported.size() > 1) lost = timers_.now;
    if (!taken && second.lease.is_held()) taken = timers_.now;
  }
  ASSERT_TRUE(lost && taken);
  EXPECT_LE(*lost + seconds(2), *taken);
  EXPECT_THAT(first.reported, Contains(HasSubstr("in time")));
}

TEST_F(ServerLeaseTest, AHolderWhoseWriteIsNotAnsweredEndsBeforeAnotherBegins) {
  Server first(*this, "a");
  Server second(*this, "b");
  timers_.advance(seconds(3));
  first.view.silent = true;
  timers_.advance(ServerLease::kActsFor);
  EXPECT_FALSE(first.lease.is_held());
  EXPECT_FALSE(second.lease.is_held());
  EXPECT_THAT(first.reported, Contains(HasSubstr("in time")));
  timers_.advance(seconds(10));
  EXPECT_TRUE(second.lease.is_held());
  first.view.silent = false;
  first.view.answer_all(make_error(ErrorCode::kTimeout, "no answer"));
  timers_.advance(seconds(10));
  EXPECT_FALSE(first.lease.is_held());
  EXPECT_EQ(first.reported.back(), "waits for b");
}

TEST_F(ServerLeaseTest, ALeaseThatWasTakenTooLongAgoIsNotHeld) {
  Server first(*this, "a");
  Server second(*this, "b");
  timers_.advance(seconds(3));
  first.view.silent = true;
  timers_.advance(minutes(1));
  ASSERT_TRUE(second.lease.is_held());
  first.view.silent = false;
  first.view.answer_all(WriteResult{.committed = true, .revision = Revision(1), .current = {}});
  EXPECT_FALSE(first.lease.is_held());
  timers_.advance(seconds(10));
  EXPECT_FALSE(first.lease.is_held());
  EXPECT_TRUE(second.lease.is_held());
}

TEST_F(ServerLeaseTest, AHolderThatWasStoppedFindsThatAnotherServes) {
  Server first(*this, "a");
  first.view.fails = true;
  auto frozen = std::exchange(timers_.waiting, {});
  Server second(*this, "b");
  timers_.advance(seconds(30));
  EXPECT_TRUE(second.lease.is_held());
  first.view.fails = false;
  EXPECT_FALSE(frozen.empty());
  for (auto& [due, task] : frozen) {
    task();
    loop_.run_posted();
  }
  EXPECT_FALSE(first.lease.is_held());
  EXPECT_EQ(first.reported.size(), 3U);  // lost, then waiting for another holder
  EXPECT_EQ(first.reported.back(), "waits for b");
  second.lease.give_back([] {});
  loop_.run_posted();
  timers_.advance(ServerLease::kCheckEvery * 2);
  EXPECT_EQ(first.reported.back(), "taken");
}

TEST_F(ServerLeaseTest, AHolderThatIsOvertakenKnowsWithItsNextWrite) {
  Server first(*this, "a");
  store_.write({std::string(ServerLease::kKey), value_of("b 1"), std::nullopt}, [](const Result<WriteResult>&) {});
  loop_.run_posted();
  timers_.advance(ServerLease::kCheckEvery);
  EXPECT_THAT(first.reported, ElementsAre("taken", "lost: server b has taken the lease"));
}

TEST_F(ServerLeaseTest, AFullStoreTakesTheLeaseFromNoServer) {
  Server first(*this, "a");
  first.view.full = true;
  timers_.advance(minutes(1));
  EXPECT_TRUE(first.lease.is_held());
  first.view.full = false;
  timers_.advance(seconds(4));
  EXPECT_THAT(first.reported, ElementsAre("taken"));
}

TEST_F(ServerLeaseTest, AStoreThatDoesNotAnswerIsReported) {
  TestLoop loop;
  Server first(*this, "a");
  Server second(*this, "b");
  second.view.fails = true;
  timers_.advance(ServerLease::kCheckEvery * 2);
  EXPECT_THAT(second.reported, ElementsAre("waits for a", "no answer", "no answer"));
  second.view.fails = false;
  timers_.advance(minutes(1));
  EXPECT_FALSE(second.lease.is_held());
}

}  // namespace
}  // namespace spillway::store
