// A map that drops entries: those that were not used for a while, and when it is full the one not used for longest.
// Thread: any (plain values). Bound: `size_max` entries.
#pragma once

#include "base/time.h"

#include <cstddef>
#include <list>
#include <map>
#include <utility>

namespace spillway::client {

template <typename Key, typename Value>
class RecentMap {
 public:
  /// `kept`: the time for which an unused entry stays.
  RecentMap(std::size_t size_max, Duration kept) : size_max_(size_max), kept_(kept) {}

  /// The entry of this key, marked as used; `fresh`, if there was none.
  template <typename Fresh>
  Value& use(const Key& key, Instant now, const Fresh& fresh) {
    while (!by_use_.empty() && now - by_use_.front().used > kept_) drop_oldest();
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      by_use_.splice(by_use_.end(), by_use_, found->second);
      found->second->used = now;
      return found->second->value;
    }
    if (by_use_.size() >= size_max_) drop_oldest();
    const auto [at, added] = entries_.emplace(key, by_use_.end());
    at->second = by_use_.insert(by_use_.end(), Entry{fresh(), now, at});
    return at->second->value;
  }

  std::size_t size() const { return by_use_.size(); }

 private:
  struct Entry;
  using Entries = std::map<Key, typename std::list<Entry>::iterator>;

  struct Entry {
    Value value;
    Instant used;
    typename Entries::iterator at;
  };

  void drop_oldest() {
    entries_.erase(by_use_.front().at);
    by_use_.pop_front();
  }

  std::size_t size_max_;
  Duration kept_;
  std::list<Entry> by_use_;  // least recently first
  Entries entries_;
};

}  // namespace spillway::client
