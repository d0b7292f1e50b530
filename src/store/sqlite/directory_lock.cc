#include "store/sqlite/directory_lock.h"

#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace spillway::store::sqlite {
namespace {

/// What the holder wrote, if it is a number; it may be just about to write it.
std::string holder_of(int descriptor) {
  std::array<char, 24> buffer{};
  const ssize_t size = ::pread(descriptor, buffer.data(), buffer.size(), 0);
  const std::string_view text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::string_view digits = text.substr(0, text.find('\n'));
  const bool number = !digits.empty() && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  return number ? "process " + std::string(digits) : "another process";
}

}  // namespace

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<DirectoryLock> DirectoryLock::take(const std::string& directory, const std::string& file) {
  const std::string path = directory + "/" + file;
  DirectoryLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.descriptor_ < 0) return invalid(path, "cannot open the lock file: {}", errno_error({}, errno).message);
  if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return invalid(path, "cannot lock: {}", errno_error({}, errno).message);
    return make_error(ErrorCode::kConflict, "data directory {} is in use by {}", directory,
                      holder_of(lock.descriptor_));
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // Only a diagnosis for others depends on it; the lock itself holds.
  const bool told = ::ftruncate(lock.descriptor_, 0) == 0 &&
                    ::pwrite(lock.descriptor_, pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size());
  static_cast<void>(told);
  return lock;
}

Result<DirectoryLock> DirectoryLock::take_for(const std::string& database) {
  const std::filesystem::path path(database);
  const std::string directory = path.has_parent_path() ? path.parent_path().string() : ".";
  return take(directory, path.filename().string() + ".lock");
}

}  // namespace spillway::store::sqlite
