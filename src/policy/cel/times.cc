#include "policy/cel/times.h"

#include "api/text/duration.h"
#include "api/text/time_text.h"
#include "policy/cel/functions.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

namespace spillway::cel {

namespace {

constexpr std::size_t kTextMax = 64;
constexpr std::int64_t kFirstSecond = -62135596800;  // 0001-01-01T00:00:00Z
constexpr std::int64_t kLastSecond = 253402300799;   // 9999-12-31T23:59:59Z

Error time_overflow() {
  return evaluation_error("timestamp overflow");
}

Error duration_overflow() {
  return evaluation_error("duration overflow");
}

Result<Value> checked(WallTime time) {
  if (!in_range(time)) return time_overflow();
  return Value(time);
}

Result<Value> same_time(const Call& call) {
  return call[0];
}

Result<Value> time_in(const Call& call) {
  if (call.string(0).size() > kTextMax) return evaluation_error("timestamp overflow");
  const Result<WallTime> time = api::parse_time(call.string(0));
  if (!time) return evaluation_error("type conversion error from 'string' to 'google.protobuf.Timestamp'");
  return checked(*time);
}

Result<Value> time_of_int(const Call& call) {
  const std::int64_t count = call[0].as<std::int64_t>();
  if (count < kFirstSecond || count > kLastSecond) return time_overflow();
  return Value(WallTime(seconds(count)));
}

Result<Value> duration_in(const Call& call) {
  if (call.string(0).size() > kTextMax) return evaluation_error("duration overflow");
  const Result<Duration> duration = api::parse_duration(call.string(0));
  if (!duration) return evaluation_error("type conversion error from 'string' to 'google.protobuf.Duration'");
  return Value(*duration);
}

/// What is below a microsecond is cut.
Result<Value> moved(WallTime time, Duration by) {
  return checked(time + std::chrono::floor<microseconds>(by));
}

Result<Value> time_plus(const Call& call) {
  return moved(call[0].as<WallTime>(), call[1].as<Duration>());
}

Result<Value> plus_time(const Call& call) {
  return moved(call[1].as<WallTime>(), call[0].as<Duration>());
}

Result<Value> time_minus(const Call& call) {
  if (call[1].as<Duration>() == Duration::min()) return time_overflow();
  return moved(call[0].as<WallTime>(), -call[1].as<Duration>());
}

Result<Value> between_times(const Call& call) {
  constexpr std::int64_t kNanoseconds = 1'000;
  const std::int64_t apart = (call[0].as<WallTime>() - call[1].as<WallTime>()).count();
  std::int64_t nanos = 0;
  if (__builtin_mul_overflow(apart, kNanoseconds, &nanos)) return duration_overflow();
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

/// A moment as a date and the time of that day, in UTC.
struct Civil {
  std::chrono::sys_days day;
  std::chrono::year_month_day date;
  std::chrono::hh_mm_ss<microseconds> time;

  explicit Civil(WallTime at)
      : day(std::chrono::floor<std::chrono::days>(std::chrono::sys_time<microseconds>(at.time_since_epoch()))),
        date(day),
        time(std::chrono::sys_time<microseconds>(at.time_since_epoch()) - day) {}
};

template <std::int64_t (*Part)(const Civil&)>
Result<Value> part(const Call& call) {
  return Value(Part(Civil(call[0].as<WallTime>())));
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
  return (civil.day - std::chrono::sys_days(civil.date.year() / std::chrono::January / 1)).count();
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
  return std::chrono::duration_cast<milliseconds>(civil.time.subseconds()).count();
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
    {"getMonth", "timestamp -> int", part<month>, kMember},
    {"getDate", "timestamp -> int", part<date>, kMember},
    {"getDayOfMonth", "timestamp -> int", part<day_of_month>, kMember},
    {"getDayOfWeek", "timestamp -> int", part<day_of_week>, kMember},
    {"getDayOfYear", "timestamp -> int", part<day_of_year>, kMember},
    {"getHours", "timestamp -> int", part<hour>, kMember},
    {"getMinutes", "timestamp -> int", part<minute>, kMember},
    {"getSeconds", "timestamp -> int", part<second>, kMember},
    {"getMilliseconds", "timestamp -> int", part<millisecond>, kMember},
    {"getHours", "duration -> int", whole<hours>, kMember},
    {"getMinutes", "duration -> int", whole<minutes>, kMember},
    {"getSeconds", "duration -> int", whole<seconds>, kMember},
    {"getMilliseconds", "duration -> int", whole<milliseconds>, kMember},
});

/// ".5", ".000001"; nothing where there is no fraction.
std::string fraction_text(std::int64_t nanos) {
  if (nanos == 0) return {};
  std::string text = fmt::format(".{:09}", nanos);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

}  // namespace

bool in_range(WallTime time) {
  const std::int64_t count = std::chrono::floor<seconds>(time.time_since_epoch()).count();
  return count >= kFirstSecond && count <= kLastSecond;
}

std::string time_text(WallTime time) {
  const Civil civil(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", year(civil), month(civil) + 1, date(civil), hour(civil),
                     minute(civil), second(civil), fraction_text(nanoseconds(civil.time.subseconds()).count()));
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
