#include "host/process/pod_isolator.h"

#include "base/file.h"
#include "host/kernel/mount_steps.h"
#include "host/process/container_process.h"
#include "host/spawn/process_spawn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

/// The rights that confining pods needs and this process lacks, for the error message.
std::string missing_rights() {
  constexpr std::pair<int, std::string_view> kNeeded[] = {{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
                                                          {CAP_SYS_CHROOT, "CAP_SYS_CHROOT"},
                                                          {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
                                                          {CAP_SETUID, "CAP_SETUID"},
                                                          {CAP_SETGID, "CAP_SETGID"},
                                                          {CAP_CHOWN, "CAP_CHOWN"},
                                                          {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                                                          {CAP_FOWNER, "CAP_FOWNER"}};
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return "its capabilities are unknown";
  std::string missing;
  for (const auto& [bit, name] : kNeeded)
    if ((sets[0].effective >> bit & 1) == 0) missing += fmt::format(" {}", name);
  if (!missing.empty()) return "this process lacks" + missing;
  return "this process has the capabilities: the kernel or a sandbox refuses; Linux 5.12 or newer with user namespaces "
         "is needed";
}

/// Errors name the step that the kernel refused.
Outcome try_confinement(const PodRoot& root, CgroupVersion cgroups) {
  ConfinedView view{.root = root.mounts(), .mounts = {}, .first_id = IdRanges::kFirst, .hostname = "trial"};
  SPILLWAY_TRY(namespaces, PodNamespaces::create({.ipc = true, .network = false, .view = std::move(view)}));
  SpawnPlan plan;
  plan.argv = {"/"};
  plan.working_dir = "/";
  plan.oom_score_adj = 0;
  plan.namespaces = &namespaces;
  plan.confinement = Confinement{.first_id = IdRanges::kFirst, .mounts = container_mounts(cgroups)};
  return try_out(std::move(plan));
}

}  // namespace

Result<PodIsolator> PodIsolator::create(const std::string& pods, std::vector<std::string> hidden,
                                        CgroupVersion cgroups) {
  std::error_code error;
  fs::permissions(pods, fs::perms::owner_all, error);
  if (error) return errno_error(pods, error.value());
  PodRootOptions options{.scratch = pods, .program = own_program(), .hidden = std::move(hidden)};
  Result<PodRoot> root = PodRoot::create(options);
  const Outcome tried = root ? try_confinement(*root, cgroups) : Outcome(root.error());
  if (!tried)
    return Error{
        tried.error().code,
        fmt::format("{} ({}; --process-isolation=none runs pods without)", tried.error().text(), missing_rights()),
        "pods cannot be confined to namespaces"};
  PodIsolator made;
  made.root_ = std::move(options);
  return made;
}

/// `home` and `shared_memory` must stay open until the view is made.
Result<ConfinedView> PodIsolator::view_of(const agent::PodIsolation& wish, std::uint32_t first_id,
                                          const std::string& work, const PodRoot& root, UniqueFd& home,
                                          UniqueFd& shared_memory) const {
  if (::chown(work.c_str(), first_id, first_id) != 0 || ::chmod(work.c_str(), 01777) != 0)
    return errno_error(work, errno);
  SPILLWAY_TRY(tree, open_detached(work));
  home = std::move(tree);
  ConfinedView view{.root = root.mounts(), .mounts = {}, .first_id = first_id, .hostname = wish.hostname};
  const std::string at(kPodHome);
  view.mounts.push_back({.kind = MountStep::Kind::kMove, .target = at, .source = work, .fd = home.get()});
  view.mounts.push_back(
      {.kind = MountStep::Kind::kProtect, .target = at, .attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV});
  view.mounts.push_back({.kind = MountStep::Kind::kMount,
                         .target = "/dev/pts",
                         .source = "devpts",
                         .type = "devpts",
                         .options = "newinstance,ptmxmode=0666,mode=0620",
                         .flags = MS_NOSUID | MS_NOEXEC});
  const std::string memory = "/dev/shm";
  if (wish.ipc) {
    view.mounts.push_back({.kind = MountStep::Kind::kMount,
                           .target = memory,
                           .source = "shm",
                           .type = "tmpfs",
                           .options = "mode=1777,size=64m",
                           .flags = kPlainFiles});
  } else {
    SPILLWAY_TRY(ours, open_detached(memory));
    shared_memory = std::move(ours);
    view.mounts.push_back(
        {.kind = MountStep::Kind::kMove, .target = memory, .source = memory, .fd = shared_memory.get()});
  }
  return view;
}

Result<PodNamespaces> PodIsolator::make_namespaces(const agent::PodIsolation& wish,
                                                   std::optional<std::uint32_t> first_id,
                                                   const std::string& work) const {
  NamespaceWish wanted{.ipc = wish.ipc, .network = wish.network, .view = {}};
  UniqueFd home;
  UniqueFd shared_memory;
  if (!first_id) return PodNamespaces::create(wanted);
  if (!root_) return invalid("isolation", "this runtime confines no pods");
  SPILLWAY_TRY(root, PodRoot::create(*root_));
  SPILLWAY_TRY(view, view_of(wish, *first_id, work, root, home, shared_memory));
  wanted.view = std::move(view);
  return PodNamespaces::create(wanted);
}

Result<IsolatedPod> PodIsolator::isolate(const agent::CreatePod& pod, const std::string& work) {
  const agent::PodIsolation& wish = pod.isolation;
  IsolatedPod isolated;
  if (!wish.ipc && !wish.network && !wish.confined) return isolated;
  if (wish.confined) isolated.first_id = ids_.take(pod.uid);
  Result<PodNamespaces> made = make_namespaces(wish, isolated.first_id, work);
  if (!made) {
    if (isolated.first_id) ids_.release(*isolated.first_id);
    return made.error();
  }
  isolated.namespaces = *std::move(made);
  return isolated;
}

}  // namespace spillway::host
