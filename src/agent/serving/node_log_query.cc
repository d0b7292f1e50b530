#include "agent/serving/node_log_query.h"

#include "api/text/time_text.h"
#include "policy/cel/pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::size_t kServicesMax = 4;
constexpr std::size_t kServiceNameMax = 256;
constexpr std::int64_t kTailLinesMax = 100'000;

/// The text with quotes, as Go's %q prints it.
std::string quoted(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made + '"';
}

std::string quoted_list(const std::vector<std::string>& list) {
  std::vector<std::string> each;
  for (const std::string& text : list) each.push_back(quoted(text));
  return fmt::format("[]string{{{}}}", fmt::join(each, ", "));
}

std::string invalid_value(std::string_view field, std::string_view value, std::string_view why) {
  return fmt::format("{}: Invalid value: {}: {}", field, value, why);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

/// A character of the name of a unit.
bool is_service_character(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '@' || c == ':' || c == '.';
}

class LogQueryParser {
 public:
  explicit LogQueryParser(const api::Target& target) : target_(target) {}

  ParsedNodeLogQuery run() {
    take_names();
    query_.since = time("sinceTime");
    query_.until = time("untilTime");
    query_.boot = number("boot");
    query_.tail_lines = number("tailLines");
    query_.pattern = text("pattern");
    const bool asks = !query_.services.empty() || !query_.files.empty() || query_.has_options();
    return {.query = asks && errors_.empty() ? std::optional(std::move(query_)) : std::nullopt,
            .errors = std::move(errors_)};
  }

 private:
  void take_names() {
    std::vector<std::string> given;
    for (const auto& [name, value] : target_.query) {
      if (name != "query") continue;
      given.push_back(value);
      if (value.find_first_of("/\\") != std::string::npos) {
        query_.files.push_back(value);
      } else if (!is_blank(value)) {
        query_.services.push_back(value);
      }
    }
    if (!given.empty() && query_.files.empty() && query_.services.empty())
      errors_.push_back(invalid_value("query", quoted_list(given), "query cannot be empty"));
  }

  std::string text(std::string_view name) const {
    const std::string* value = target_.find(name);
    return value == nullptr ? std::string() : *value;
  }

  std::optional<LogQueryTime> time(std::string_view name) {
    std::string given = text(name);
    if (given.empty()) return std::nullopt;
    if (const auto at = api::parse_time(given)) return LogQueryTime{*at, std::move(given)};
    errors_.push_back(invalid_value(name, quoted(given), "invalid time format"));
    return std::nullopt;
  }

  std::optional<std::int64_t> number(std::string_view name) {
    const std::string given = text(name);
    if (given.empty()) return std::nullopt;
    const std::string_view digits =
        given.starts_with('+') ? std::string_view(given).substr(1) : std::string_view(given);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc{} && end == digits.data() + digits.size()) return value;
    const std::string_view why = error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax";
    errors_.push_back(
        invalid_value(name, quoted(given), fmt::format("strconv.Atoi: parsing {}: {}", quoted(given), why)));
    return std::nullopt;
  }

  const api::Target& target_;
  NodeLogQuery query_;
  std::vector<std::string> errors_;
};

/// "2023-01-01 00:00:00 +0000 UTC".
std::string shown_time(const LogQueryTime& time) {
  const std::string& written = time.written;
  std::string made = fmt::format("{} {}", written.substr(0, 10), written.substr(11, 8));
  if (written.ends_with('Z') || written.ends_with('z')) return made + " +0000 UTC";
  std::string zone = written.substr(written.size() - 6);
  zone.erase(3, 1);
  return fmt::format("{} {} {}", made, zone, zone);
}

/// "2024-5-1 12:0:0": the time as it was written, in whatever zone. Source: vectors.
std::string journal_time(const LogQueryTime& time) {
  const auto number = [&](std::size_t at, std::size_t count) {
    int value = 0;
    std::from_chars(time.written.data() + at, time.written.data() + at + count, value);
    return value;
  };
  return fmt::format("{}-{}-{} {:02}:{}:{}", number(0, 4), number(5, 2), number(8, 2), number(11, 2), number(14, 2),
                     number(17, 2));
}

void check_services(const NodeLogQuery& query, std::vector<std::string>& errors) {
  for (const std::string& each : query.services) {
    if (each.size() > kServiceNameMax) {
      errors.push_back(invalid_value("query", quoted(each), "length must be less than 100"));
    } else if (!std::ranges::all_of(each, is_service_character)) {
      errors.push_back(invalid_value("query", quoted(each), "input contains unsupported characters"));
    }
  }
  if (query.services.size() > kServicesMax)
    errors.push_back(
        fmt::format("query: Too many: {}: must have at most {} items", query.services.size(), kServicesMax));
}

}  // namespace

bool NodeLogQuery::has_options() const {
  return since || until || boot || tail_lines || !pattern.empty();
}

ParsedNodeLogQuery parse_node_log_query(const api::Target& target) {
  return LogQueryParser(target).run();
}

std::vector<std::string> node_log_query_errors(
    const NodeLogQuery& query, const std::function<std::optional<std::string>(const std::string& file)>& missing_file) {
  std::vector<std::string> errors;
  check_services(query, errors);
  const auto wrong_files = [&](std::string_view why) {
    errors.push_back(invalid_value("query", quoted_list(query.files), why));
  };
  if (query.files.empty() && query.services.empty()) {
    errors.emplace_back("query: Required value: cannot be empty with options");
  } else if (!query.files.empty() && !query.services.empty()) {
    errors.push_back(invalid_value(
        "query", quoted(fmt::format("[{}], [{}]", fmt::join(query.files, " "), fmt::join(query.services, " "))),
        "cannot specify a file and service"));
  } else if (query.files.size() > 1) {
    wrong_files("cannot specify more than one file");
  } else if (query.files.size() == 1 && query.has_options()) {
    wrong_files("cannot specify file with options");
  } else if (query.files.size() == 1) {
    if (const auto missing = missing_file(query.files.front())) wrong_files(*missing);
  }
  if (query.since && query.until && query.since->at > query.until->at)
    errors.push_back(invalid_value("untilTime", shown_time(*query.until), "must be after `sinceTime`"));
  if (query.boot && *query.boot > 0)
    errors.push_back(invalid_value("boot", fmt::format("{}", *query.boot), "must be less than 1"));
  if (query.tail_lines && (*query.tail_lines < 0 || *query.tail_lines > kTailLinesMax)) {
    errors.push_back(invalid_value("tailLines", fmt::format("{}", *query.tail_lines),
                                   fmt::format("must be between 0 and {}, inclusive", kTailLinesMax)));
  }
  if (const auto pattern = cel::Pattern::compile(query.pattern); !pattern)
    errors.push_back(invalid_value("pattern", quoted(query.pattern), pattern.error().message));
  return errors;
}

std::vector<std::string> journal_command(const NodeLogQuery& query, const std::string& service) {
  std::vector<std::string> words{"journalctl", "--utc", "--no-pager", "--output=short-precise"};
  if (query.since) words.push_back("--since=" + journal_time(*query.since));
  if (query.until) words.push_back("--until=" + journal_time(*query.until));
  if (query.tail_lines) {
    words.emplace_back("--pager-end");
    words.push_back(fmt::format("--lines={}", *query.tail_lines));
  }
  words.push_back("--unit=" + service);
  if (!query.pattern.empty()) words.push_back("--grep=" + query.pattern);
  if (query.boot) {
    words.emplace_back("--boot");
    words.push_back(fmt::format("{}", *query.boot));
  }
  return words;
}

}  // namespace spillway::agent
