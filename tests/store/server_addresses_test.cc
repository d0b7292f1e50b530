// Goal: every server knows where all servers of the store serve; one that leaves is not among them any more.
#include "store/server_addresses.h"

#include "store/memory_store.h"
#include "store/store_view.h"
#include "store/test_loop.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace spillway::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct ServerAddressesTest : ::testing::Test {
  struct Server {
    Server(ServerAddressesTest& test, const std::string& name, const std::string& address)
        : view(test.store_, test.loop_),
          addresses(view, name, address, test.timers_.after(), [this](const std::vector<std::string>& found) {
            seen = found;
            ++looks;
          }) {
      addresses.start();
      test.loop_.run_posted();
    }

    StoreView view;
    std::vector<std::string> seen;
    int looks = 0;
    ServerAddresses addresses;
  };

  TestLoop loop_;
  MemoryStore store_{loop_.poster()};
  TestTimers timers_{loop_};
};

TEST_F(ServerAddressesTest, AllKnowAllOfThem) {
  const Server second(*this, "b", "10.0.0.2:6443");
  EXPECT_THAT(second.seen, ElementsAre("10.0.0.2:6443"));
  const Server first(*this, "a", "10.0.0.1:6443");
  EXPECT_THAT(first.seen, ElementsAre("10.0.0.1:6443", "10.0.0.2:6443"));
  timers_.advance(ServerAddresses::kBeatEvery);
  EXPECT_THAT(second.seen, ElementsAre("10.0.0.1:6443", "10.0.0.2:6443"));
}

TEST_F(ServerAddressesTest, OneThatLeavesIsNotAmongThem) {
  const Server first(*this, "a", "10.0.0.1:6443");
  Server second(*this, "b", "10.0.0.2:6443");
  bool left = false;
  second.addresses.leave([&left] { left = true; });
  loop_.run_posted();
  EXPECT_TRUE(left);
  const int looks = second.looks;
  timers_.advance(minutes(1));
  EXPECT_THAT(first.seen, ElementsAre("10.0.0.1:6443"));
  EXPECT_EQ(second.looks, looks);
}

TEST_F(ServerAddressesTest, OneWithoutAnAddressOnlyLooks) {
  Server silent(*this, "a", "");
  EXPECT_EQ(silent.looks, 1);
  EXPECT_THAT(silent.seen, IsEmpty());
  const Server other(*this, "b", "10.0.0.2:6443");
  timers_.advance(ServerAddresses::kBeatEvery);
  EXPECT_THAT(silent.seen, ElementsAre("10.0.0.2:6443"));
  bool left = false;
  silent.addresses.leave([&left] { left = true; });
  EXPECT_TRUE(left);
}

TEST_F(ServerAddressesTest, WhatTheStoreDoesNotTakeIsWrittenLater) {
  Server server(*this, "a", "10.0.0.1:6443");
  server.view.fails = true;
  timers_.advance(ServerAddresses::kBeatEvery * 3);
  EXPECT_EQ(server.looks, 1) << "nothing is told while nothing is known";
  server.view.fails = false;
  timers_.advance(ServerAddresses::kBeatEvery);
  EXPECT_EQ(server.looks, 2);
  EXPECT_THAT(server.seen, ElementsAre("10.0.0.1:6443"));
}

}  // namespace
}  // namespace spillway::store
