#include "telemetry/log_line.h"

#include "base/json_string.h"

#include <algorithm>

namespace spillway::telemetry {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

bool needs_quotes(std::string_view text) {
  return text.empty() || std::ranges::any_of(text, [](char c) {
           return c == ' ' || c == '=' || c == '"' || c == '\\' || is_control(c);
         });
}

void append_logfmt_value(std::string& out, std::string_view text) {
  if (needs_quotes(text)) {
    append_json_string(text, out);
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
      append_json_string(field.value, out);
    }
  }
  return out;
}

}  // namespace spillway::telemetry
