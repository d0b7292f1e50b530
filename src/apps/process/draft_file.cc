#include "apps/process/draft_file.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace spillway::apps {

DraftFile::DraftFile(std::string path, std::string draft, UniqueFd file)
    : path_(std::move(path)), draft_(std::move(draft)), file_(std::move(file)) {}

DraftFile::DraftFile(DraftFile&& other) noexcept
    : path_(std::move(other.path_)), draft_(std::exchange(other.draft_, {})), file_(std::move(other.file_)) {}

Result<DraftFile> DraftFile::make(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) return invalid(path, "is no ordinary file");
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty() && (::stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)))
    return invalid(path, "there is no folder {}", folder);
  std::string draft = path + ".XXXXXX";
  UniqueFd file(::mkostemp(draft.data(), O_CLOEXEC));  // exclusively, with mode 0600
  if (!file) return errno_error(path, errno);
  return DraftFile(path, std::move(draft), std::move(file));
}

DraftFile::~DraftFile() {
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

Outcome DraftFile::append(std::string_view bytes) {
  return write_all(file_.get(), bytes, path_);
}

Outcome DraftFile::commit() {
  if (::fsync(file_.get()) != 0 || ::rename(draft_.c_str(), path_.c_str()) != 0) return errno_error(path_, errno);
  draft_.clear();
  return sync_folder_of(path_);
}

}  // namespace spillway::apps
