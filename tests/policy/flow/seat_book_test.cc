// Goal: seats are dealt as upstream deals them; whatever levels take and give, no more are held than there are, no
// level holds more than it may, and the seats that a level may not lend are always there for it.
#include "policy/flow/seat_book.h"

#include "policy/flow/built_in.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace spillway::flow {
namespace {

TEST(SeatBook, SixHundredSeatsAreDealtByShares) {
  const Configuration built_in = built_in_configuration();
  const std::vector<Share> shares = deal_seats(built_in.levels, 600);
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    rows.push_back(fmt::format("{} {} {}", built_in.levels[i].name, shares[i].nominal, shares[i].lendable));
  }
  EXPECT_EQ(rows, (std::vector<std::string>{"exempt 0 0", "leader-election 25 0", "node-high 98 25", "system 74 24",
                                            "workload-high 98 49", "workload-low 245 221", "global-default 49 25",
                                            "catch-all 13 0"}));
}

TEST(SeatBook, EveryLevelWithAShareHasASeat) {
  for (const Share& share : deal_seats({{.name = "a", .shares = 1}, {.name = "b", .shares = 999}}, 1)) {
    EXPECT_EQ(share.nominal, 1);
  }
  EXPECT_EQ(deal_seats({{.name = "a", .shares = 0}}, 10).front().nominal, 0);
}

/// Every state that three small levels can get into by taking whatever fits.
TEST(SeatBook, NoStateBreaksABound) {
  const std::vector<std::vector<Share>> worlds{{{2, 1, 100}, {2, 2, 100}, {1, 0, 100}},
                                               {{3, 2, 3}, {2, 0, 4}, {2, 1, 100}},
                                               {{0, 0, 100}, {2, 1, 2}, {1, 1, 1}}};
  for (const std::vector<Share>& shares : worlds) {
    const int all =
        std::accumulate(shares.begin(), shares.end(), 0, [](int sum, const Share& s) { return sum + s.nominal; });
    std::vector<std::vector<int>> states{{0, 0, 0}};
    int borrowed = 0;
    for (std::size_t at = 0; at < states.size(); ++at) {
      const std::vector<int> held = states[at];
      SeatBook book(shares);
      // Any held state can be reached in some order: first the guaranteed seats, then the rest.
      for (std::size_t level = 0; level < 3; ++level)
        book.take(level, std::min(held[level], shares[level].nominal - shares[level].lendable));
      for (std::size_t level = 0; level < 3; ++level) book.take(level, held[level] - book.held(level));
      EXPECT_LE(std::accumulate(held.begin(), held.end(), 0), all);
      for (std::size_t level = 0; level < 3; ++level) {
        EXPECT_LE(held[level], shares[level].most);
        borrowed += held[level] > shares[level].nominal;
        const int guaranteed = shares[level].nominal - shares[level].lendable;
        if (held[level] < guaranteed) {
          EXPECT_TRUE(book.fits(level, guaranteed - held[level])) << "what is not lent is there";
          EXPECT_TRUE(book.is_guaranteed(level, guaranteed - held[level]));
        }
        for (int seats = 1; seats <= 2; ++seats) {
          if (!book.fits(level, seats)) continue;
          std::vector<int> more = held;
          more[level] += seats;
          if (std::ranges::find(states, more) == states.end()) states.push_back(more);
        }
      }
    }
    EXPECT_GT(states.size(), 8U);
    EXPECT_GT(borrowed, 0);
  }
}

TEST(SeatBook, WhatIsGivenBackCanBeTakenAgain) {
  SeatBook book({{2, 1, 100}, {2, 2, 100}});
  book.take(0, 4);
  EXPECT_FALSE(book.fits(1, 1)) << "all is lent";
  book.give(0, 1);
  EXPECT_TRUE(book.fits(1, 1));
  EXPECT_TRUE(book.fits(0, 1));
  EXPECT_FALSE(book.fits(1, 2));
  EXPECT_FALSE(book.is_guaranteed(1, 1));
}

}  // namespace
}  // namespace spillway::flow
