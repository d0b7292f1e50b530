#include "base/file_lock.h"

#include "base/file.h"

#include <poll.h>
#include <sys/file.h>

#include <cerrno>

namespace spillway {
namespace {

constexpr int kWaitMillis = 10;

}  // namespace

LockPatience lock_patience(int waits) {
  return [left = waits]() mutable {
    if (left-- <= 0) return false;
    ::poll(nullptr, 0, kWaitMillis);
    return true;
  };
}

Outcome lock_exclusively(int fd, const LockPatience& again) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EWOULDBLOCK) return errno_error("flock", error);
    if (!again || !again()) return make_error(ErrorCode::kConflict, "another process holds the lock");
  }
  return {};
}

}  // namespace spillway
