#include "policy/workloads/cron_schedule.h"

#include "api/text/duration.h"
#include "base/ascii.h"
#include "base/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::workloads {

namespace {

struct Bounds {
  int first = 0;
  int last = 0;
  std::span<const std::string_view> names;  // names of `first` and the values after it
};

constexpr std::array<std::string_view, 12> kMonthNames{"jan", "feb", "mar", "apr", "may", "jun",
                                                       "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdayNames{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

constexpr Bounds kMinutes{0, 59, {}};
constexpr Bounds kHours{0, 23, {}};
constexpr Bounds kDays{1, 31, {}};
constexpr Bounds kMonths{1, 12, kMonthNames};
constexpr Bounds kWeekdays{0, 6, kWeekdayNames};

constexpr int kYearsAhead = 5;

Error cron_error(std::string message) {
  return make_error(ErrorCode::kInvalid, "{}", message);
}

Result<int> number_of(std::string_view text) {
  int value = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (ec != std::errc{} || end != digits.data() + digits.size()) {
    return cron_error(
        fmt::format("failed to parse int from {}: strconv.Atoi: parsing \"{}\": invalid syntax", text, text));
  }
  if (value < 0) return cron_error(fmt::format("negative number ({}) not allowed: {}", value, text));
  return value;
}

Result<int> value_in(std::string_view text, const Bounds& bounds) {
  const auto named = std::ranges::find(bounds.names, lower_case(text));
  if (named != bounds.names.end()) return bounds.first + static_cast<int>(named - bounds.names.begin());
  return number_of(text);
}

}  // namespace

class Parser {
 public:
  using Field = CronSchedule::Field;

  static Result<CronSchedule> fields(std::string_view text) {
    const std::vector<std::string_view> words = words_in(text, kWhiteSpace);
    if (words.size() != 5) {
      return cron_error(fmt::format("expected exactly 5 fields, found {}: [{}]", words.size(), fmt::join(words, " ")));
    }
    CronSchedule schedule;
    const std::array<std::pair<Field*, const Bounds*>, 5> order{
        std::pair(&schedule.minute_, &kMinutes), std::pair(&schedule.hour_, &kHours), std::pair(&schedule.day_, &kDays),
        std::pair(&schedule.month_, &kMonths), std::pair(&schedule.weekday_, &kWeekdays)};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto parsed = field(words[i], *order[i].second);
      if (!parsed) return parsed.error();
      *order[i].first = *parsed;
    }
    return schedule;
  }

  static Result<CronSchedule> descriptor(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNamed{
        std::pair("@yearly", "0 0 1 1 *"), std::pair("@annually", "0 0 1 1 *"), std::pair("@monthly", "0 0 1 * *"),
        std::pair("@weekly", "0 0 * * 0"), std::pair("@daily", "0 0 * * *"),    std::pair("@midnight", "0 0 * * *"),
        std::pair("@hourly", "0 * * * *")};
    for (const auto& [name, meaning] : kNamed) {
      if (text == name) return fields(meaning);
    }
    constexpr std::string_view kEvery = "@every ";
    if (!text.starts_with(kEvery)) return cron_error(fmt::format("unrecognized descriptor: {}", text));
    const auto every = api::parse_duration(text.substr(kEvery.size()));
    if (!every) {
      return cron_error(
          fmt::format("failed to parse duration {}: time: invalid duration \"{}\"", text, text.substr(kEvery.size())));
    }
    CronSchedule schedule;
    schedule.every_ = std::max<Duration>(*every - *every % seconds(1), seconds(1));
    return schedule;
  }

 private:
  static Result<Field> field(std::string_view text, const Bounds& bounds) {
    Field out;
    for (const std::string_view part : split_at(text, ',')) {
      if (part.empty()) continue;
      const auto range = range_of(part, bounds);
      if (!range) return range.error();
      out.bits |= range->bits;
      out.any = out.any || range->any;
    }
    return out;
  }

  /// "5", "1-5", "*/2", "3/5", "MON-FRI".
  static Result<Field> range_of(std::string_view text, const Bounds& bounds) {
    const std::vector<std::string_view> steps = split_at(text, '/');
    const std::vector<std::string_view> ends = split_at(steps[0], '-');
    int first = bounds.first;
    int last = bounds.last;
    const bool star = ends[0] == "*" || ends[0] == "?";
    if (!star) {
      if (ends.size() > 2) return cron_error(fmt::format("too many hyphens: {}", text));
      const auto from = value_in(ends[0], bounds);
      if (!from) return from.error();
      first = last = *from;
      if (ends.size() == 2) {
        const auto to = value_in(ends[1], bounds);
        if (!to) return to.error();
        last = *to;
      }
    }
    int step = 1;
    if (steps.size() > 2) return cron_error(fmt::format("too many slashes: {}", text));
    if (steps.size() == 2) {
      const auto given = number_of(steps[1]);
      if (!given) return given.error();
      step = *given;
      if (ends.size() == 1) last = bounds.last;
    }
    if (first < bounds.first) {
      return cron_error(fmt::format("beginning of range ({}) below minimum ({}): {}", first, bounds.first, text));
    }
    if (last > bounds.last) {
      return cron_error(fmt::format("end of range ({}) above maximum ({}): {}", last, bounds.last, text));
    }
    if (first > last) {
      return cron_error(fmt::format("beginning of range ({}) beyond end of range ({}): {}", first, last, text));
    }
    if (step == 0) return cron_error(fmt::format("step of range should be a positive number: {}", text));
    Field out;
    for (std::int64_t value = first; value <= last; value += step) out.bits |= std::uint64_t{1} << value;
    out.any = star && step == 1;
    return out;
  }
};

