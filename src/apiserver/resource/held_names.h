// Unique names, such as the address of a service, that writes under way have chosen; and those that another server was
// lately found to hold. Thread: loop. Bounds: the names of the writes under way, and kForeignMax others.
#pragma once

#include "base/time.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class HeldNames {
 public:
  static constexpr Duration kForeignLife = seconds(5);  // then its owner is read again
  static constexpr std::size_t kForeignMax = 10'000;

  void hold(const std::string& name) { held_.insert(name); }

  void release(const std::string& name) {
    if (const auto found = held_.find(name); found != held_.end()) held_.erase(found);
  }

  void record_foreign(const std::string& name, Instant now) {
    std::erase_if(foreign_, [now](const auto& each) { return each.second <= now; });
    if (foreign_.size() < kForeignMax) foreign_.insert_or_assign(name, now + kForeignLife);
  }

  bool is_held(std::string_view name, Instant now) const {
    if (held_.contains(name)) return true;
    const auto foreign = foreign_.find(name);
    return foreign != foreign_.end() && now < foreign->second;
  }

 private:
  std::multiset<std::string, std::less<>> held_;
  std::map<std::string, Instant, std::less<>> foreign_;  // until when
};

}  // namespace spillway::apiserver
