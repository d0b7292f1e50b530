#include "telemetry/log_line.h"

#include "base/json_string.h"
#include "base/utf8.h"

#include <algorithm>
#include <array>

namespace spillway::telemetry {
namespace {

/// Fields whose value is a clause of its own.
constexpr std::array<std::string_view, 5> kReasonKeys = {"error", "cause", "why", "warning", "problem"};

bool needs_quotes(std::string_view text) {
  return text.empty() || text.find_first_of(" =\"\\\n\t") != std::string_view::npos || printable(text) != text;
}

/// Appends untrusted text, escaped for a log.
void append_string(std::string& out, std::string_view text) {
  const std::size_t from = out.size();
  append_json_string(text, out);
  escape_unprintable(out, from);
}

void append_logfmt_value(std::string& out, std::string_view text) {
  if (needs_quotes(text)) {
    append_string(out, text);
  } else {
    out += text;
  }
}

}  // namespace

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "error";
}

std::string render_logfmt(Level level, std::string_view event, std::span<const Field> fields) {
  std::string out = fmt::format("level={} msg=", level_name(level));
  append_json_string(event, out);
  for (const Field& field : fields) {
    out += ' ';
    out += field.key;
    out += '=';
    append_logfmt_value(out, field.value);
  }
  return out;
}

std::string render_json_members(Level level, std::string_view event, std::span<const Field> fields) {
  std::string out = fmt::format("\"level\":\"{}\",\"msg\":", level_name(level));
  append_json_string(event, out);
  for (const Field& field : fields) {
    out += ',';
    append_json_string(field.key, out);
    out += ':';
    if (field.bare) {
      out += field.value;
    } else {
      append_string(out, field.value);
    }
  }
  return out;
}

std::string render_sentence(Level level, std::string_view event, std::span<const Field> fields) {
  std::string details;
  std::string reasons;
  for (const Field& field : fields) {
    std::string value = printable_line(field.value);
    if (std::ranges::find(kReasonKeys, field.key) != kReasonKeys.end()) {
      reasons += ": " + value;
      continue;
    }
    std::string key(field.key);
    std::ranges::replace(key, '_', ' ');
    details += fmt::format("{}{} {}", details.empty() ? "" : ", ", key, value);
  }
  return fmt::format("spillway: {}: {}{}{}", level_name(level), event, details.empty() ? "" : " (" + details + ")",
                     reasons);
}

}  // namespace spillway::telemetry
