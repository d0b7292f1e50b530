#include "policy/containers/env_file.h"

#include "base/ascii.h"

#include <algorithm>

namespace spillway::containers {
namespace {

constexpr std::string_view kSpaces = " \t\r\v\f";

template <typename... Args>
Error malformed(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kInvalid, "invalid environment variable format {}",
                    fmt::format(format, std::forward<Args>(args)...));
}

/// The lines of a file, counted from 1.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  /// The next line; nullopt: there is none.
  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return line;
  }

  int number() const { return number_; }

 private:
  std::string_view rest_;
  int number_ = 0;
};

/// The value whose opening quote precedes `rest`; reads on to the line with the closing one.
Result<std::string> quoted_value(std::string_view rest, Lines& lines) {
  const int begin = lines.number();
  std::string value;
  std::size_t end = rest.find('\'');
  while (end == std::string_view::npos) {
    value += rest;
    const std::optional<std::string_view> more = lines.next();
    if (!more) return malformed("starting at line {}: unclosed single quote", begin);
    value += '\n';
    rest = *more;
    end = rest.find('\'');
  }
  value += rest.substr(0, end);
  const std::string_view behind = trimmed(rest.substr(end + 1), kSpaces);
  if (!behind.empty() && !behind.starts_with('#'))
    return malformed("at line {}: unexpected content after closing quote", lines.number());
  return value;
}

/// The value of one assignment, from behind its "=".
Result<std::string> value_of(std::string_view rest, Lines& lines) {
  if (rest.empty() || kSpaces.find(rest.front()) != std::string_view::npos) return std::string();
  if (rest.front() != '\'') return malformed("at line {}: value must be enclosed in single quotes", lines.number());
  return quoted_value(rest.substr(1), lines);
}

}  // namespace

Result<std::optional<std::string>> env_file_value(std::string_view text, std::string_view variable) {
  Lines lines(text);
  while (const std::optional<std::string_view> line = lines.next()) {
    const std::size_t begin = std::min(line->find_first_not_of(kSpaces), line->size());
    const std::string_view assignment = line->substr(begin);
    if (assignment.empty() || assignment.front() == '#') continue;
    const std::size_t equals = assignment.find('=');
    if (equals == std::string_view::npos) return malformed("at line {}: missing '='", lines.number());
    const std::string_view name = assignment.substr(0, equals);
    if (name.empty()) return malformed("at line {}: empty variable name", lines.number());
    if (kSpaces.find(name.back()) != std::string_view::npos)
      return malformed("at line {}: whitespace before '=' is not allowed", lines.number());
    SPILLWAY_TRY(value, value_of(assignment.substr(equals + 1), lines));
    if (name == variable) return std::optional(std::move(value));
  }
  return std::optional<std::string>();
}

}  // namespace spillway::containers