/// Steps from a time to the next one that matches, in local time, by the same steps as upstream's library: the effect
/// of a change of the clocks depends on them.
class CronSchedule::Walk {
 public:
  Walk(const CronSchedule& schedule, WallTime after)
      : s_(schedule), at_(std::chrono::floor<std::chrono::seconds>(after) + seconds(1)) {
    read_clock();
  }

  std::optional<WallTime> run() {
    const int year_max = static_cast<int>(date_.year()) + kYearsAhead;
    while (static_cast<int>(date_.year()) <= year_max) {
      if (to_month() && to_day() && to_hour() && to_minute()) return at_;
    }
    return std::nullopt;
  }

 private:
  // Each moves to the first value that matches. False: the unit began anew, and the one above it may not match any
  // more.

  bool to_month() {
    while (!fits(s_.month_, static_cast<unsigned>(date_.month()))) {
      reset([this] { go_to(date_.year() / date_.month() / 1, 0); });
      go_to_date(date_ + std::chrono::months(1));
      if (date_.month() == std::chrono::January) return false;
    }
    return true;
  }

  bool to_day() {
    while (!day_fits()) {
      reset([this] { go_to(date_, 0); });
      go_to_date(std::chrono::sys_days(date_) + std::chrono::days(1));
      if (hour_ != 0) move(hour_ > 12 ? hours(24 - hour_) : -hours(hour_));
      if (static_cast<unsigned>(date_.day()) == 1) return false;
    }
    return true;
  }

  bool to_hour() {
    while (!fits(s_.hour_, hour_)) {
      reset([this] { go_to(date_, hour_); });
      move(hours(1));
      if (hour_ == 0) return false;
    }
    return true;
  }

  bool to_minute() {
    while (!fits(s_.minute_, minute_)) {
      reset([this] { move(-seconds(second_)); });
      move(minutes(1));
      if (minute_ == 0) return false;
    }
    if (second_ == 0) return true;
    moved_ = true;
    move(seconds(60 - second_));  // schedules have no seconds
    return false;
  }

  static bool fits(const Field& field, unsigned value) { return (field.bits >> value & 1U) != 0; }

  bool day_fits() const {
    const bool day = fits(s_.day_, static_cast<unsigned>(date_.day()));
    const bool weekday = fits(s_.weekday_, std::chrono::weekday(std::chrono::sys_days(date_)).c_encoding());
    return s_.day_.any || s_.weekday_.any ? day && weekday : day || weekday;
  }

  /// At the first field that does not match, all smaller fields begin anew.
  template <typename F>
  void reset(F&& begin) {
    if (!std::exchange(moved_, true)) begin();
  }

  void move(std::chrono::seconds by) {
    at_ += by;
    read_clock();
  }

  /// Moves to that date, at the same time of day.
  void go_to_date(std::chrono::sys_days day) {
    go_to_local(day.time_since_epoch() + hours(hour_) + minutes(minute_) + seconds(second_));
  }

  /// A day that the month does not have is one of the next.
  void go_to_date(std::chrono::year_month_day date) {
    go_to_date(std::chrono::sys_days(date.year() / date.month() / 1) +
               std::chrono::days(static_cast<unsigned>(date.day()) - 1));
  }

  void go_to(std::chrono::year_month_day date, unsigned hour) {
    go_to_local(std::chrono::sys_days(date).time_since_epoch() + hours(hour));
  }

  /// Sets the time from a local time. One that does not exist, or exists twice, becomes a time near it.
  void go_to_local(std::chrono::seconds local) {
    const WallTime guess{local};
    std::chrono::seconds offset = s_.zone_.offset_at(guess);
    if (s_.zone_.offset_at(guess - offset) != offset) offset = s_.zone_.offset_at(guess - offset);
    at_ = guess - offset;
    read_clock();
  }

  void read_clock() {
    const auto local = std::chrono::floor<std::chrono::seconds>(at_.time_since_epoch()) + s_.zone_.offset_at(at_);
    const auto day = std::chrono::floor<std::chrono::days>(local);
    date_ = std::chrono::year_month_day(std::chrono::sys_days(day));
    const std::chrono::hh_mm_ss<std::chrono::seconds> time(local - day);
    hour_ = static_cast<unsigned>(time.hours().count());
    minute_ = static_cast<unsigned>(time.minutes().count());
    second_ = static_cast<unsigned>(time.seconds().count());
  }

  const CronSchedule& s_;
  WallTime at_;
  std::chrono::year_month_day date_{};
  unsigned hour_ = 0;
  unsigned minute_ = 0;
  unsigned second_ = 0;
  bool moved_ = false;
};

Result<CronSchedule> CronSchedule::parse(std::string_view text, const api::TimeZone& zone) {
  if (text.empty()) return cron_error("empty spec string");
  api::TimeZone used = zone;
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::size_t name = text.find('=') + 1;
    const std::string_view given = text.substr(name, blank - name);
    const auto found = given.empty() ? api::TimeZone() : api::TimeZone::find(given);
    if (!found) return cron_error(fmt::format("provided bad location {}: unknown time zone {}", given, given));
    used = *found;
    text.remove_prefix(blank);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  auto schedule = text.starts_with('@') ? Parser::descriptor(text) : Parser::fields(text);
  if (schedule) schedule->zone_ = used;
  return schedule;
}

std::optional<WallTime> CronSchedule::next(WallTime after) const {
  if (every_ > Duration::zero()) {
    return std::chrono::floor<std::chrono::seconds>(after) + std::chrono::duration_cast<seconds>(every_);
  }
  return Walk(*this, after).run();
}

}  // namespace spillway::workloads
