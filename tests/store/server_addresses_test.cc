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
            ++reads;
          }) {
      addresses.start();
      test.loop_.run_posted();
    }

    StoreView view;
    std::vector<std::string> seen;
    int reads = 0;
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
  second.addresses.release([&left] { left = true; });
  loop_.run_posted();
  EXPECT_TRUE(left);
  const int reads = second.reads;
  timers_.advance(minutes(1));
  EXPECT_THAT(first.seen, ElementsAre("10.0.0.1:6443"));
  EXPECT_EQ(second.reads, reads);
}

TEST_F(ServerAddressesTest, OneWithoutAnAddressOnlyReads) {
  Server silent(*this, "a", "");
  EXPECT_EQ(silent.reads, 1);
  EXPECT_THAT(silent.seen, IsEmpty());
  const Server other(*this, "b", "10.0.0.2:6443");
  timers_.advance(ServerAddresses::kBeatEvery);
  EXPECT_THAT(silent.seen, ElementsAre("10.0.0.2:6443"));
  bool left = false;
  silent.addresses.release([&left] { left = true; });
  EXPECT_TRUE(left);
}

TEST_F(ServerAddressesTest, WhatTheStoreDoesNotTakeIsWrittenLater) {
  Server server(*this, "a", "10.0.0.1:6443");
  server.view.fails = true;
  timers_.advance(ServerAddresses::kBeatEvery * 3);
  EXPECT_EQ(server.reads, 1) << "nothing is told while nothing is known";
  server.view.fails = false;
  timers_.advance(ServerAddresses::kBeatEvery);
  EXPECT_EQ(server.reads, 2);
  EXPECT_THAT(server.seen, ElementsAre("10.0.0.1:6443"));
}

}  // namespace
}  // namespace spillway::store
