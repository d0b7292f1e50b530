// Goal: of several servers of one store never two act, and one takes the place of another without waiting longer than
// it has to.
#include "store/server_lease.h"

#include "store/memory_store.h"
#include "store/store_client.h"
#include "store/test_loop.h"

#include <gmock/gmock.h>

#include <map>

namespace spillway::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What one server sees of the store: it may not answer, or be full.
class View final : public Store {
 public:
  explicit View(Store& store, TestLoop& loop) : store_(store), loop_(loop) {}

  void write(Write write, Completion<WriteResult> done) override {
    if (fails || full) return refuse(std::move(done));
    store_.write(std::move(write), std::move(done));
  }

  void range(Range range, Completion<RangeResult> done) override {
    if (fails) return refuse(std::move(done));
    store_.range(std::move(range), std::move(done));
  }

  WatchId watch(std::string, Revision, Watcher&) override { return 0; }

  void unwatch(WatchId) override {}

  void compact(Revision, Completion<Revision>) override {}

  bool is_full() const override { return full; }

  Revision revision() const override { return store_.revision(); }

  Revision compacted() const override { return {}; }

  bool fails = false;
  bool full = false;

 private:
  template <typename T>
  void refuse(Completion<T> done) {
    loop_.post([done = std::move(done)]() mutable { done(make_error(ErrorCode::kServiceUnavailable, "no answer")); });
  }

  Store& store_;
  TestLoop& loop_;
};

struct ServerLeaseTest : ::testing::Test {
  struct Server {
    Server(ServerLeaseTest& test, const std::string& name)
        : view(test.store_, test.loop_),
          lease(view, name,
                {.now = [&test] { return test.now_; },
                 .after =
                     [&test](Duration time, std::move_only_function<void()> task) {
                       test.timers_.emplace(test.now_ + time, std::move(task));
                     }},
                {.on_taken = [this] { told.emplace_back("taken"); },
                 .on_lost = [this](const std::string& why) { told.push_back("lost: " + why); },
                 .on_waiting = [this](const std::string& holder) { told.push_back("waits for " + holder); },
                 .on_failure = [this](const Error& error) { told.push_back(error.text()); }}) {
      lease.start();
      test.loop_.run_posted();
    }

    View view;
    std::vector<std::string> told;
    ServerLease lease;
  };

  void advance(Duration time) {
    const Instant end = now_ + time;
    while (!timers_.empty() && timers_.begin()->first <= end) {
      now_ = timers_.begin()->first;
      auto task = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      task();
      loop_.run_posted();
    }
    now_ = end;
  }

  TestLoop loop_;
  MemoryStore store_{loop_.poster()};
  Instant now_{};
  std::multimap<Instant, std::move_only_function<void()>> timers_;
};

TEST_F(ServerLeaseTest, TheFirstServesAndTheSecondWaits) {
  Server first(*this, "a");
  EXPECT_THAT(first.told, ElementsAre("taken"));
  Server second(*this, "b");
  advance(minutes(5));
  EXPECT_THAT(second.told, ElementsAre("waits for a"));
  EXPECT_THAT(first.told, ElementsAre("taken"));
}

TEST_F(ServerLeaseTest, OneThatIsGoneIsReplacedWhenItsTimeIsOver) {
  auto first = std::make_unique<Server>(*this, "a");
  Server second(*this, "b");
  advance(seconds(5));
  first.reset();
  advance(ServerLease::kHeldFor - seconds(3));
  EXPECT_FALSE(second.lease.is_held());
  advance(seconds(5));
  EXPECT_THAT(second.told, ElementsAre("waits for a", "taken"));
}

TEST_F(ServerLeaseTest, OneOfTheSameNameGoesOnAtOnce) {
  std::make_unique<Server>(*this, "a").reset();
  const Server again(*this, "a");
  EXPECT_THAT(again.told, ElementsAre("taken"));
}

TEST_F(ServerLeaseTest, OneThatGivesItBackIsReplacedAtTheNextLook) {
  Server first(*this, "a");
  Server second(*this, "b");
  bool given = false;
  first.lease.give_back([&] { given = true; });
  loop_.run_posted();
  EXPECT_TRUE(given);
  advance(ServerLease::kLookEvery);
  EXPECT_THAT(second.told, ElementsAre("waits for a", "taken"));
  EXPECT_THAT(first.told, ElementsAre("taken"));
}

TEST_F(ServerLeaseTest, AHolderThatCannotRenewEndsBeforeAnotherBegins) {
  Server first(*this, "a");
  Server second(*this, "b");
  advance(seconds(3));
  first.view.fails = true;
  std::optional<Instant> lost;
  std::optional<Instant> taken;
  for (int i = 0; i < 400; ++i) {
    advance(milliseconds(100));
    if (!lost && first.told.size() > 1) lost = now_;
    if (!taken && second.lease.is_held()) taken = now_;
  }
  ASSERT_TRUE(lost && taken);
  EXPECT_LE(*lost + seconds(2), *taken);
  EXPECT_THAT(first.told.back(), HasSubstr("in time"));
}

TEST_F(ServerLeaseTest, AHolderThatWasStoppedFindsThatAnotherServes) {
  Server first(*this, "a");
  first.view.fails = true;
  const auto frozen = std::exchange(timers_, {});
  Server second(*this, "b");
  advance(seconds(30));
  EXPECT_TRUE(second.lease.is_held());
  first.view.fails = false;
  EXPECT_EQ(frozen.size(), 1U);
  auto& task = const_cast<std::move_only_function<void()>&>(frozen.begin()->second);
  task();
  loop_.run_posted();
  EXPECT_FALSE(first.lease.is_held());
  EXPECT_EQ(first.told.size(), 2U);
}

TEST_F(ServerLeaseTest, AHolderThatIsOvertakenEndsWithItsNextWrite) {
  Server first(*this, "a");
  store_.write({std::string(ServerLease::kKey), value_of("b 1"), std::nullopt}, [](const Result<WriteResult>&) {});
  loop_.run_posted();
  advance(ServerLease::kLookEvery);
  EXPECT_THAT(first.told, ElementsAre("taken", "lost: server b has taken the lease"));
}

TEST_F(ServerLeaseTest, AStoreThatIsFullForEverybodyTakesItFromNobody) {
  Server first(*this, "a");
  first.view.full = true;
  advance(minutes(1));
  EXPECT_TRUE(first.lease.is_held());
  first.view.full = false;
  advance(seconds(4));
  EXPECT_THAT(first.told, ElementsAre("taken"));
}

TEST_F(ServerLeaseTest, AStoreThatDoesNotAnswerIsTold) {
  TestLoop loop;
  Server first(*this, "a");
  Server second(*this, "b");
  second.view.fails = true;
  advance(ServerLease::kLookEvery * 2);
  EXPECT_THAT(second.told, ElementsAre("waits for a", "no answer", "no answer"));
  second.view.fails = false;
  advance(minutes(1));
  EXPECT_FALSE(second.lease.is_held());
}

}  // namespace
}  // namespace spillway::store
