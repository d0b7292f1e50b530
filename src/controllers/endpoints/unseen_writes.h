// Writes of a controller that its cache does not show yet, by the object that they were made for: a sync from the
// present cache would repeat them. Thread: loop. Bounds: one entry per object written, until it is seen, for ten
// seconds at most: a broken watch delays no sync for longer.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::controllers {

class UnseenWrites {
 public:
  /// The resourceVersion of the object of that name in the cache; nullopt: there is none.
  using Shown = std::function<std::optional<std::string>(const std::string& name)>;

  void wrote(const std::string& of, const std::string& name, std::string_view resource_version, Instant now);
  void removed(const std::string& of, const std::string& name, std::string_view resource_version, Instant now);
  /// The time until which to wait; nullopt: the cache shows all writes, or the wait is over.
  std::optional<Instant> waits(const std::string& of, const Shown& shown, Instant now);

  void forget(const std::string& of) { by_owner_.erase(of); }

 private:
  struct Write {
    std::uint64_t version = 0;  // the resourceVersion as a number, which grows with every write
    bool removed = false;
    Instant at;
  };

  static bool is_seen(const Write& write, const std::optional<std::string>& shown);

  std::map<std::string, std::map<std::string, Write>> by_owner_;
};

}  // namespace spillway::controllers
