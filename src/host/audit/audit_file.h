// The file of the audit log: readable by its owner only, written in whole lines, renamed with a time stamp when it
// exceeds its size. Thread: one at a time, one that may wait for the disk.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

class AuditFile {
 public:
  struct Options {
    std::string path;                                   // "-": standard output, which is never renamed
    std::int64_t bytes_max = std::int64_t{100} << 20U;  // above 0; a file that would become longer is renamed
  };

  /// Creates the file with mode 0600, or appends to an existing one and sets that mode. kInvalid: it cannot be opened,
  /// is a link, is no regular file, or has another owner.
  static Result<AuditFile> open(Options options);

  struct Appended {
    std::optional<std::string> renamed = {};  // the new path of the earlier content
    std::optional<Error> not_renamed = {};    // why a file that is too long was not renamed
  };

  /// All of `lines`, which end with newlines, or nothing of them.
  Result<Appended> append(std::string_view lines, WallTime now);

  /// Makes all appended lines survive a loss of power. No effect on standard output.
  Outcome sync();

  bool is_stdout() const { return options_.path == "-"; }

  const std::string& path() const { return options_.path; }

 private:
  AuditFile(Options options, UniqueFd fd, std::int64_t size)
      : options_(std::move(options)), fd_(std::move(fd)), size_(size) {}

  Result<std::string> rename_away(WallTime now);

  Options options_;
  UniqueFd fd_;
  std::int64_t size_ = 0;
  bool torn_ = false;  // the last line is not complete
};

/// "DIR/audit.log" → "DIR/audit-2026-11-22T08-30-00.000.log", in UTC.
std::string audit_backup_path(std::string_view path, WallTime at);

}  // namespace spillway::host
