#include "host/logs/log_query.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::int64_t kAgeMax = 100LL * 365 * 24 * 3600;  // seconds
constexpr std::size_t kQueryLineBytesMax = 65'536;

/// The value of a boolean query parameter: present means true, unless it is 0 or false.
bool parse_flag(const api::Target& target, std::string_view name) {
  const std::string* text = target.find(name);
  if (text == nullptr) return false;
  std::string lower = *text;
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return lower != "0" && lower != "false";
}

Result<std::optional<std::int64_t>> parse_count(const api::Target& target, std::string_view name, std::int64_t least) {
  const std::string* text = target.find(name);
  if (text == nullptr || text->empty()) return std::optional<std::int64_t>();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < least)
    return make_error(ErrorCode::kBadRequest, "{}: expected a number of at least {}, got \"{}\"", name, least, *text);
  return std::optional(value);
}

}  // namespace

Result<LogQuery> parse_log_query(const api::Target& target, WallTime now) {
  LogQuery query;
  query.follow = parse_flag(target, "follow");
  query.previous = parse_flag(target, "previous");
  query.timestamps = parse_flag(target, "timestamps");
  SPILLWAY_TRY(tail, parse_count(target, "tailLines", 0));
  SPILLWAY_TRY(limit, parse_count(target, "limitBytes", 1));
  SPILLWAY_TRY(age, parse_count(target, "sinceSeconds", 1));
  query.tail_lines = tail;
  query.limit_bytes = limit;
  if (age) query.since = now - seconds(std::min(*age, kAgeMax)).count() * std::chrono::microseconds(1'000'000);
  const std::string* since_time = target.find("sinceTime");
  if (since_time == nullptr || since_time->empty()) return query;
  if (age)
    return make_error(ErrorCode::kBadRequest, "sinceTime: at most one of sinceTime or sinceSeconds may be given");
  const Result<WallTime> time = api::parse_time(*since_time);
  if (!time) return make_error(ErrorCode::kBadRequest, "sinceTime: {}", time.error().message);
  query.since = *time;
  return query;
}

std::string_view tail_of(std::string_view text, std::int64_t lines) {
  if (lines <= 0) return {};
  std::size_t at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  for (std::int64_t found = 0; at > 0; --at) {
    if (text[at - 1] != '\n') continue;
    if (++found == lines) return text.substr(at);
  }
  return text;
}

void LogPrinter::add(std::string_view text, std::string& out) {
  while (!text.empty() && !is_full()) {
    const std::size_t end = text.find('\n');
    const std::string_view piece = text.substr(0, end);
    if (end == std::string_view::npos) {
      if (pending_.size() + piece.size() <= kQueryLineBytesMax) pending_ += piece;
      return;
    }
    text.remove_prefix(end + 1);
    if (pending_.empty()) {
      print(piece, "\n", out);
    } else {
      pending_ += piece;
      print(pending_, "\n", out);
      pending_.clear();
    }
  }
}

void LogPrinter::finish(std::string& out) {
  const bool wanted = query_.tail_lines != 0;  // tail of no lines: not even the last one
  if (wanted && !pending_.empty() && !is_full()) print(pending_, {}, out);
  pending_.clear();
}

void LogPrinter::print(std::string_view line, std::string_view end, std::string& out) {
  const std::optional<LogRecord> record = parse_log_record(line);
  if (!std::exchange(begun_, true) && !record)
    problem_ =
        make_error(ErrorCode::kInternalError, "failed to get parse function: unsupported log format: \"{}\\n\"", line);
  if (!record || problem_) return;
  if (query_.since) {
    const Result<WallTime> at = api::parse_time(record->time);
    if (!at || *at < *query_.since) return;
  }
  if (query_.timestamps && !line_open_) {
    append(record->time, out);
    append(" ", out);
  }
  append(record->text, out);
  if (!record->partial) append(end, out);
  line_open_ = record->partial;
}

void LogPrinter::append(std::string_view text, std::string& out) {
  if (query_.limit_bytes)
    text = text.substr(0, static_cast<std::size_t>(std::max<std::int64_t>(0, *query_.limit_bytes - printed_)));
  out += text;
  printed_ += static_cast<std::int64_t>(text.size());
}

}  // namespace spillway::host
