// Time zones by their names in the IANA database of the machine. Only this file reads it: a name is looked up once per
// process, and a zone that was read does not change. Thread: any.
// Source: RFC 8536; IANA time zone database.
#pragma once

#include "base/time.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

namespace spillway::api {

class TimeZone {
 public:
  /// UTC.
  TimeZone();

  /// "Europe/Berlin". nullopt: there is no such zone; names that lead out of the database are none.
  static std::optional<TimeZone> find(std::string_view name);

  /// The difference between local time and UTC at that time; positive east of Greenwich.
  std::chrono::seconds offset_at(WallTime time) const;

 private:
  struct Rules;

  explicit TimeZone(std::shared_ptr<const Rules> rules) : rules_(std::move(rules)) {}

  std::shared_ptr<const Rules> rules_;
};

/// "2026-03-29T04:30:00+02:00".
std::string format_time_in(WallTime time, const TimeZone& zone);

}  // namespace spillway::api
