// Times and ages as text. Civil dates come from <chrono>'s calendar types: no locale, no time zone data.
#include "api/text/time_text.h"

#include <optional>

namespace spillway::api {
namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;

struct Civil {
  std::chrono::year_month_day date;
  std::chrono::hh_mm_ss<std::chrono::microseconds> time;
};

Civil civil_of(WallTime time) {
  const auto since_epoch = time.time_since_epoch();
  const auto day = std::chrono::floor<std::chrono::days>(since_epoch);
  return {std::chrono::year_month_day(std::chrono::sys_days(day)), std::chrono::hh_mm_ss(since_epoch - day)};
}

/// Appends the last `width` digits of a value that is not negative.
void append_digits(std::int64_t value, std::size_t width, std::string& out) {
  const std::size_t first = out.size();
  out.append(width, '0');
  for (std::size_t at = width; at > 0 && value > 0; --at, value /= 10) {
    out[first + at - 1] = static_cast<char>('0' + value % 10);
  }
}

std::string seconds_text(const Civil& civil) {
  std::string text;
  text.reserve(sizeof("2026-01-02T03:04:05.000000Z"));
  const int year = static_cast<int>(civil.date.year());
  if (year >= 0 && year <= 9999) {
    append_digits(year, 4, text);
  } else {
    text = fmt::format("{:04}", year);
  }
  const auto two = [&text](char before, std::int64_t value) {
    text += before;
    append_digits(value, 2, text);
  };
  two('-', static_cast<unsigned>(civil.date.month()));
  two('-', static_cast<unsigned>(civil.date.day()));
  two('T', civil.time.hours().count());
  two(':', civil.time.minutes().count());
  two(':', civil.time.seconds().count());
  return text;
}

/// Reads RFC 3339 from left to right; every step fails quietly once one has failed.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : rest_(text) {}

  int digits(std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (i >= rest_.size() || rest_[i] < '0' || rest_[i] > '9') {
        good_ = false;
        return 0;
      }
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  void expect(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) {
      good_ = false;
    } else {
      rest_.remove_prefix(1);
    }
  }

  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// Microseconds; further digits are dropped.
  std::int64_t fraction() {
    if (!take('.')) return 0;
    std::int64_t value = 0;
    std::int64_t unit = kMicrosPerSecond / 10;
    std::size_t count = 0;
    for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; rest_.remove_prefix(1), ++count) {
      value += (rest_.front() - '0') * unit;
      unit /= 10;
    }
    if (count == 0) good_ = false;
    return value;
  }

  bool done() const { return good_ && rest_.empty(); }

  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::optional<WallTime> read_time(std::string_view text) {
  TimeReader in(text);
  const int year = in.digits(4);
  in.expect('-');
  const int month = in.digits(2);
  in.expect('-');
  const int day = in.digits(2);
  in.expect('T');
  const int hour = in.digits(2);
  in.expect(':');
  const int minute = in.digits(2);
  in.expect(':');
  const int second = in.digits(2);
  const std::int64_t micros = in.fraction();
  std::chrono::minutes offset{0};
  if (in.good() && !in.take('Z')) {
    const bool west = in.take('-');
    if (!west) in.expect('+');
    const int offset_hours = in.digits(2);
    in.expect(':');
    const int offset_minutes = in.digits(2);
    if (offset_hours > 23 || offset_minutes > 59) return std::nullopt;
    offset = std::chrono::minutes((west ? -1 : 1) * (offset_hours * 60 + offset_minutes));
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!in.done() || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const auto since_epoch = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
                           std::chrono::minutes(minute) + std::chrono::seconds(second) +
                           std::chrono::microseconds(micros) - offset;
  return WallTime(since_epoch);
}

}  // namespace

std::string format_time(WallTime time) {
  return seconds_text(civil_of(time)) + 'Z';
}

std::string format_micro_time(WallTime time) {
  const Civil civil = civil_of(time);
  std::string text = seconds_text(civil);
  text += '.';
  append_digits(civil.time.subseconds().count(), 6, text);
  text += 'Z';
  return text;
}

Result<WallTime> parse_time(std::string_view text) {
  const std::optional<WallTime> time = read_time(text);
  if (!time) return invalid("", "\"{}\" is not an RFC 3339 time such as 2026-01-02T03:04:05Z", text);
  return *time;
}

std::string human_duration(Duration duration) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  constexpr std::int64_t kYear = 365 * kDay;
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  const auto two_units = [seconds](std::int64_t large, char large_name, std::int64_t small, char small_name) {
    const std::int64_t rest = seconds % large / small;
    if (rest == 0) return fmt::format("{}{}", seconds / large, large_name);
    return fmt::format("{}{}{}{}", seconds / large, large_name, rest, small_name);
  };
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * kMinute) return fmt::format("{}s", seconds);
  if (seconds < 10 * kMinute) return two_units(kMinute, 'm', 1, 's');
  if (seconds < 3 * kHour) return fmt::format("{}m", seconds / kMinute);
  if (seconds < 8 * kHour) return two_units(kHour, 'h', kMinute, 'm');
  if (seconds < 2 * kDay) return fmt::format("{}h", seconds / kHour);
  if (seconds < 8 * kDay) return two_units(kDay, 'd', kHour, 'h');
  if (seconds < 2 * kYear) return fmt::format("{}d", seconds / kDay);
  if (seconds < 8 * kYear) return two_units(kYear, 'y', kDay, 'd');
  return fmt::format("{}y", seconds / kYear);
}

}  // namespace spillway::api
