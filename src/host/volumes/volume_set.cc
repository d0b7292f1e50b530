#include "host/volumes/volume_set.h"

#include "host/kernel/kernel_file.h"
#include "host/volumes/group_access.h"
#include "host/volumes/host_path.h"
#include "host/volumes/path_walk.h"
#include "host/volumes/payload_writer.h"
#include "host/volumes/provisioned_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr int kLazyUnmount = 2;  // MNT_DETACH: sys/mount.h and linux/mount.h exclude each other
constexpr int kNoFollow = 8;     // UMOUNT_NOFOLLOW
constexpr unsigned long kDataOnly = MS_NOSUID | MS_NODEV;
constexpr mode_t kEmptyDirectoryMode = 0777;
constexpr mode_t kPayloadMode = 0755;

/// Mounts without "noswap" where the kernel does not support that.
Outcome mount_memory(const std::string& target, std::string options) {
  const auto mount = [&](const std::string& all) {
    return ::syscall(SYS_mount, "tmpfs", target.c_str(), "tmpfs", kDataOnly, all.c_str()) == 0;
  };
  if (mount(options + ",noswap")) return {};
  if (errno == EINVAL && mount(options)) return {};
  return errno_error(target, errno);
}

/// The path of a volume that exists on the machine already.
std::string path_of_machine(const agent::VolumeSetup& setup) {
  if (const auto* local = std::get_if<agent::LocalDirectory>(&setup.content)) return local->path;
  return std::get<agent::HostPath>(setup.content).path;
}

Result<UniqueFd> clone_mount(int fd, bool recursive) {
  const unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0U);
  UniqueFd tree(static_cast<int>(::syscall(SYS_open_tree, fd, "", flags)));
  if (!tree) return errno_error("a mount of it", errno);
  return tree;
}

Outcome protect(int tree, std::uint64_t attributes, bool recursive) {
  mount_attr wanted = {};
  wanted.attr_set = attributes;
  wanted.propagation = MS_PRIVATE;
  const unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U);
  if (::syscall(SYS_mount_setattr, tree, "", flags, &wanted, sizeof wanted) != 0)
    return errno_error("its attributes", errno);
  return {};
}

}  // namespace

