#include "base/file_draft.h"

#include "base/file.h"
#include "base/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace spillway {

Result<FileDraft> FileDraft::write(const std::string& path, std::string_view text) {
  std::string name = path + ".XXXXXX";
  UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));  // exclusively, with mode 0600
  if (!file) return errno_error(path, errno);
  FileDraft draft(path, std::move(name));
  SPILLWAY_TRY_VOID(write_all(file.get(), text, path));
  if (::fsync(file.get()) != 0 || !file.close()) return errno_error(path, errno);
  return draft;
}

FileDraft::~FileDraft() {
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

Outcome FileDraft::place() {
  if (::rename(draft_.c_str(), path_.c_str()) != 0) return errno_error(path_, errno);
  draft_.clear();
  return {};
}

}  // namespace spillway
