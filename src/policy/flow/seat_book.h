// Accounts for the seats that each priority level holds. A level's lendable seats may be held by others while it is
// idle; the rest of its share is always available to it. Thread: as its owner.
// Invariants: the seats held never exceed the total, nor a level's own bound. After a change of the shares, levels may
// hold more than that until their requests end; others get what is guaranteed to them, but for twice the total.
// Source: spec "API server at scale", 6.1-6.3.
#pragma once

#include "policy/flow/schema.h"

#include <cstddef>
#include <vector>

namespace spillway::flow {

/// The share of one level in the server's seats.
struct Share {
  int nominal = 0;
  int lendable = 0;  // part of `nominal` that other levels may borrow
  int most = 0;      // seats including all that it may borrow
  int floor = 0;     // part of `nominal` that is guaranteed, even beside seats of an earlier configuration

  friend bool operator==(const Share&, const Share&) = default;
};

/// Deals `total` seats by shares, rounded up, so that no level with a share is without. In the order of `levels`;
/// an exempt level has what its shares give it to lend, if anything, and needs none.
std::vector<Share> deal_seats(const std::vector<Level>& levels, int total);

class SeatBook {
 public:
  /// `held`: seats of requests that began under other shares, by level; may be shorter than `shares`.
  explicit SeatBook(std::vector<Share> shares, std::vector<int> held = {});

  /// True if the level can take `seats` more: its own bound allows them, and other levels leave enough.
  bool fits(std::size_t level, int seats) const;
  /// True if the level can take `seats` more from its guaranteed share, which no other level can hold.
  bool is_guaranteed(std::size_t level, int seats) const;
  /// True if the level's own bound allows `seats` more.
  bool is_within_bound(std::size_t level, int seats) const;

  void take(std::size_t level, int seats);
  void give(std::size_t level, int seats);

  const Share& share(std::size_t level) const { return shares_[level]; }

  int held(std::size_t level) const { return held_[level]; }

 private:
  int guaranteed(std::size_t level) const { return shares_[level].nominal - shares_[level].lendable; }

  /// The borrowed or lendable seats of a level that holds `held`: those above its guaranteed share.
  int common_of(std::size_t level, int held) const;

  std::vector<Share> shares_;
  std::vector<int> held_;
  int common_ = 0;       // seats that are lendable, of all levels
  int common_held_ = 0;  // part of `common_` that is held
  int all_ = 0;          // nominal seats of all levels
  int all_held_ = 0;
};

}  // namespace spillway::flow
