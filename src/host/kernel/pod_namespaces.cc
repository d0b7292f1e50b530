#include "host/kernel/pod_namespaces.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

namespace spillway::host {
namespace {

/// What the child does until it is killed. It shares nothing but a copy of this process's memory: system calls only.
[[noreturn]] void wait_for_the_end() {
  ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  for (;;) ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

Result<UniqueFd> open_namespace(long pid, const char* name) {
  const std::string path = fmt::format("/proc/{}/ns/{}", pid, name);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(path, errno);
  return fd;
}

}  // namespace

Result<PodNamespaces> PodNamespaces::create(const NamespaceWish& wish) {
  PodNamespaces made;
  if (!wish.ipc && !wish.network) return made;
  clone_args args = {};
  int pidfd = -1;
  args.flags = CLONE_PIDFD | (wish.ipc ? CLONE_NEWIPC : 0) | (wish.network ? CLONE_NEWNET : 0);
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return errno_error("namespaces of a pod cannot be made", errno);
  if (pid == 0) wait_for_the_end();
  const UniqueFd process(pidfd);
  Outcome opened;
  for (auto [wanted, name, into] :
       {std::tuple(wish.ipc, "ipc", &made.ipc_), std::tuple(wish.network, "net", &made.network_)}) {
    if (!wanted || !opened) continue;
    auto fd = open_namespace(pid, name);
    if (fd) {
      *into = *std::move(fd);
    } else {
      opened = fd.error();
    }
  }
  ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  siginfo_t ended = {};
  while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process.get()), &ended, WEXITED | __WALL) != 0 &&
         errno == EINTR) {
  }
  if (!opened) return opened.error();
  return made;
}

std::vector<int> PodNamespaces::fds() const {
  std::vector<int> all;
  for (const UniqueFd* fd : {&ipc_, &network_}) {
    if (*fd) all.push_back(fd->get());
  }
  return all;
}

}  // namespace spillway::host
