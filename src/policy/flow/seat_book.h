// Who holds the seats: each level has its share; what it may lend, others hold while it is idle, and so much as it may
// not lend is always there for it. Thread: as its owner.
// Invariants: no more seats are held than there are; none of a level beyond what it may borrow.
// Source: spec "API server at scale", 6.1-6.3.
#pragma once

#include "policy/flow/schema.h"

#include <cstddef>
#include <vector>

namespace spillway::flow {

/// Of one level, in seats.
struct Share {
  int nominal = 0;
  int lendable = 0;  // of them
  int most = 0;      // with what it may borrow

  friend bool operator==(const Share&, const Share&) = default;
};

/// Deals `total` seats by shares, rounded up, so that no level with a share is without. In the order of `levels`;
/// an exempt level has what its shares give it to lend, if anything, and needs none.
std::vector<Share> deal_seats(const std::vector<Level>& levels, int total);

class SeatBook {
 public:
  explicit SeatBook(std::vector<Share> shares);

  /// Whether the level may hold so many more with what others leave.
  bool fits(std::size_t level, int seats) const;
  /// Whether it may without what others could hold.
  bool is_guaranteed(std::size_t level, int seats) const;
  /// Whether its own bound would let it.
  bool is_within_bound(std::size_t level, int seats) const;

  void take(std::size_t level, int seats);
  void give(std::size_t level, int seats);

  const Share& share(std::size_t level) const { return shares_[level]; }

  int held(std::size_t level) const { return held_[level]; }

 private:
  int guaranteed(std::size_t level) const { return shares_[level].nominal - shares_[level].lendable; }

  /// What a level that holds so many holds of the common seats.
  int common_of(std::size_t level, int held) const;

  std::vector<Share> shares_;
  std::vector<int> held_;
  int common_ = 0;       // seats that are lendable, of all levels
  int common_held_ = 0;  // of them
};

}  // namespace spillway::flow
