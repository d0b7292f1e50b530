// The requested part of a container's log, and the text that kubectl logs prints for its records. Pure: no I/O. Thread:
// any. Source: Kubernetes API reference, PodLogOptions; spec "Node agent", 12.3 (containerLogs).
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "base/time.h"
#include "host/logs/container_log.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

struct LogQuery {
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<std::int64_t> tail_lines;
  std::optional<std::int64_t> limit_bytes;
  std::optional<WallTime> since;

  friend bool operator==(const LogQuery&, const LogQuery&) = default;
};

/// Parses follow, previous, timestamps, tailLines, limitBytes, sinceSeconds, sinceTime; others are ignored. kBadRequest
/// names the parameter.
Result<LogQuery> parse_log_query(const api::Target& target, WallTime now);

/// The last `lines` lines of `text`, all of them if there are fewer.
std::string_view tail_of(std::string_view text, std::int64_t lines);

/// Turns log files, piece by piece, into what is printed: time stamps if wanted, pieces of a line joined, what is older
/// left out, at most limit_bytes.
class LogPrinter {
 public:
  explicit LogPrinter(const LogQuery& query) : query_(query) {}

  /// Appends to `out`. A piece that ends within a line is kept for the next one. Later
  /// lines that are no records are left out.
  void add(std::string_view text, std::string& out);

  /// Ends the text: the kept part is the last line, without its newline.
  void finish(std::string& out);

  /// The first line was no record: this is no log, and nothing is printed.
  const std::optional<Error>& problem() const { return problem_; }

  /// limit_bytes have been printed: nothing more follows.
  bool is_full() const { return query_.limit_bytes && printed_ >= *query_.limit_bytes; }

 private:
  void print(std::string_view line, std::string_view end, std::string& out);
  void append(std::string_view text, std::string& out);

  LogQuery query_;
  std::string pending_;
  bool line_open_ = false;
  bool begun_ = false;  // a line has been seen
  std::optional<Error> problem_;
  std::int64_t printed_ = 0;
};

}  // namespace spillway::host
