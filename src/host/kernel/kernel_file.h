// Small files of the kernel (cgroupfs, /proc): read whole, written in one call, always relative to a held directory
// descriptor, so that a directory which was removed and made again is not mistaken for the old one.
// Thread: any. Reading never blocks on these file systems.
#pragma once

#include "base/error.h"
#include "base/file.h"
#include "base/unique_fd.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

/// Reads like read_file(), by a name in an open directory.
Result<std::string> read_file_at(int directory, const std::string& name);

/// Writes `text` in one write(2) into an existing file.
Outcome write_file_at(int directory, const std::string& name, std::string_view text);

/// A file that is read again and again through one descriptor: no open(), no allocation.
class HeldFile {
 public:
  HeldFile() = default;

  static Result<HeldFile> open_at(int directory, const std::string& name);

  explicit operator bool() const { return static_cast<bool>(fd_); }

  /// The first bytes of the file as they are now, in `buffer`. kInternalError if it does not fit.
  Result<std::string_view> read(char* buffer, std::size_t size) const;

 private:
  UniqueFd fd_;
  std::string name_;
};

/// Cuts the first line (without its end) off `text`.
std::string_view take_line(std::string_view& text);

/// A decimal number and nothing else, white space around it aside. Negative numbers are refused.
std::optional<std::uint64_t> parse_number(std::string_view text);

}  // namespace spillway::host
