// Answers of other servers, until they expire. Thread: loop. Bounds: `entries_max` answers, `bytes_max` bytes of them;
// the least recently used one is dropped first. Cost: one search.
#pragma once

#include "base/time.h"
#include "policy/dns/record.h"

#include "dns/foreign_answer.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

namespace spillway::dns {

/// Questions with equal keys have the same answer.
struct CacheKey {
  std::string name;  // plain (names.h)
  RecordType type = RecordType::kA;
  bool dnssec_ok = false;
  bool checking_disabled = false;

  friend auto operator<=>(const CacheKey&, const CacheKey&) = default;
};

class AnswerCache {
 public:
  struct Options {
    std::size_t entries_max = 10'000;
    std::size_t bytes_max = std::size_t{16} * 1024 * 1024;
    /// Longer times are cut to it. As CoreDNS is commonly deployed.
    std::uint32_t ttl_max_seconds = 30;
  };

  struct Hit {
    ForeignAnswer answer;
    std::uint32_t age_seconds = 0;
  };

  explicit AnswerCache(Options options) : options_(options) {}

  std::optional<Hit> find(const CacheKey& key, Instant now);
  /// Answers that may not be repeated, and those larger than a hundredth of the cache, are not kept.
  void put(const CacheKey& key, const ForeignAnswer& answer, Instant now);

  std::size_t size() const { return by_use_.size(); }

  std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    CacheKey key;
    ForeignAnswer answer;
    Instant since;
    Instant until;
  };

  using Place = std::list<Entry>::iterator;

  void drop(Place entry);

  Options options_;
  std::list<Entry> by_use_;  // least recently first
  std::map<CacheKey, Place> entries_;
  std::size_t bytes_ = 0;
};

}  // namespace spillway::dns
