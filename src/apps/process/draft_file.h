// A file that is written in pieces and gets its name only when it is complete: before commit() it is invisible under
// that name, and without commit() it is removed, unless the process is killed. Thread: any that may wait for the disk.
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <string>
#include <string_view>

namespace spillway::apps {

class DraftFile {
 public:
  /// Makes "PATH.XXXXXX" with mode 0600. kInvalid: `path` exists and is not an ordinary file, or its folder is missing;
  /// kForbidden and others: the file cannot be created.
  static Result<DraftFile> make(const std::string& path);
  ~DraftFile();
  DraftFile(DraftFile&& other) noexcept;
  DraftFile& operator=(DraftFile&& other) = delete;

  Outcome append(std::string_view bytes);
  /// Renames the draft to its path, replacing any file there. Afterwards the file is on the disk.
  Outcome commit();

 private:
  DraftFile(std::string path, std::string draft, UniqueFd file);

  std::string path_;
  std::string draft_;  // empty: the draft was renamed to its path
  UniqueFd file_;
};

}  // namespace spillway::apps
