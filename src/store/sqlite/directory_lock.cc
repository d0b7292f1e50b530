#include "store/sqlite/directory_lock.h"

#include "base/file.h"
#include "base/file_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace spillway::store::sqlite {
namespace {

/// The number that the holder wrote into the file; nullopt: none, as the holder may be just about to write it.
std::optional<pid_t> holder_of(int descriptor) {
  std::array<char, 24> buffer{};
  const ssize_t size = ::pread(descriptor, buffer.data(), buffer.size(), 0);
  const std::string_view text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::string_view digits = text.substr(0, text.find('\n'));
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (error != std::errc{} || end != digits.data() + digits.size() || pid <= 0) return std::nullopt;
  return pid;
}

bool has_died(std::optional<pid_t> holder) {
  return holder && ::kill(*holder, 0) != 0 && errno == ESRCH;
}

std::string describe(std::optional<pid_t> holder) {
  return holder ? "process " + std::to_string(*holder) : "another process";
}

}  // namespace

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<DirectoryLock> DirectoryLock::take(const std::string& directory, const std::string& file) {
  const std::string path = directory + "/" + file;
  DirectoryLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.descriptor_ < 0) return invalid(path, "cannot open the lock file: {}", errno_error({}, errno).message);
  const Outcome locked = lock_exclusively(
      lock.descriptor_, [&, wait = lock_patience()] { return has_died(holder_of(lock.descriptor_)) && wait(); });
  if (!locked) {
    if (locked.error().code != ErrorCode::kConflict) return invalid(path, "cannot lock: {}", locked.error().message);
    return make_error(ErrorCode::kConflict, "data directory {} is in use by {}", directory,
                      describe(holder_of(lock.descriptor_)));
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // Only the diagnosis in other processes needs this text; the lock itself holds.
  const bool written = ::ftruncate(lock.descriptor_, 0) == 0 &&
                       ::pwrite(lock.descriptor_, pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size());
  static_cast<void>(written);
  return lock;
}

Result<DirectoryLock> DirectoryLock::take_for(const std::string& database) {
  const std::filesystem::path path(database);
  const std::string directory = path.has_parent_path() ? path.parent_path().string() : ".";
  return take(directory, path.filename().string() + ".lock");
}

}  // namespace spillway::store::sqlite
