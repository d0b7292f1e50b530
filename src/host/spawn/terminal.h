// A terminal of a container's own: made in its /dev/pts, so that its programs find it there by name.
// Thread: loop. Source: pts(4), ioctl_tty(2) (TIOCGPTPEER), openat2(2).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <sys/types.h>

#include <cstdint>

namespace spillway::host {

struct Terminal {
  UniqueFd ours;    // not blocking
  UniqueFd theirs;  // the program's three streams
};

/// `process`: of the container, not yet collected. What is no terminal file system there is not touched: a container
/// could have put anything in its place.
Result<Terminal> open_terminal(pid_t process);

/// Makes a terminal in the /dev/pts below the directory `root`.
Result<Terminal> open_terminal(const UniqueFd& root);

/// Resizes the terminal and notifies its programs (SIGWINCH).
void resize_terminal(const UniqueFd& terminal, std::uint16_t width, std::uint16_t height);

}  // namespace spillway::host
