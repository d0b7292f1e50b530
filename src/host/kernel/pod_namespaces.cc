#include "host/kernel/pod_namespaces.h"

#include "host/kernel/kernel_file.h"
#include "host/kernel/namespace_child.h"

#include <fmt/format.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <tuple>
#include <utility>

namespace spillway::host {
namespace {

enum ViewStep { kViewRoot, kViewCopy, kViewMounts, kViewHostName, kViewUsers };

bool make_view(const ConfinedView& view, NamespaceChild::Failure& failure) {
  const auto failed = [&](ViewStep step, std::size_t index = 0, int error = errno) {
    failure = {.what = step, .error = error, .index = index};
    return false;
  };
  if (::syscall(SYS_setns, view.root, CLONE_NEWNS) != 0) return failed(kViewRoot);
  if (::syscall(SYS_unshare, CLONE_NEWNS) != 0) return failed(kViewCopy);
  if (const auto broken = run_mount_steps(view.mounts)) return failed(kViewMounts, broken->step, broken->error);
  if (!view.hostname.empty() && ::syscall(SYS_sethostname, view.hostname.data(), view.hostname.size()) != 0)
    return failed(kViewHostName);
  if (::syscall(SYS_unshare, CLONE_NEWUSER) != 0) return failed(kViewUsers);
  return true;
}

Error describe_failure(const ConfinedView& view, const NamespaceChild::Failure& failure) {
  switch (failure.what) {
    case kViewMounts:
      return make_error(errno_error({}, failure.error).code, "{}",
                        describe(view.mounts.at(failure.index), failure.error));
    case kViewHostName:
      return errno_error("host name of the pod", failure.error);
    case kViewUsers:
      return errno_error(failure.error == ENOSPC
                             ? "user namespace (the maximum is in /proc/sys/user/max_user_namespaces)"
                             : "user namespace",
                         failure.error);
    default:
      return errno_error("mount namespace", failure.error);
  }
}

}  // namespace

Result<PodNamespaces> PodNamespaces::create(const NamespaceWish& wish) {
  PodNamespaces made;
  if (!wish.ipc && !wish.network && !wish.view) return made;
  const bool named = wish.view && !wish.view->hostname.empty();
  const std::uint64_t flags =
      (wish.ipc ? CLONE_NEWIPC : 0) | (wish.network ? CLONE_NEWNET : 0) | (named ? CLONE_NEWUTS : 0);
  const auto child = NamespaceChild::start(
      flags, [&](NamespaceChild::Failure& failure) { return !wish.view || make_view(*wish.view, failure); },
      [&](const NamespaceChild::Failure& failure) { return describe_failure(*wish.view, failure); });
  if (!child) return Error{child.error().code, child.error().text(), "namespaces of a pod cannot be made"};
  if (wish.view) SPILLWAY_TRY_VOID(child->map_ids(wish.view->first_id, kPodIds));
  for (auto [wanted, name, into] :
       {std::tuple(wish.ipc, "ipc", &made.parts_.ipc), std::tuple(wish.network, "net", &made.parts_.network),
        std::tuple(named, "uts", &made.parts_.host_name), std::tuple(wish.view.has_value(), "mnt", &made.parts_.mounts),
        std::tuple(wish.view.has_value(), "user", &made.parts_.users)}) {
    if (!wanted) continue;
    SPILLWAY_TRY(fd, child->open(name));
    *into = std::move(fd);
  }
  if (wish.view) {
    SPILLWAY_TRY(root, child->root());
    made.parts_.root = std::move(root);
  }
  return made;
}

std::vector<int> PodNamespaces::fds() const {
  std::vector<int> all;
  for (const UniqueFd* fd : {&parts_.ipc, &parts_.network, &parts_.host_name}) {
    if (*fd) all.push_back(fd->get());
  }
  return all;
}

}  // namespace spillway::host
