// One process per data directory: a lock file that the kernel frees when the holder dies, however it dies.
// Thread: any. Invariant: the file stays in place, so that two starters always meet at the same inode.
#pragma once

#include "base/error.h"

#include <string>
#include <utility>

namespace spillway::store::sqlite {

class DirectoryLock {
 public:
  DirectoryLock() = default;
  ~DirectoryLock();

  DirectoryLock(DirectoryLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  /// Takes `file` in `directory`. kConflict: "data directory D is in use by process N". kInvalid: the file cannot be
  /// made. Waits, at most 3 s, only while N has died and a child of it has not let go.
  static Result<DirectoryLock> take(const std::string& directory, const std::string& file);
  /// Takes the lock that a writer of this database holds; its directory must exist.
  static Result<DirectoryLock> take_for(const std::string& database);

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_ = -1;
};

}  // namespace spillway::store::sqlite
