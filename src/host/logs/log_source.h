// The stored log of a container: the file and the older ones it was rotated to, read from the first requested line, a
// slice at a time. Blocking. Thread: one at a time.
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

class LogSource {
 public:
  /// A longer log is read from its newest bytes of that number, from the start of a line.
  static constexpr std::size_t kBytesMax = std::size_t{16} * 1024 * 1024;

  /// `path` is the newest part; `path`.1, `path`.2, ... are older. `tail_lines`: only so many of the last lines.
  static Result<LogSource> open(const std::string& path, std::optional<std::int64_t> tail_lines);

  /// The next bytes, at most `bytes_max`; empty when what was there at open() has been read.
  Result<std::string> read(std::size_t bytes_max);

  /// The newest part, to be read on from where read() ends. To be called once, after the end.
  UniqueFd take_newest();

 private:
  struct Part {
    UniqueFd file;
    std::string name;
    off_t at = 0;
    off_t end = 0;
  };

  std::vector<Part> parts_;  // newest first; parts that have been read are removed, except the newest
};

}  // namespace spillway::host
