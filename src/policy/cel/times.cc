#include "policy/cel/times.h"

#include "api/text/duration.h"
#include "api/text/time_zone.h"
#include "base/ascii.h"
#include "policy/cel/functions.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <utility>

namespace spillway::cel {

namespace {

using std::chrono::sys_days;

constexpr std::size_t kTextMax = 64;
constexpr std::int64_t kFirstSecond = -62135596800;  // 0001-01-01T00:00:00Z
constexpr std::int64_t kLastSecond = 253402300799;   // 9999-12-31T23:59:59Z
constexpr std::int64_t kNanoseconds = 1'000'000'000;

Error time_overflow() {
  return evaluation_error("timestamp overflow");
}

Error duration_overflow() {
  return evaluation_error("integer overflow");
}

bool in_range(const Moment& time) {
  return time.seconds >= kFirstSecond && time.seconds <= kLastSecond;
}

Result<Value> same_time(const Call& call) {
  return call[0];
}

Result<Value> time_in(const Call& call) {
  const std::optional<Moment> time = parse_moment(call.string(0));
  if (!time) return evaluation_error("type conversion error from 'string' to 'google.protobuf.Timestamp'");
  return Value(*time);
}

Result<Value> time_of_int(const Call& call) {
  const Moment time{.seconds = call[0].as<std::int64_t>()};
  if (!in_range(time)) return time_overflow();
  return Value(time);
}

Result<Value> duration_in(const Call& call) {
  const auto wrong = [] {
    return evaluation_error("type conversion error from 'string' to 'google.protobuf.Duration'");
  };
  if (call.string(0).size() > kTextMax) return wrong();
  const Result<Duration> duration = api::parse_duration(call.string(0));
  if (!duration) return wrong();
  return Value(*duration);
}

Result<Value> moved(Moment time, std::int64_t by) {
  time.seconds += by / kNanoseconds;
  std::int64_t nanos = time.nanoseconds + by % kNanoseconds;
  if (nanos < 0) {
    nanos += kNanoseconds;
    --time.seconds;
  } else if (nanos >= kNanoseconds) {
    nanos -= kNanoseconds;
    ++time.seconds;
  }
  time.nanoseconds = static_cast<std::int32_t>(nanos);
  if (!in_range(time)) return time_overflow();
  return Value(time);
}

Result<Value> time_plus(const Call& call) {
  return moved(call[0].as<Moment>(), call[1].as<Duration>().count());
}

Result<Value> plus_time(const Call& call) {
  return moved(call[1].as<Moment>(), call[0].as<Duration>().count());
}

Result<Value> time_minus(const Call& call) {
  if (call[1].as<Duration>() == Duration::min()) return duration_overflow();
  return moved(call[0].as<Moment>(), -call[1].as<Duration>().count());
}

Result<Value> between_times(const Call& call) {
  const Moment& a = call[0].as<Moment>();
  const Moment& b = call[1].as<Moment>();
  std::int64_t nanos = 0;
  if (__builtin_mul_overflow(a.seconds - b.seconds, kNanoseconds, &nanos) ||
      __builtin_add_overflow(nanos, std::int64_t{a.nanoseconds} - b.nanoseconds, &nanos)) {
    return duration_overflow();
  }
  return Value(Duration(nanos));
}

Result<Value> add_durations(const Call& call) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(call[0].as<Duration>().count(), call[1].as<Duration>().count(), &sum)) {
    return duration_overflow();
  }
  return Value(Duration(sum));
}

Result<Value> subtract_durations(const Call& call) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(call[0].as<Duration>().count(), call[1].as<Duration>().count(), &difference)) {
    return duration_overflow();
  }
  return Value(Duration(difference));
}

template <typename Unit>
Result<Value> whole(const Call& call) {
  return Value(std::int64_t{std::chrono::duration_cast<Unit>(call[0].as<Duration>()).count()});
}

Result<Value> milliseconds_of(const Call& call) {
  return Value(std::int64_t{std::chrono::duration_cast<milliseconds>(call[0].as<Duration>()).count()});
}

/// A moment as a date and the time of that day, so far east of UTC.
struct Civil {
  sys_days day;
  std::chrono::year_month_day date;
  std::chrono::hh_mm_ss<seconds> time;
  std::int32_t nanoseconds = 0;

  Civil(const Moment& at, std::int64_t offset)
      : day(std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(seconds(at.seconds + offset)))),
        date(day),
        time(std::chrono::sys_seconds(seconds(at.seconds + offset)) - day),
        nanoseconds(at.nanoseconds) {}
};

std::optional<std::int64_t> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr std::int64_t kMost = 1'000'000;
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole && number >= -kMost && number <= kMost ? std::optional(number) : std::nullopt;
}

