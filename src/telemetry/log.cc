#include "telemetry/log.h"

#include "telemetry/log_line.h"
#include "telemetry/stderr_log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace spillway::telemetry {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

Log make_stderr_log(Level threshold, LogFormat format) {
  return make_stderr_log(threshold, format, nullptr);
}

Log make_stderr_log(Level threshold, LogFormat format, std::function<bool()> failed) {
  const auto logger = std::make_shared<spdlog::logger>("spillway", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog_level(threshold));
  // The level is part of the line, because spdlog's names for the levels differ from ours.
  const bool json = format == LogFormat::kJson;
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})" : "time=%Y-%m-%dT%H:%M:%S.%eZ %v",
      spdlog::pattern_time_type::utc));
  return Log(
      [logger, json, failed = std::move(failed)](Level level, std::string_view event, std::span<const Field> fields) {
        if (failed && failed() && level < Level::kWarning) return;
        logger->log(spdlog_level(level),
                    json ? render_json_members(level, event, fields) : render_logfmt(level, event, fields));
      },
      threshold);
}

}  // namespace spillway::telemetry
