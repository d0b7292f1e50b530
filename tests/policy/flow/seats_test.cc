// Goal: the seats of requests and their longest waits, at every boundary.
#include "policy/flow/seats.h"

#include <gtest/gtest.h>

namespace spillway::flow {
namespace {

TEST(Seats, AListHasOneForEveryHundredObjects) {
  for (const auto& [objects, want] : {std::pair(0U, 1),
                                      {1U, 1},
                                      {100U, 1},
                                      {101U, 2},
                                      {200U, 2},
                                      {999U, 10},
                                      {1'000U, 10},
                                      {1'001U, 10},
                                      {130'000U, 10},
                                      {4'000'000'000U, 10}}) {
    EXPECT_EQ(list_seats(objects), want) << objects;
  }
}

TEST(Seats, AWriteHasOneForEveryTenWatchers) {
  for (const auto& [watchers, want] :
       {std::pair(0U, 1), {9U, 1}, {10U, 1}, {19U, 1}, {20U, 2}, {100U, 10}, {5'000U, 10}}) {
    EXPECT_EQ(write_seats(watchers), want) << watchers;
  }
  EXPECT_FALSE(lingers(9));
  EXPECT_TRUE(lingers(10));
}

TEST(Seats, NoFlowTakesMoreThanAPartOfALevel) {
  EXPECT_EQ(bounded_seats(10, 245), 10);
  EXPECT_EQ(bounded_seats(10, 49), 7);
  EXPECT_EQ(bounded_seats(10, 13), 1);
  EXPECT_EQ(bounded_seats(10, 0), 1);
  EXPECT_EQ(bounded_seats(0, 100), 1);
}

TEST(Seats, ARequestWaitsAQuarterOfItsTime) {
  EXPECT_EQ(wait_max(std::nullopt), seconds(15));
  EXPECT_EQ(wait_max(seconds(34)), milliseconds(8'500));
  EXPECT_EQ(wait_max(minutes(3)), seconds(45));
  EXPECT_EQ(wait_max(minutes(10)), seconds(60));
  EXPECT_EQ(wait_max(Duration::zero()), seconds(15));
  EXPECT_EQ(wait_max(seconds(-1)), seconds(15));
}

}  // namespace
}  // namespace spillway::flow
