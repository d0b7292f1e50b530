// A bounded number of answers with an expiry: when the cache is full, the answer that would expire first is dropped.
// Thread: loop.
#pragma once

#include "base/time.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace spillway::agent {

template <typename Value>
class ExpiringCache {
 public:
  explicit ExpiringCache(std::size_t entries_max) : entries_max_(entries_max) {}

  /// nullptr: absent or expired. Valid until the next put().
  const Value* find(const std::string& key, Instant now) const {
    const auto entry = entries_.find(key);
    return entry == entries_.end() || entry->second.expires <= now ? nullptr : &entry->second.value;
  }

  void put(const std::string& key, Value value, Instant expires) {
    if (const auto old = entries_.find(key); old != entries_.end()) {
      order_.erase({old->second.expires, key});
      entries_.erase(old);
    }
    while (entries_.size() >= entries_max_) {
      entries_.erase(order_.begin()->second);
      order_.erase(order_.begin());
    }
    order_.emplace(expires, key);
    entries_.emplace(key, Entry{std::move(value), expires});
  }

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Value value;
    Instant expires;
  };

  std::size_t entries_max_;
  std::map<std::string, Entry> entries_;
  std::set<std::pair<Instant, std::string>> order_;  // keys of entries_, by the time of expiry
};

}  // namespace spillway::agent
