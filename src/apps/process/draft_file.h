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
  /// Makes "PATH.XXXXXX" with mode 0600. kInvalid: there is something at `path` that is no ordinary file, or its folder
  /// is missing; kForbidden and others: it cannot be made.
  static Result<DraftFile> make(const std::string& path);
  ~DraftFile();
  DraftFile(DraftFile&& other) noexcept;
  DraftFile& operator=(DraftFile&& other) = delete;

  Outcome append(std::string_view bytes);
  /// Puts it in the place of whatever file is there. Afterwards it is on the disk.
  Outcome commit();

 private:
  DraftFile(std::string path, std::string draft, UniqueFd file);

  std::string path_;
  std::string draft_;  // empty: it has its name
  UniqueFd file_;
};

}  // namespace spillway::apps
