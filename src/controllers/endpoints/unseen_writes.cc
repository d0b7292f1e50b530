#include "controllers/endpoints/unseen_writes.h"

#include "base/number.h"

#include <algorithm>
#include <cstdint>

namespace spillway::controllers {

namespace {

/// A write that the cache does not show after this time is not waited for any more. A cache shows a write within
/// moments; ten seconds later its watch is broken, and it lists anew. Waiting for ever would stop the syncs.
constexpr Duration kWaitedForMax = seconds(10);

}  // namespace

void UnseenWrites::wrote(const std::string& of, const std::string& name, std::string_view resource_version,
                         Instant now) {
  if (const auto version = parse_whole<std::uint64_t>(resource_version)) by_owner_[of][name] = {*version, false, now};
}

void UnseenWrites::removed(const std::string& of, const std::string& name, std::string_view resource_version,
                           Instant now) {
  if (const auto version = parse_whole<std::uint64_t>(resource_version)) by_owner_[of][name] = {*version, true, now};
}

bool UnseenWrites::is_seen(const Write& write, const std::optional<std::string>& shown) {
  if (write.removed && !shown) return true;
  const auto version = shown ? parse_whole<std::uint64_t>(*shown) : std::nullopt;
  if (!version) return false;
  return write.removed ? *version > write.version : *version >= write.version;
}

std::optional<Instant> UnseenWrites::waits(const std::string& of, const Shown& shown, Instant now) {
  const auto found = by_owner_.find(of);
  if (found == by_owner_.end()) return std::nullopt;
  std::erase_if(found->second, [&](const auto& each) {
    return now >= each.second.at + kWaitedForMax || is_seen(each.second, shown(each.first));
  });
  if (found->second.empty()) {
    by_owner_.erase(found);
    return std::nullopt;
  }
  const auto first = std::ranges::min_element(found->second, {}, [](const auto& each) { return each.second.at; });
  return first->second.at + kWaitedForMax;
}

}  // namespace spillway::controllers
