// Structured log: a constant lower-case event and key=value fields, as logfmt or JSON. The sink is injected.
// Thread: any, if the sink is. No secrets, no pod env, no whole objects above debug.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace spillway::telemetry {

enum class Level { kDebug, kInfo, kWarning, kError };

/// key in snake_case with its unit: {"above_request_bytes", 734003200}.
struct Field {
  std::string_view key;
  std::string value;
  bool bare = false;  // a finite number or a truth value: JSON shows it without quotes

  Field(std::string_view name, std::string text) : key(name), value(std::move(text)) {}

  Field(std::string_view name, std::string_view text) : key(name), value(text) {}

  Field(std::string_view name, const char* text) : key(name), value(text) {}

  template <typename Number>
    requires std::is_arithmetic_v<Number>
  Field(std::string_view name, Number number)
      : key(name), value(fmt::format("{}", number)), bare(!std::is_same_v<Number, char> && number - number == 0) {}
};

class Log {
 public:
  using Sink = std::function<void(Level, std::string_view event, std::span<const Field>)>;

  /// Without a sink everything is dropped.
  Log() = default;

  explicit Log(Sink sink, Level threshold = Level::kInfo) : sink_(std::move(sink)), threshold_(threshold) {}

  bool enabled(Level level) const { return sink_ && level >= threshold_; }

  void debug(std::string_view event, std::initializer_list<Field> fields = {}) const {
    write(Level::kDebug, event, fields);
  }

  void info(std::string_view event, std::initializer_list<Field> fields = {}) const {
    write(Level::kInfo, event, fields);
  }

  void warning(std::string_view event, std::initializer_list<Field> fields = {}) const {
    write(Level::kWarning, event, fields);
  }

  void error(std::string_view event, std::initializer_list<Field> fields = {}) const {
    write(Level::kError, event, fields);
  }

 private:
  void write(Level level, std::string_view event, std::initializer_list<Field> fields) const {
    if (enabled(level)) sink_(level, event, std::span(fields.begin(), fields.size()));
  }

  Sink sink_;
  Level threshold_ = Level::kInfo;
};

enum class LogFormat { kLogfmt, kJson };

/// A log that writes lines to standard error through spdlog (telemetry/log.cc, the only user of it).
Log make_stderr_log(Level threshold, LogFormat format);

}  // namespace spillway::telemetry
