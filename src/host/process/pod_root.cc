#include "host/process/pod_root.h"

#include "host/kernel/kernel_file.h"
#include "host/kernel/namespace_child.h"

#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

/// Programs, libraries and settings of the machine. Missing folders are left out.
constexpr std::string_view kShownFolders[] = {"/usr",    "/bin", "/sbin", "/lib",       "/lib32",    "/lib64",
                                              "/libx32", "/etc", "/opt",  "/nix/store", "/gnu/store"};
/// Paths hidden from pods for their keys, even where every user may read them.
constexpr std::string_view kHiddenPaths[] = {"/etc/kubernetes", "/etc/spillway", "/etc/rancher", "/etc/ssh",
                                             "/etc/ssl/private"};
constexpr std::string_view kPlainDevices[] = {"null", "zero", "full", "random", "urandom", "tty"};
constexpr std::pair<std::string_view, std::string_view> kDeviceLinks[] = {
    {"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
    {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"},
};
constexpr std::string_view kEmptyFolders[] = {"/dev/pts", "/dev/shm", "/proc", "/sys", "/tmp",
                                              "/run",     "/var",     "/home", "/root"};
constexpr std::pair<std::string_view, std::string_view> kShownLinks[] = {{"/var/tmp", "/tmp"}, {"/var/run", "/run"}};

/// The directory in which a pod's root is assembled before it is moved to its place.
constexpr std::string_view kRoomFolder = "/run/spillway/room";

constexpr std::uint64_t kReadOnlyMount = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr int kDetach = 2;  // MNT_DETACH: sys/mount.h and linux/mount.h exclude each other

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

class RootBuilder {
 public:
  explicit RootBuilder(std::string base) : base_(std::move(base)) {}

  void folder(std::string_view path) {
    for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
      add({.kind = MountStep::Kind::kFolder, .target = at(path.substr(0, slash))});
      if (slash == std::string_view::npos) return;
    }
  }

  void link(std::string_view path, std::string_view to) {
    add({.kind = MountStep::Kind::kLink, .target = at(path), .source = std::string(to)});
  }

  /// A directory of the machine with all below it, or a link as it is.
  void show(std::string_view path) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(path, error);
    if (fs::is_symlink(status)) return link(path, fs::read_symlink(path, error).string());
    if (!fs::is_directory(status)) return;
    folder(path);
    bind(path, path, kReadOnlyMount);
    shown_.emplace_back(path);
  }

  void show_file(const std::string& file, const std::string& path, std::uint64_t attributes) {
    if (is_shown(path)) return;
    folder(fs::path(path).parent_path().string());
    add({.kind = MountStep::Kind::kFile, .target = at(path)});
    bind(file, path, attributes);
  }

  void hide(std::string_view path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error || !is_shown(real.string()) || is_hidden(real.string())) return;
    if (fs::is_directory(real, error)) {
      mount("tmpfs", real.string(), "mode=0,size=4k");
      hidden_.push_back(real.string());
      return;
    }
    add({.kind = MountStep::Kind::kBind, .target = at(real.string()), .source = "/dev/null"});
  }

  /// Mounts a new file system, read-only.
  void mount(const char* type, std::string_view path, const char* options = "") {
    add({.kind = MountStep::Kind::kMount,
         .target = at(path),
         .source = type,
         .type = type,
         .options = options,
         .flags = kPlainFiles | MS_RDONLY});
  }

  void add(MountStep step) { steps_.push_back(std::move(step)); }

  std::string at(std::string_view path) const { return base_ + std::string(path); }

  std::vector<MountStep> take() { return std::move(steps_); }

 private:
  bool is_shown(std::string_view path) const {
    return std::ranges::any_of(shown_, [&](const std::string& each) { return is_below(path, each); });
  }

  /// True for a path in a covered directory, where nothing is left to cover.
  bool is_hidden(std::string_view path) const {
    return std::ranges::any_of(hidden_, [&](const std::string& each) { return is_below(path, each); });
  }

  void bind(std::string_view source, std::string_view path, std::uint64_t attributes) {
    add({.kind = MountStep::Kind::kBind, .target = at(path), .source = std::string(source)});
    add({.kind = MountStep::Kind::kProtectAll, .target = at(path), .attributes = attributes});
  }

  std::string base_;
  std::vector<MountStep> steps_;
  std::vector<std::string> shown_;
  std::vector<std::string> hidden_;  // directories
};