/// Seconds east of UTC: a name of a zone, or "+05:30".
Result<std::int64_t> offset_of(std::string_view zone, const Moment& at) {
  constexpr std::int64_t kMinute = 60;
  const std::size_t colon = zone.find(':');
  if (colon == std::string_view::npos) {
    if (zone.empty() || zone == "UTC") return std::int64_t{0};
    const std::optional<api::TimeZone> found = api::TimeZone::find(zone);
    if (!found) return evaluation_error(fmt::format("unknown time zone {}", zone));
    return std::int64_t{found->offset_at(WallTime(seconds(at.seconds))).count()};
  }
  const std::optional<std::int64_t> hour = number_in(zone.substr(0, colon));
  const std::optional<std::int64_t> minute = number_in(zone.substr(colon + 1));
  if (!hour || !minute) {
    return evaluation_error(fmt::format("strconv.Atoi: parsing \"{}\": invalid syntax",
                                        hour ? zone.substr(colon + 1) : zone.substr(0, colon)));
  }
  return (*hour * kMinute + (zone.starts_with('-') ? -*minute : *minute)) * kMinute;
}

using Part = std::int64_t (*)(const Civil&);

template <Part kPart>
Result<Value> part(const Call& call) {
  return Value(kPart(Civil(call[0].as<Moment>(), 0)));
}

template <Part kPart>
Result<Value> part_in(const Call& call) {
  const Moment& time = call[0].as<Moment>();
  constexpr std::uint64_t kZoneSearch = 100;
  if (call.string(1).size() > kTextMax) return evaluation_error("unknown time zone");
  if (!call.budget.charge(kZoneSearch)) return over_budget();
  SPILLWAY_TRY(offset, offset_of(call.string(1), time));
  return Value(kPart(Civil(time, offset)));
}

std::int64_t year(const Civil& civil) {
  return int{civil.date.year()};
}

std::int64_t month(const Civil& civil) {
  return std::int64_t{unsigned{civil.date.month()}} - 1;
}

std::int64_t date(const Civil& civil) {
  return unsigned{civil.date.day()};
}

std::int64_t day_of_month(const Civil& civil) {
  return date(civil) - 1;
}

std::int64_t day_of_week(const Civil& civil) {
  return std::chrono::weekday(civil.day).c_encoding();
}

std::int64_t day_of_year(const Civil& civil) {
  return (civil.day - sys_days(civil.date.year() / std::chrono::January / 1)).count();
}

std::int64_t hour(const Civil& civil) {
  return civil.time.hours().count();
}

std::int64_t minute(const Civil& civil) {
  return civil.time.minutes().count();
}

std::int64_t second(const Civil& civil) {
  return civil.time.seconds().count();
}

std::int64_t millisecond(const Civil& civil) {
  constexpr std::int32_t kNanosecondsPerMillisecond = 1'000'000;
  return civil.nanoseconds / kNanosecondsPerMillisecond;
}

constexpr std::array kTimeRows = std::to_array<Definition>({
    {"timestamp", "timestamp -> timestamp", same_time},
    {"timestamp", "string -> timestamp", time_in},
    {"timestamp", "int -> timestamp", time_of_int},
    {"duration", "duration -> duration", same_time},
    {"duration", "string -> duration", duration_in},
    {"_+_", "timestamp, duration -> timestamp", time_plus},
    {"_+_", "duration, timestamp -> timestamp", plus_time},
    {"_+_", "duration, duration -> duration", add_durations},
    {"_-_", "timestamp, duration -> timestamp", time_minus},
    {"_-_", "timestamp, timestamp -> duration", between_times},
    {"_-_", "duration, duration -> duration", subtract_durations},
    {"getFullYear", "timestamp -> int", part<year>, kMember},
    {"getFullYear", "timestamp, string -> int", part_in<year>, kMember},
    {"getMonth", "timestamp -> int", part<month>, kMember},
    {"getMonth", "timestamp, string -> int", part_in<month>, kMember},
    {"getDate", "timestamp -> int", part<date>, kMember},
    {"getDate", "timestamp, string -> int", part_in<date>, kMember},
    {"getDayOfMonth", "timestamp -> int", part<day_of_month>, kMember},
    {"getDayOfMonth", "timestamp, string -> int", part_in<day_of_month>, kMember},
    {"getDayOfWeek", "timestamp -> int", part<day_of_week>, kMember},
    {"getDayOfWeek", "timestamp, string -> int", part_in<day_of_week>, kMember},
    {"getDayOfYear", "timestamp -> int", part<day_of_year>, kMember},
    {"getDayOfYear", "timestamp, string -> int", part_in<day_of_year>, kMember},
    {"getHours", "timestamp -> int", part<hour>, kMember},
    {"getHours", "timestamp, string -> int", part_in<hour>, kMember},
    {"getMinutes", "timestamp -> int", part<minute>, kMember},
    {"getMinutes", "timestamp, string -> int", part_in<minute>, kMember},
    {"getSeconds", "timestamp -> int", part<second>, kMember},
    {"getSeconds", "timestamp, string -> int", part_in<second>, kMember},
    {"getMilliseconds", "timestamp -> int", part<millisecond>, kMember},
    {"getMilliseconds", "timestamp, string -> int", part_in<millisecond>, kMember},
    {"getHours", "duration -> int", whole<hours>, kMember},
    {"getMinutes", "duration -> int", whole<minutes>, kMember},
    {"getSeconds", "duration -> int", whole<seconds>, kMember},
    {"getMilliseconds", "duration -> int", milliseconds_of, kMember},
});

