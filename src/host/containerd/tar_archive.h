// A tar archive in a file: where its files lie, and their bytes. Thread: any that may wait for the disk. Bounds:
// kEntriesMax files. Source: POSIX, "ustar Interchange Format" and "pax Interchange Format"; GNU tar, "Basic Tar
// Format".
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/containerd/import_plan.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace spillway::host {

class TarArchive {
 public:
  static constexpr std::size_t kEntriesMax = 100'000;
  static constexpr std::size_t kTextBytesMax = std::size_t{8} << 20;  // the longest file that is read whole

  /// kInvalid: the file is no tar archive, is compressed, or ends too early.
  static Result<TarArchive> open(const std::string& path);

  /// Regular files by their names, without "./" before them.
  const ArchiveFiles& files() const { return files_; }

  /// Bytes of a file from an offset on; fewer at its end. kNotFound: there is no such file.
  Result<std::string> read(const std::string& name, std::uint64_t offset, std::size_t bytes_max) const;
  /// The whole text of a file. kInvalid: it is longer than kTextBytesMax.
  Result<std::string> read_text(const std::string& name) const;

 private:
  explicit TarArchive(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Outcome index();
  Result<std::string> read_at(std::uint64_t offset, std::size_t bytes) const;

  UniqueFd fd_;
  std::string path_;
  ArchiveFiles files_;
  std::map<std::string, std::uint64_t> offsets_;
};

}  // namespace spillway::host