/// The target of a link in the view: one of its own, or one of this machine that is shown.
std::optional<std::string> link_in_view(const std::string& path) {
  for (const auto& [from, to] : kShownLinks)
    if (path == from) return std::string(to);
  const bool shown =
      std::ranges::any_of(kShownFolders, [&](std::string_view each) { return path == each || is_below(path, each); });
  std::error_code error;
  if (!shown || !fs::is_symlink(path, error)) return std::nullopt;
  return fs::read_symlink(path, error).string();
}

/// `folder` entry by entry in a file system of its own, which takes its place. Entries keep what covers and protects
/// them.
void add_room(RoomSteps& steps, const std::string& folder, const std::string& room) {
  using Kind = MountStep::Kind;
  std::vector<MountStep>& before = steps.before;
  if (before.empty()) {
    before.push_back({.kind = Kind::kFolder, .target = fs::path(kRoomFolder).parent_path().string()});
    before.push_back({.kind = Kind::kFolder, .target = std::string(kRoomFolder)});
  }
  before.push_back({.kind = Kind::kFolder, .target = room});
  before.push_back({.kind = Kind::kMount,
                    .target = room,
                    .source = "spillway",
                    .type = "tmpfs",
                    .options = "mode=0755,size=1m",
                    .flags = MS_NOSUID | MS_NODEV});
  std::error_code error;
  std::vector<fs::directory_entry> entries(fs::directory_iterator(folder, error), fs::directory_iterator());
  std::ranges::sort(entries);
  for (const fs::directory_entry& entry : entries) {
    const std::string at = fmt::format("{}/{}", room, entry.path().filename().string());
    if (entry.is_symlink(error)) {
      before.push_back({.kind = Kind::kLink, .target = at, .source = fs::read_symlink(entry.path(), error).string()});
      continue;
    }
    before.push_back({.kind = entry.is_directory(error) ? Kind::kFolder : Kind::kFile, .target = at});
    before.push_back({.kind = Kind::kBind, .target = at, .source = entry.path().string()});
  }
  before.push_back({.kind = Kind::kShift, .target = folder, .source = room});
  steps.after.push_back({.kind = Kind::kProtect, .target = folder, .attributes = MOUNT_ATTR_RDONLY});
}

enum RootStep { kRootMounts, kRootSteps, kRootEntry };

/// Makes `base` the root. Where the root cannot be exchanged (it is the kernel's first one), it is covered.
bool change_root(const std::string& base) {
  if (::syscall(SYS_chdir, base.c_str()) != 0) return false;
  if (::syscall(SYS_pivot_root, ".", ".") == 0) {
    if (::syscall(SYS_umount2, ".", kDetach) != 0) return false;
  } else if (errno != EINVAL || ::syscall(SYS_mount, ".", "/", nullptr, MS_MOVE, nullptr) != 0 ||
             ::syscall(SYS_chroot, ".") != 0) {
    return false;
  }
  return ::syscall(SYS_chdir, "/") == 0;
}

}  // namespace

