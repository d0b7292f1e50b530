#include "policy/flow/seat_book.h"

#include "base/check.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace spillway::flow {
namespace {

int percent_of(int seats, int percent) {
  return static_cast<int>((std::int64_t{seats} * percent + 50) / 100);
}

}  // namespace

std::vector<Share> deal_seats(const std::vector<Level>& levels, int total) {
  std::int64_t shares = 0;
  for (const Level& level : levels) shares += level.shares;
  std::vector<Share> out;
  for (const Level& level : levels) {
    Share share;
    if (shares > 0) share.nominal = static_cast<int>((std::int64_t{total} * level.shares + shares - 1) / shares);
    share.lendable = percent_of(share.nominal, level.lendable_percent);
    share.most = level.borrowing_limit_percent
                     ? share.nominal + percent_of(share.nominal, *level.borrowing_limit_percent)
                     : std::numeric_limits<int>::max();
    out.push_back(share);
  }
  return out;
}

SeatBook::SeatBook(std::vector<Share> shares) : shares_(std::move(shares)), held_(shares_.size()) {
  for (const Share& share : shares_) common_ += share.lendable;
}

int SeatBook::common_of(std::size_t level, int held) const {
  return std::max(0, held - guaranteed(level));
}

bool SeatBook::is_within_bound(std::size_t level, int seats) const {
  return seats <= shares_[level].most - held_[level];
}

bool SeatBook::is_guaranteed(std::size_t level, int seats) const {
  return held_[level] + seats <= guaranteed(level);
}

bool SeatBook::fits(std::size_t level, int seats) const {
  if (!is_within_bound(level, seats)) return false;
  return common_held_ - common_of(level, held_[level]) + common_of(level, held_[level] + seats) <= common_;
}

void SeatBook::take(std::size_t level, int seats) {
  common_held_ += common_of(level, held_[level] + seats) - common_of(level, held_[level]);
  held_[level] += seats;
  SPILLWAY_CHECK(common_held_ <= common_ && held_[level] <= shares_[level].most);
}

void SeatBook::give(std::size_t level, int seats) {
  common_held_ += common_of(level, held_[level] - seats) - common_of(level, held_[level]);
  held_[level] -= seats;
  SPILLWAY_CHECK(held_[level] >= 0);
}

}  // namespace spillway::flow