Outcome VolumeSet::enter_namespace(int found) {
  if (found >= 0) {
    // A thread that shares its root directory with others cannot change to another namespace.
    if (::unshare(CLONE_FS) != 0 || ::setns(found, CLONE_NEWNS) != 0)
      return errno_error("the mount namespace of volumes that are there", errno);
    return {};
  }
  if (::unshare(CLONE_NEWNS) != 0) return errno_error("a mount namespace for volumes", errno);
  if (::syscall(SYS_mount, nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return errno_error("a mount namespace for volumes", errno);
  return {};
}

VolumeSet::VolumeSet(VolumeSetOptions options) : options_(std::move(options)) {
  const std::string parts = options_.directory + "-parts/";
  for (const std::string& mount : options_.mounts) {
    if (!mount.starts_with(parts)) {
      found_.insert(mount);
      continue;
    }
    std::size_t number = 0;
    std::from_chars(mount.data() + parts.size(), mount.data() + mount.size(), number);
    next_part_ = std::max(next_part_, number + 1);
    parts_.push_back(mount);
  }
}

VolumeSet::~VolumeSet() {
  if (keep_) return;
  for (const std::string& mount : found_) ::syscall(SYS_umount2, mount.c_str(), kLazyUnmount | kNoFollow);
  for (const std::string& part : parts_) ::syscall(SYS_umount2, part.c_str(), kLazyUnmount | kNoFollow);
  for (auto& [name, volume] : volumes_) {
    volume.root.reset();
    if (volume.mounted) ::syscall(SYS_umount2, volume.directory.c_str(), kLazyUnmount | kNoFollow);
  }
}

Outcome VolumeSet::make_directory(Volume& volume, bool in_memory, std::optional<Bytes> size) {
  if (volume.root) return {};
  volume.directory = fmt::format("{}/kubernetes.io~{}/{}", options_.directory, volume.setup.plugin, volume.setup.name);
  std::error_code error;
  fs::create_directories(volume.directory, error);
  if (error) return errno_error(volume.directory, error.value());
  if (in_memory && found_.erase(volume.directory) > 0) volume.mounted = true;
  if (in_memory && !volume.mounted) {
    SPILLWAY_TRY_VOID(mount_memory(volume.directory, size ? fmt::format("size={}", size->count()) : "size=50%"));
    volume.mounted = true;
  }
  volume.root.reset(::open(volume.directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!volume.root) return errno_error(volume.directory, errno);
  return {};
}

/// True if the directory is complete: its mode is the last thing that it gets before a pod writes to it.
bool VolumeSet::is_given(const Volume& volume) {
  struct stat now = {};
  return ::fstat(volume.root.get(), &now) == 0 && (now.st_mode & kEmptyDirectoryMode) == kEmptyDirectoryMode;
}

Outcome VolumeSet::give_to_pod(const Volume& volume) const {
  const bool empty = std::holds_alternative<agent::EmptyDirectory>(volume.setup.content);
  if (::fchown(volume.root.get(), options_.first_id, options_.first_id) != 0 ||
      ::fchmod(volume.root.get(), empty ? kEmptyDirectoryMode : kPayloadMode) != 0)
    return errno_error(volume.directory, errno);
  if (!volume.setup.fs_group) return {};
  return give_to_group(volume.root.get(), options_.first_id + *volume.setup.fs_group,
                       empty ? GroupAccess::kReadWrite : GroupAccess::kRead);
}

std::string VolumeSet::provisioned_name(const agent::LocalDirectory& local) const {
  if (options_.provisioned.empty() || !local.path.starts_with(options_.provisioned + "/")) return {};
  return local.path.substr(options_.provisioned.size() + 1);
}

/// The ids of a confined pod differ from those of the one before it, whose files become its own.
Result<UniqueFd> VolumeSet::open_provisioned_for_pod(const std::string& name) const {
  Result<UniqueFd> opened = open_provisioned(options_.provisioned, name);
  if (!opened && opened.error().code == ErrorCode::kNotFound) {
    return invalid({}, "path \"{}/{}\" does not exist", options_.provisioned, name);
  }
  // Files whose owner cannot be changed keep it, as for a group, and the pod sees the error.
  if (opened && options_.first_id != 0) (void)give_to_pod_ids(opened->get(), options_.first_id);
  return opened;
}

Outcome VolumeSet::set_up(const agent::VolumeSetup& setup, WallTime at) {
  const auto known = volumes_.find(setup.name);
  const bool is_new = known == volumes_.end() || !known->second.root;
  Volume& volume = volumes_[setup.name];
  volume.setup = setup;
  if (const auto* path = std::get_if<agent::HostPath>(&setup.content)) {
    SPILLWAY_TRY(opened, open_host_path(*path, options_.hidden));
    volume.root = std::move(opened);
    return {};
  }
  if (const auto* local = std::get_if<agent::LocalDirectory>(&setup.content)) {
    const std::string provisioned = provisioned_name(*local);
    SPILLWAY_TRY(opened, provisioned.empty() ? open_local_directory(local->path, options_.hidden)
                                             : open_provisioned_for_pod(provisioned));
    volume.root = std::move(opened);
    // Files whose group cannot be changed keep it, as upstream, and the pod sees the error.
    if (setup.fs_group) {
      (void)give_to_group(volume.root.get(), options_.first_id + *setup.fs_group, GroupAccess::kReadWrite);
    }
    return {};
  }
  if (const auto* empty = std::get_if<agent::EmptyDirectory>(&setup.content)) {
    if (!is_new) return {};
    SPILLWAY_TRY_VOID(make_directory(volume, empty->in_memory, empty->size));
    if (options_.kept && is_given(volume)) return {};
    Outcome given = give_to_pod(volume);
    if (!given) volume.root.reset();  // the next attempt begins with the root
    return given;
  }
  const auto& payload = std::get<agent::VolumeFiles>(setup.content);
  SPILLWAY_TRY_VOID(make_directory(volume, payload.in_memory, {}));
  if (is_new) {
    if (Outcome given = give_to_pod(volume); !given) {
      volume.root.reset();
      return given;
    }
  }
  const gid_t group = options_.first_id + setup.fs_group.value_or(0);
  const auto finish = [&](int directory) -> Outcome {
    return setup.fs_group ? give_to_group(directory, group, GroupAccess::kRead) : Outcome();
  };
  const Result<bool> written = write_payload(volume.root.get(), payload.files, {options_.first_id, group}, at, finish);
  if (!written) return written.error();
  return {};
}

Result<OpenedMount> VolumeSet::open(const agent::VolumeBinding& binding, const std::string& container) {
  const auto found = volumes_.find(binding.volume);
  if (found == volumes_.end() || !found->second.root)
    return invalid({}, "cannot find volume \"{}\" to mount into container \"{}\"", binding.volume, container);
  Volume& volume = found->second;
  const bool of_machine = volume.directory.empty();
  struct stat root = {};
  if (::fstat(volume.root.get(), &root) != 0) return errno_error(binding.volume, errno);
  WalkRules rules;
  if (!binding.sub_path.empty()) {
    rules.base = of_machine ? path_of_machine(volume.setup) : volume.directory;
    rules.make = WalkRules::Made{.mode = root.st_mode & 07777, .uid = root.st_uid, .gid = root.st_gid};
    if (!S_ISDIR(root.st_mode))
      return invalid({}, "failed to create subPath directory for volumeMount \"{}\" of container \"{}\"",
                     binding.volume, container);
  }
  Result<WalkedPath> part = WalkedPath();
  if (binding.sub_path.empty()) {
    part->fd.reset(::fcntl(volume.root.get(), F_DUPFD_CLOEXEC, 3));
    part->status = root;
  } else {
    part = walk_path(volume.root.get(), binding.sub_path, rules);
  }
  if (!part) {
    const std::string_view step =
        part.error().code == ErrorCode::kForbidden ? "prepare subPath" : "create subPath directory";
    return invalid({}, "failed to {} for volumeMount \"{}\" of container \"{}\"", step, binding.volume, container);
  }
  SPILLWAY_TRY(tree, clone_mount(part->fd.get(), of_machine));
  std::uint64_t attributes = MOUNT_ATTR_NOSUID;
  if (!of_machine || !S_ISCHR(part->status.st_mode)) attributes |= MOUNT_ATTR_NODEV;
  SPILLWAY_TRY_VOID(protect(tree.get(), attributes, true));
  if (binding.read_only) SPILLWAY_TRY_VOID(protect(tree.get(), MOUNT_ATTR_RDONLY, binding.recursively));
  return OpenedMount{std::move(tree), S_ISDIR(part->status.st_mode), binding.container_path};
}

Result<std::string> VolumeSet::bind_part(OpenedMount part) {
  const fs::path target = fs::path(fmt::format("{}-parts", options_.directory)) / std::to_string(next_part_++);
  std::error_code error;
  fs::create_directories(part.is_directory ? target : target.parent_path(), error);
  if (error) return errno_error(target.string(), error.value());
  if (!part.is_directory) {
    const UniqueFd file(::open(target.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return errno_error(target.string(), errno);
  }
  if (::syscall(SYS_move_mount, part.mount.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return errno_error(target.string(), errno);
  parts_.push_back(target.string());
  return target.string();
}

Result<std::string> VolumeSet::read_file(const std::string& volume, const std::string& path) const {
  const auto found = volumes_.find(volume);
  if (found == volumes_.end() || !found->second.root ||
      !std::holds_alternative<agent::EmptyDirectory>(found->second.setup.content))
    return make_error(ErrorCode::kNotFound, "volume \"{}\" is no empty directory of the pod", volume);
  const std::string below = path.substr(std::min(path.find_first_not_of('/'), path.size()));
  open_how how = {};
  how.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;  // a fifo that nothing writes does not hold the thread
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const UniqueFd fd(
      static_cast<int>(::syscall(SYS_openat2, found->second.root.get(), below.c_str(), &how, sizeof how)));
  if (!fd && errno == ENOENT)
    return make_error(ErrorCode::kNotFound, "{}: no such file in volume \"{}\"", path, volume);
  if (!fd) return errno_error(path, errno);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(path, errno);
  if (!S_ISREG(status.st_mode)) return invalid(path, "not a regular file");
  std::string text(agent::kVolumeFileMax + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(path, errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > agent::kVolumeFileMax)
    return make_error(ErrorCode::kRequestEntityTooLarge, "{}: more than {} bytes", path, agent::kVolumeFileMax);
  text.resize(length);
  return text;
}

Result<PlacedMount> VolumeSet::place(const agent::VolumeBinding& binding, const std::string& container) {
  const auto found = volumes_.find(binding.volume);
  if (found == volumes_.end() || !found->second.root)
    return invalid({}, "cannot find volume \"{}\" to mount into container \"{}\"", binding.volume, container);
  const Volume& volume = found->second;
  if (binding.sub_path.empty()) {
    return PlacedMount{volume.directory.empty() ? path_of_machine(volume.setup) : volume.directory, binding};
  }
  SPILLWAY_TRY(part, open(binding, container));
  SPILLWAY_TRY(target, bind_part(std::move(part)));
  return PlacedMount{std::move(target), binding};
}

}  // namespace spillway::host
