// Output of containers in CRI log format: "2026-01-02T03:04:05.000006000Z stdout F text", one record per line, P
// instead of F for a piece of a line that did not end yet. Written to bounded, rotated files. Thread: loop. Source:
// Kubernetes design "CRI: Log management for container stdout/stderr streams"; kubelet containerLogMaxSize,
// containerLogMaxFiles.
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

enum class LogStream { kStdout, kStderr };

std::string_view to_string(LogStream stream);

/// One record of a log file.
struct LogRecord {
  std::string_view time;  // as written
  LogStream stream = LogStream::kStdout;
  bool partial = false;
  std::string_view text;

  friend bool operator==(const LogRecord&, const LogRecord&) = default;
};

/// Parses a line of a log file without its line end; nullopt if it is malformed.
std::optional<LogRecord> parse_log_record(std::string_view line);

/// RFC 3339 with nine digits of fraction.
std::string format_log_time(WallTime at);

/// Cuts a stream of bytes into records. A line longer than 16 KiB becomes several records.
class LogFramer {
 public:
  explicit LogFramer(LogStream stream) : stream_(stream) {}

  /// Appends the records that are complete now to `out`.
  void add(std::string_view bytes, WallTime at, std::string& out);
  /// The stream has ended: an incomplete line is written as a line.
  void finish(WallTime at, std::string& out);

 private:
  void append(std::string_view text, char tag, WallTime at, std::string& out) const;

  LogStream stream_;
  std::string pending_;
};

struct LogLimits {
  Bytes file_max = mebibytes(10);
  int files_max = 5;
};

/// `<attempt>.log`, and older parts of it as `<attempt>.log.1` (newest) up to files_max - 1.
class ContainerLog {
 public:
  static Result<ContainerLog> create(const std::string& path, LogLimits limits);

  /// Rotates first if the file would grow beyond its limit. A failed write drops the records and is reported.
  Outcome write(std::string_view records);

  /// The size of all parts.
  Bytes size() const { return total_; }

 private:
  Outcome rotate();
  Outcome open();

  std::string path_;
  LogLimits limits_;
  UniqueFd fd_;
  Bytes size_;
  Bytes total_;
  std::vector<Bytes> older_;
};

}  // namespace spillway::host