/// The fraction of a second as text: ".5", ".000001"; empty if zero.
std::string fraction_text(std::int64_t nanos) {
  if (nanos == 0) return {};
  std::string text = fmt::format(".{:09}", nanos);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

bool two_digits(std::string_view text, std::size_t at, unsigned& value) {
  if (at + 2 > text.size() || !is_digit(text[at]) || !is_digit(text[at + 1])) return false;
  value = static_cast<unsigned>((text[at] - '0') * 10 + (text[at + 1] - '0'));
  return true;
}

/// "Z", "+02:00": seconds east of UTC.
std::optional<std::int32_t> zone_in(std::string_view text) {
  if (text == "Z") return 0;
  unsigned hours = 0;
  unsigned minutes = 0;
  const bool shaped = text.size() == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':';
  if (!shaped || !two_digits(text, 1, hours) || !two_digits(text, 4, minutes) || hours > 23 || minutes > 59) {
    return std::nullopt;
  }
  const auto east = static_cast<std::int32_t>(hours * 3600 + minutes * 60);
  return text[0] == '-' ? -east : east;
}

/// Parses ".5" to nanoseconds; advances `at` behind it.
std::int32_t fraction_in(std::string_view text, std::size_t& at) {
  std::int32_t nanos = 0;
  std::int32_t unit = 100'000'000;
  for (; at < text.size() && is_digit(text[at]); ++at, unit /= 10) nanos += unit * (text[at] - '0');
  return nanos;
}

}  // namespace

std::optional<Moment> parse_moment(std::string_view text) {
  constexpr std::size_t kSecondsEnd = 19;
  if (text.size() > kTextMax || text.size() <= kSecondsEnd) return std::nullopt;
  unsigned century = 0;
  unsigned years = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  const bool shaped = text[4] == '-' && text[7] == '-' && text[10] == 'T' && text[13] == ':' && text[16] == ':' &&
                      two_digits(text, 0, century) && two_digits(text, 2, years) && two_digits(text, 5, month) &&
                      two_digits(text, 8, day) && two_digits(text, 11, hour) && two_digits(text, 14, minute) &&
                      two_digits(text, 17, second);
  if (!shaped || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(century * 100 + years)),
                                         std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  std::size_t at = kSecondsEnd;
  Moment time;
  if (at + 1 < text.size() && (text[at] == '.' || text[at] == ',') && is_digit(text[at + 1])) {
    time.nanoseconds = fraction_in(text, ++at);
  }
  const std::optional<std::int32_t> zone = zone_in(text.substr(at));
  if (!zone) return std::nullopt;
  time.offset_seconds = *zone;
  time.seconds = seconds(sys_days(date).time_since_epoch()).count() + hour * 3600 + minute * 60 + second - *zone;
  return in_range(time) ? std::optional(time) : std::nullopt;
}

std::string time_text(const Moment& time) {
  const Civil civil(time, time.offset_seconds);
  const std::int32_t offset = time.offset_seconds;
  const std::int32_t minutes = (offset < 0 ? -offset : offset) / 60;
  const std::string zone =
      offset == 0 ? "Z" : fmt::format("{}{:02}:{:02}", offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}{}", year(civil), month(civil) + 1, date(civil), hour(civil),
                     minute(civil), second(civil), fraction_text(civil.nanoseconds), zone);
}

std::string seconds_text(Duration duration) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const bool negative = duration.count() < 0;
  const auto count = static_cast<std::uint64_t>(duration.count());
  const std::uint64_t size = negative ? std::uint64_t{0} - count : count;
  return fmt::format("{}{}{}s", negative ? "-" : "", size / kSecond,
                     fraction_text(static_cast<std::int64_t>(size % kSecond)));
}

std::span<const Definition> times() {
  return kTimeRows;
}

}  // namespace spillway::cel
