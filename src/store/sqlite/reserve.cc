#include "store/sqlite/reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace spillway::store::sqlite {

namespace {

constexpr std::int64_t kReserveShare = 8;  // an eighth of the free space
constexpr std::int64_t kLeastShare = 2;    // half of the wanted size is enough

}  // namespace

Bytes free_space(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  struct statvfs disk{};
  constexpr auto kMost = static_cast<unsigned long>(std::numeric_limits<std::int64_t>::max() / 2);
  if (::statvfs(directory.c_str(), &disk) != 0) return Bytes{static_cast<std::int64_t>(kMost)};
  const unsigned long blocks = std::min(disk.f_bavail, kMost / std::max(disk.f_frsize, 1UL));
  return Bytes{static_cast<std::int64_t>(blocks * disk.f_frsize)};
}

bool Reserve::hold(Bytes free) {
  if (held_) return true;
  const Bytes there = free_space(path_);
  struct stat left{};
  if (size_ == Bytes{0} && ::lstat(path_.c_str(), &left) == 0 && S_ISREG(left.st_mode)) {
    size_ = kept_ = std::min(Bytes{left.st_size}, kReserveMax);  // the reserve that the run before has left
    held_ = size_ > Bytes{0};
    if (held_) return true;
  }
  if (size_ == Bytes{0}) size_ = std::max(std::min(Bytes{there.count() / kReserveShare}, kReserveMax), Bytes{1});
  // The space by which the database has grown out of the reserve is not free any more: half of the reserve is enough
  // from then on.
  if (there < Bytes{size_.count() / kLeastShare} + free) return false;
  kept_ = std::min(size_, there - free);
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  const int refused = ::posix_fallocate(file, 0, kept_.count());
  ::close(file);
  // A lack of space for the reserve is no reason to refuse writes.
  held_ = refused != ENOSPC && refused != EDQUOT;
  if (refused != 0) ::unlink(path_.c_str());
  return held_;
}

void Reserve::release() {
  held_ = false;
  ::unlink(path_.c_str());
}

}  // namespace spillway::store::sqlite
