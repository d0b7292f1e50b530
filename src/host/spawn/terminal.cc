#include "host/spawn/terminal.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

namespace spillway::host {
namespace {

constexpr long kTerminalFiles = 0x1cd1;  // DEVPTS_SUPER_MAGIC

}  // namespace

Result<Terminal> open_terminal(pid_t process) {
  const UniqueFd root(::open(fmt::format("/proc/{}/root", process).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return errno_error("root of the container", errno);
  return open_terminal(root);
}

Result<Terminal> open_terminal(const UniqueFd& root) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const UniqueFd found(static_cast<int>(::syscall(SYS_openat2, root.get(), "dev/pts/ptmx", &how, sizeof how)));
  if (!found) return errno_error("/dev/pts/ptmx of the container", errno);
  struct statfs files{};
  if (::fstatfs(found.get(), &files) != 0) return errno_error("/dev/pts of the container", errno);
  if (files.f_type != kTerminalFiles) return invalid("/dev/pts", "the container has no terminals there");
  UniqueFd ours(
      ::open(fmt::format("/proc/self/fd/{}", found.get()).c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!ours) return errno_error("/dev/pts/ptmx of the container", errno);
  int locked = 0;
  if (::ioctl(ours.get(), TIOCSPTLCK, &locked) != 0) return errno_error("terminal", errno);
  UniqueFd theirs(::ioctl(ours.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!theirs) return errno_error("terminal", errno);
  return Terminal{std::move(ours), std::move(theirs)};
}

void resize_terminal(const UniqueFd& terminal, std::uint16_t width, std::uint16_t height) {
  if (!terminal) return;
  const winsize size{.ws_row = height, .ws_col = width, .ws_xpixel = 0, .ws_ypixel = 0};
  static_cast<void>(::ioctl(terminal.get(), TIOCSWINSZ, &size));
}

}  // namespace spillway::host
