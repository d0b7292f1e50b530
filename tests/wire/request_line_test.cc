// The choice of the next request, and of requests to refuse.
#include "wire/server/bounds/request_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::wire {
namespace {

using ::testing::ElementsAre;

class RequestLineTest : public ::testing::Test {
 protected:
  explicit RequestLineTest(QueueBounds bounds = {.vital_seats = 2,
                                                 .ordinary_seats = 1,
                                                 .vital_waiting_max = 8,
                                                 .ordinary_waiting_max = 4,
                                                 .client_waiting_max = 3})
      : line_(std::make_shared<RequestLine>(bounds, [this] { ++calls_; })) {}

  bool enter(RequestClass of, const std::string& client) {
    const bool entered = line_->enter(of, client, [this, client](RequestLine::Seat seat) {
      served_.push_back(client);
      if (keep_) seats_.push_back(std::move(seat));
    });
    if (entered) ++calls_;
    return entered;
  }

  /// Executes requests as the owner of the line does.
  void run() {
    for (; calls_ > 0; --calls_) line_->serve_one();
  }

  int calls_ = 0;
  bool keep_ = false;
  std::vector<std::string> served_;
  std::vector<RequestLine::Seat> seats_;
  std::shared_ptr<RequestLine> line_;
};

TEST_F(RequestLineTest, AHeartbeatPassesAFlood) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(enter(RequestClass::kOrdinary, "flood"));
  EXPECT_TRUE(enter(RequestClass::kVital, "controller"));
  EXPECT_TRUE(enter(RequestClass::kHeartbeat, "n1"));
  run();
  EXPECT_THAT(served_, ElementsAre("n1", "controller", "flood", "flood", "flood"));
}

TEST_F(RequestLineTest, NoClientStarves) {
  for (int i = 0; i < 3; ++i) {
    for (int node = 0; node < 10; ++node) EXPECT_TRUE(enter(RequestClass::kHeartbeat, "n" + std::to_string(node)));
  }
  EXPECT_TRUE(enter(RequestClass::kOrdinary, "user"));
  run();
  EXPECT_EQ(std::ranges::find(served_, "user") - served_.begin(), 8);
}

TEST_F(RequestLineTest, ClientsOfAClassTakeTurns) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(enter(RequestClass::kVital, "a"));
  EXPECT_TRUE(enter(RequestClass::kVital, "b"));
  EXPECT_TRUE(enter(RequestClass::kVital, "c"));
  run();
  EXPECT_THAT(served_, ElementsAre("a", "b", "c", "a", "a"));
}

TEST_F(RequestLineTest, BoundsWhatWaitsButNotHeartbeats) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(enter(RequestClass::kOrdinary, "a"));
  EXPECT_FALSE(enter(RequestClass::kOrdinary, "a")) << "of one client";
  EXPECT_TRUE(enter(RequestClass::kOrdinary, "b"));
  EXPECT_FALSE(enter(RequestClass::kOrdinary, "c")) << "in all";
  for (int node = 0; node < 100; ++node) EXPECT_TRUE(enter(RequestClass::kHeartbeat, "n" + std::to_string(node)));
  EXPECT_EQ(line_->waiting(), 104U);
  line_->clear();
  EXPECT_EQ(line_->waiting(), 0U);
}

TEST_F(RequestLineTest, WaitsForASeatOfItsClass) {
  keep_ = true;
  EXPECT_TRUE(enter(RequestClass::kOrdinary, "a"));
  EXPECT_TRUE(enter(RequestClass::kOrdinary, "b"));
  run();
  EXPECT_THAT(served_, ElementsAre("a"));
  EXPECT_TRUE(enter(RequestClass::kVital, "controller"));
  run();
  EXPECT_THAT(served_, ElementsAre("a", "controller")) << "their seats are not the others'";
  calls_ = 0;
  seats_.clear();
  EXPECT_GE(calls_, 1) << "nobody else tells that there is a seat";
  run();
  EXPECT_THAT(served_, ElementsAre("a", "controller", "b"));
  calls_ = 0;
  seats_.clear();
  EXPECT_EQ(calls_, 0) << "nobody waits";
}

}  // namespace
}  // namespace spillway::wire
