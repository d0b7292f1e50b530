#include "api/text/time_zone.h"

#include "api/text/time_text.h"

#include <absl/time/time.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace spillway::api {

struct TimeZone::Rules {
  absl::TimeZone zone;
};

namespace {

constexpr std::size_t kZoneNameMax = 255;

bool may_be_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._+-/").find(c) != std::string_view::npos;
  };
  const bool one_spelling = name.find("//") == std::string_view::npos && name.find("./") == std::string_view::npos;
  return !name.empty() && name.size() <= kZoneNameMax && name.front() != '/' &&
         name.find("..") == std::string_view::npos && one_spelling && std::ranges::all_of(name, fits);
}

/// absl caches every name that it looks up, also unknown ones: it is only called with names of files.
bool is_in_database(std::string_view name) {
  std::error_code failed;
  return std::filesystem::is_regular_file(std::filesystem::path("/usr/share/zoneinfo") / name, failed);
}

}  // namespace

TimeZone::TimeZone() : rules_(std::make_shared<const Rules>(Rules{absl::UTCTimeZone()})) {}

std::optional<TimeZone> TimeZone::find(std::string_view name) {
  if (name == "UTC") return TimeZone();
  Rules rules;
  if (!may_be_name(name) || !is_in_database(name) || !absl::LoadTimeZone(std::string(name), &rules.zone)) {
    return std::nullopt;
  }
  return TimeZone(std::make_shared<const Rules>(rules));
}

std::chrono::seconds TimeZone::offset_at(WallTime time) const {
  const auto since_epoch = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch());
  return std::chrono::seconds(rules_->zone.At(absl::FromUnixSeconds(since_epoch.count())).offset);
}

std::string format_time_in(WallTime time, const TimeZone& zone) {
  const std::chrono::seconds offset = zone.offset_at(time);
  std::string text = format_time(time + offset);
  if (offset == std::chrono::seconds::zero()) return text;
  text.pop_back();  // the Z
  const auto minutes_off = std::chrono::abs(std::chrono::duration_cast<std::chrono::minutes>(offset)).count();
  return fmt::format("{}{}{:02}:{:02}", text, offset.count() < 0 ? '-' : '+', minutes_off / 60, minutes_off % 60);
}

}  // namespace spillway::api