std::vector<MountStep> pod_root_steps(const PodRootOptions& options) {
  RootBuilder root(options.scratch);
  root.add({.kind = MountStep::Kind::kMount,
            .target = options.scratch,
            .source = "spillway",
            .type = "tmpfs",
            .options = "mode=0755,size=1m",
            .flags = kPlainFiles});
  for (const std::string_view path : kShownFolders) root.show(path);
  for (const std::string_view path : kEmptyFolders) root.folder(path);
  for (const auto& [path, to] : kShownLinks) root.link(path, to);
  for (const std::string_view name : kPlainDevices) {
    const std::string path = "/dev/" + std::string(name);
    if (fs::exists(path)) root.show_file(path, path, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  }
  for (const auto& [name, to] : kDeviceLinks) root.link("/dev/" + std::string(name), to);
  root.mount("sysfs", "/sys");
  if (fs::exists("/sys/firmware")) root.mount("tmpfs", "/sys/firmware", "mode=0755,size=4k");
  if (!options.program.empty()) {
    root.show_file(options.program, options.program, kReadOnlyMount);
    root.show_file(options.program, fmt::format("{}/spillway", kProgramFolder), kReadOnlyMount);
  }
  // Name servers: often a link to a file that a daemon writes.
  std::error_code error;
  const fs::path servers = fs::canonical("/etc/resolv.conf", error);
  if (!error) root.show_file(servers.string(), servers.string(), kReadOnlyMount);
  for (const std::string_view path : kHiddenPaths) root.hide(path);
  for (const std::string& path : options.hidden) root.hide(path);
  root.add({.kind = MountStep::Kind::kProtect, .target = options.scratch, .attributes = MOUNT_ATTR_RDONLY});
  return root.take();
}

std::string path_in_view(std::string_view path) {
  constexpr int kLinksMax = 40;
  int links = 0;
  fs::path rest = fs::path("/") / fs::path(path).relative_path();
  fs::path made = "/";
  while (true) {
    rest = rest.lexically_normal();
    made = "/";
    bool again = false;
    for (auto part = rest.begin(); part != rest.end(); ++part) {
      const fs::path next = made / *part;
      const std::optional<std::string> target = link_in_view(next.string());
      if (!target || ++links > kLinksMax) {
        made = next;
        continue;
      }
      fs::path onward = made / *target;  // an absolute link replaces the path
      for (++part; part != rest.end(); ++part) onward /= *part;
      rest = onward;
      again = true;
      break;
    }
    if (!again) break;
  }
  std::string text = made.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

RoomSteps room_steps(const std::vector<std::string>& paths) {
  RoomSteps steps;
  std::vector<std::string> opened;
  for (const std::string& path : paths) {
    std::error_code error;
    const auto shown = std::ranges::find_if(kShownFolders, [&](std::string_view each) { return is_below(path, each); });
    if (shown == std::ranges::end(kShownFolders) || !fs::is_directory(*shown, error) || fs::exists(path, error))
      continue;
    fs::path there = fs::path(path).parent_path();
    while (!fs::exists(there, error)) there = there.parent_path();
    const std::string folder = there.string();
    if (std::ranges::find(opened, folder) != opened.end()) continue;
    const std::string room = fmt::format("{}/{}", kRoomFolder, opened.size());
    add_room(steps, folder, room);
    opened.push_back(folder);
  }
  return steps;
}

Result<PodRoot> PodRoot::create(const PodRootOptions& options) {
  const std::vector<MountStep> steps = pod_root_steps(options);
  const auto build = [&](NamespaceChild::Failure& failure) {
    failure = {.what = kRootMounts};
    if (::syscall(SYS_mount, nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      failure.error = errno;
      return false;
    }
    if (const auto broken = run_mount_steps(steps)) {
      failure = {.what = kRootSteps, .error = broken->error, .index = broken->step};
      return false;
    }
    failure = {.what = kRootEntry};
    if (change_root(options.scratch)) return true;
    failure.error = errno;
    return false;
  };
  const auto describe_failure = [&](const NamespaceChild::Failure& failure) {
    Error error = errno_error({}, failure.error);
    if (failure.what == kRootSteps)
      return make_error(error.code, "{}", describe(steps.at(failure.index), failure.error));
    error.at = failure.what == kRootEntry ? "root of pods" : "mounts of our own";
    return error;
  };
  const auto child = NamespaceChild::start(CLONE_NEWNS, build, describe_failure);
  if (!child) return Error{child.error().code, child.error().text(), child.error().at.empty() ? "mount namespace" : ""};
  SPILLWAY_TRY(mounts, child->open("mnt"));
  return PodRoot(std::move(mounts));
}

std::string own_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error || !fs::exists(program, error) ? std::string() : program.string();
}

}  // namespace spillway::host
