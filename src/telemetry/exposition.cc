#include "telemetry/exposition.h"

#include <fmt/format.h>

#include <iterator>

namespace spillway::telemetry {

namespace {

void append_escaped(std::string_view value, std::string& out) {
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
}

}  // namespace

void Exposition::family(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  head_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type == Type::kCounter ? "counter" : "gauge");
}

void Exposition::sample(const Labels& labels, double value, std::optional<WallTime> at) {
  text_ += head_;
  head_.clear();
  text_ += name_;
  char separator = '{';
  for (const auto& [label, content] : labels) {
    text_ += separator;
    text_ += label;
    text_ += "=\"";
    append_escaped(content, text_);
    text_ += '"';
    separator = ',';
  }
  if (separator == ',') text_ += '}';
  fmt::format_to(std::back_inserter(text_), " {}", value);
  if (at) {
    fmt::format_to(std::back_inserter(text_), " {}",
                   std::chrono::floor<std::chrono::milliseconds>(at->time_since_epoch()).count());
  }
  text_ += '\n';
}

}  // namespace spillway::telemetry
