#include "dns/answer_cache.h"

#include <algorithm>

namespace spillway::dns {
namespace {

// At least this number of answers is kept, so that a few large ones cannot displace all others.
constexpr std::size_t kLeastAnswers = 100;

}  // namespace

std::optional<AnswerCache::Hit> AnswerCache::find(const CacheKey& key, Instant now) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  const Place entry = found->second;
  if (now >= entry->until) {
    drop(entry);
    return std::nullopt;
  }
  by_use_.splice(by_use_.end(), by_use_, entry);
  const auto age = std::chrono::duration_cast<seconds>(now - entry->since);
  return Hit{entry->answer, static_cast<std::uint32_t>(age.count())};
}

void AnswerCache::put(const CacheKey& key, const ForeignAnswer& answer, Instant now) {
  if (const auto known = entries_.find(key); known != entries_.end()) drop(known->second);
  const std::uint32_t ttl = std::min(answer.ttl_seconds.value_or(0), options_.ttl_max_seconds);
  const std::size_t size = answer.message->size();
  if (ttl == 0 || answer.truncated || size > options_.bytes_max / kLeastAnswers) return;
  while (!by_use_.empty() && (by_use_.size() >= options_.entries_max || bytes_ + size > options_.bytes_max))
    drop(by_use_.begin());
  by_use_.push_back({key, answer, now, now + seconds(ttl)});
  entries_.emplace(key, std::prev(by_use_.end()));
  bytes_ += size;
}

void AnswerCache::drop(Place entry) {
  bytes_ -= entry->answer.message->size();
  entries_.erase(entry->key);
  by_use_.erase(entry);
}

}  // namespace spillway::dns
