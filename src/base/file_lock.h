// The exclusive lock of a file or directory, which the kernel frees when its last descriptor is closed. If a process is
// killed while it starts a child, the child holds the lock until its exec(): therefore a process that starts after a
// kill retries for a while. Thread: any; blocks while it waits.
#pragma once

#include "base/error.h"

#include <functional>

namespace spillway {

/// Called after each try that found the lock taken: waits, and returns true for another try. Absent: one try.
using LockPatience = std::function<bool()>;

/// 3 s: long enough for a child to reach its exec() on a busy machine; what a refusal takes where the holder lives on.
inline constexpr int kLockWaits = 300;

/// Waits 10 ms at a time, at most `waits` times.
LockPatience lock_patience(int waits = kLockWaits);

/// Locks what `fd` has open, until the last copy of it is closed. kConflict: another process holds it. Others: flock(2)
/// failed.
Outcome lock_exclusively(int fd, const LockPatience& again = {});

}  // namespace spillway
