#include "policy/flow/seat_book.h"

#include "base/check.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace spillway::flow {
namespace {

constexpr int kWhole = 100;  // percent

int percent_of(int seats, int percent) {
  return static_cast<int>((std::int64_t{seats} * percent + kWhole / 2) / kWhole);
}

}  // namespace

std::vector<Share> deal_seats(const std::vector<Level>& levels, int total) {
  std::int64_t shares = 0;
  for (const Level& level : levels) shares += level.shares;
  std::vector<Share> out;
  for (const Level& level : levels) {
    Share share;
    if (shares > 0) share.nominal = static_cast<int>((std::int64_t{total} * level.shares + shares - 1) / shares);
    share.floor = static_cast<int>((std::int64_t{total} * level.floor_percent + kWhole - 1) / kWhole);
    share.nominal = std::max(share.nominal, share.floor);
    share.lendable = std::min(percent_of(share.nominal, level.lendable_percent), share.nominal - share.floor);
    share.most = level.borrowing_limit_percent
                     ? share.nominal + percent_of(share.nominal, *level.borrowing_limit_percent)
                     : std::numeric_limits<int>::max();
    out.push_back(share);
  }
  return out;
}

SeatBook::SeatBook(std::vector<Share> shares, std::vector<int> held)
    : shares_(std::move(shares)), held_(std::move(held)) {
  held_.resize(shares_.size());
  for (std::size_t level = 0; level < shares_.size(); ++level) {
    common_ += shares_[level].lendable;
    all_ += shares_[level].nominal;
    common_held_ += common_of(level, held_[level]);
    all_held_ += held_[level];
  }
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
  if (held_[level] + seats > shares_[level].floor && all_held_ + seats > 2 * all_) return false;
  const int more = common_of(level, held_[level] + seats) - common_of(level, held_[level]);
  return more == 0 || common_held_ + more <= common_;
}

void SeatBook::take(std::size_t level, int seats) {
  SPILLWAY_CHECK(fits(level, seats));
  common_held_ += common_of(level, held_[level] + seats) - common_of(level, held_[level]);
  held_[level] += seats;
  all_held_ += seats;
}

void SeatBook::give(std::size_t level, int seats) {
  common_held_ += common_of(level, held_[level] - seats) - common_of(level, held_[level]);
  held_[level] -= seats;
  all_held_ -= seats;
  SPILLWAY_CHECK(held_[level] >= 0);
}

}  // namespace spillway::flow
