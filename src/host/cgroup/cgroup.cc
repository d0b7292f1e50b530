#include "host/cgroup/cgroup.h"

#include "host/kernel/kernel_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>

namespace spillway::host {
namespace {

constexpr std::array kControllers = {Controller::kMemory, Controller::kCpu, Controller::kCpuacct, Controller::kPids,
                                     Controller::kFreezer};
constexpr std::size_t kNowhere = ~std::size_t{0};

/// mountinfo writes blanks, tabs, line ends and backslashes as \ooo.
std::string unescape_octal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, value, 8).ptr == text.data() + i + 4) {
      out += static_cast<char>(value);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

template <typename Range, typename Value>
bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

struct MountLine {
  std::string mount_point;
  std::string_view fs_type;
  std::string_view super_options;
};

std::optional<MountLine> parse_mount_line(std::string_view line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> left = split(line.substr(0, dash), ' ');
  const std::vector<std::string_view> right = split(line.substr(dash + 3), ' ');
  if (left.size() < 5 || right.size() < 2) return std::nullopt;
  return MountLine{unescape_octal(left[4]), right[0], right.back()};
}

}  // namespace

std::string_view to_string(Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return "memory";
    case Controller::kCpu:
      return "cpu";
    case Controller::kCpuacct:
      return "cpuacct";
    case Controller::kPids:
      return "pids";
    case Controller::kFreezer:
      return "freezer";
    case Controller::kCpuset:
      return "cpuset";
    case Controller::kHugetlb:
      return "hugetlb";
  }
  return "unknown";
}

Result<CgroupMounts> parse_cgroup_mounts(std::string_view mountinfo, const ExtraControllers& extra) {
  CgroupMounts mounts;
  mounts.extra = extra;
  std::vector<Controller> wanted(kControllers.begin(), kControllers.end());
  wanted.insert(wanted.end(), extra.begin(), extra.end());
  while (!mountinfo.empty()) {
    const std::optional<MountLine> line = parse_mount_line(take_line(mountinfo));
    if (!line) continue;
    if (line->fs_type == "cgroup2" && mounts.unified.empty()) mounts.unified = line->mount_point;
    if (line->fs_type != "cgroup") continue;
    for (const std::string_view option : split(line->super_options, ',')) {
      for (const Controller controller : wanted) {
        if (option == to_string(controller)) mounts.v1.try_emplace(controller, line->mount_point);
      }
    }
  }
  if (mounts.v1.contains(Controller::kMemory)) {
    mounts.version = CgroupVersion::kV1;
    return mounts;
  }
  if (mounts.unified.empty())
    return make_error(ErrorCode::kNotFound,
                      "no cgroup hierarchy with a memory controller is mounted; expected cgroup2 on "
                      "/sys/fs/cgroup, or version 1 with the memory controller");
  mounts.version = CgroupVersion::kV2;
  return mounts;
}

Result<CgroupMounts> read_cgroup_mounts(const ExtraControllers& extra) {
  SPILLWAY_TRY(text, read_file("/proc/self/mountinfo"));
  return parse_cgroup_mounts(text, extra);
}

std::string parse_unified_path(std::string_view proc_cgroup) {
  while (!proc_cgroup.empty()) {
    const std::string_view line = take_line(proc_cgroup);
    if (line.starts_with("0::")) return std::string(line.substr(3));
  }
  return "/";
}

std::string parse_memory_path(std::string_view proc_cgroup, CgroupVersion version) {
  if (version == CgroupVersion::kV2) return parse_unified_path(proc_cgroup);
  while (!proc_cgroup.empty()) {  // "4:memory:/user.slice"; several controllers may share a hierarchy
    std::string_view line = take_line(proc_cgroup);
    line.remove_prefix(std::min(line.size(), line.find(':') + 1));
    const std::size_t end = line.find(':');
    if (end == std::string_view::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(0, end));
    if (controllers.contains(",memory,")) return std::string(line.substr(end + 1));
  }
  return "/";
}

Result<CgroupDir> CgroupDir::open_root(const CgroupMounts& mounts) {
  auto layout = std::make_shared<Layout>();
  layout->version = mounts.version;
  if (mounts.version == CgroupVersion::kV2) {
    Hierarchy& only = layout->hierarchies.emplace_back(mounts.unified, std::vector<Controller>());
    only.controllers.assign(kControllers.begin(), kControllers.end());
    only.controllers.insert(only.controllers.end(), mounts.extra.begin(), mounts.extra.end());
  } else {
    for (const auto& [controller, mount] : mounts.v1) {
      const auto same = std::ranges::find(layout->hierarchies, mount, &Hierarchy::mount);
      if (same != layout->hierarchies.end())
        same->controllers.push_back(controller);
      else
        layout->hierarchies.push_back({mount, {controller}});
    }
  }
  CgroupDir unopened;
  unopened.layout_ = std::move(layout);
  return unopened.hierarchy_root();
}

Result<CgroupDir> CgroupDir::hierarchy_root() const {
  CgroupDir root;
  root.layout_ = layout_;
  for (const Hierarchy& hierarchy : layout_->hierarchies) {
    UniqueFd fd(::open(hierarchy.mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return errno_error(hierarchy.mount, errno);
    root.parts_.push_back(std::move(fd));
  }
  return root;
}

std::size_t CgroupDir::index_of(Controller controller) const {
  for (std::size_t i = 0; layout_ && i < layout_->hierarchies.size(); ++i)
    if (contains(layout_->hierarchies[i].controllers, controller)) return i;
  return kNowhere;
}

CgroupVersion CgroupDir::version() const {
  return layout_->version;
}

std::string CgroupDir::file_path(Controller controller) const {
  const std::size_t index = index_of(controller);
  return (index == kNowhere ? std::string() : layout_->hierarchies[index].mount) + path_;
}

std::string CgroupDir::name() const {
  return path_.substr(path_.rfind('/') + 1);
}

Result<CgroupDir> CgroupDir::open_below(const std::string& name, bool create) const {
  if (name.empty() || name == "." || name == ".." || name.contains('/'))
    return invalid("cgroup", "\"{}\" is no name of a cgroup", name);
  CgroupDir child;
  child.layout_ = layout_;
  child.path_ = path_ + "/" + name;
  bool exists = false;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::string where = layout_->hierarchies[i].mount + child.path_;
    if (!create && !parts_[i]) {  // this hierarchy lacks the parent, too
      child.parts_.emplace_back();
      continue;
    }
    if (create && ::mkdirat(parts_[i].get(), name.c_str(), 0755) != 0 && errno != EEXIST)
      return errno_error("mkdir " + where, errno);
    UniqueFd fd(::openat(parts_[i].get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd && (create || errno != ENOENT)) return errno_error(where, errno);
    exists = exists || fd;
    child.parts_.push_back(std::move(fd));
  }
  if (!exists) return errno_error(file_path(Controller::kMemory) + "/" + name, ENOENT);
  return child;
}

Outcome CgroupDir::inherit_cpuset(const CgroupDir& child) const {
  if (layout_->version == CgroupVersion::kV2 || index_of(Controller::kCpuset) == kNowhere) return {};
  for (const char* file : {"cpuset.cpus", "cpuset.mems"}) {
    SPILLWAY_TRY(own, child.read(Controller::kCpuset, file));
    if (own.find_first_not_of("\n") != std::string::npos) continue;
    SPILLWAY_TRY(inherited, read(Controller::kCpuset, file));
    std::string_view rest = inherited;
    SPILLWAY_TRY_VOID(child.write(Controller::kCpuset, file, take_line(rest)));
  }
  return {};
}

Result<CgroupDir> CgroupDir::create_child(const std::string& name) const {
  SPILLWAY_TRY(child, open_below(name, true));
  SPILLWAY_TRY_VOID(inherit_cpuset(child));
  return child;
}

Result<CgroupDir> CgroupDir::open_child(const std::string& name) const {
  return open_below(name, false);
}

Result<CgroupDir> CgroupDir::create_path(std::string_view path) const {
  CgroupDir here;
  const CgroupDir* parent = this;
  for (const std::string_view name : split(path, '/')) {
    SPILLWAY_TRY_VOID(parent->delegate_controllers());
    SPILLWAY_TRY(next, parent->create_child(std::string(name)));
    here = std::move(next);
    parent = &here;
  }
  if (!here) return invalid("cgroup", "\"{}\" is no path of a cgroup", path);
  return here;
}

Result<CgroupDir> CgroupDir::open_path(std::string_view path) const {
  CgroupDir here;
  const CgroupDir* parent = this;
  for (const std::string_view name : split(path, '/')) {
    SPILLWAY_TRY(next, parent->open_child(std::string(name)));
    here = std::move(next);
    parent = &here;
  }
  if (!here) return invalid("cgroup", "\"{}\" is no path of a cgroup", path);
  return here;
}

Outcome CgroupDir::remove_child(const std::string& name) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i]) continue;
    if (::unlinkat(parts_[i].get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
      return errno_error("rmdir " + layout_->hierarchies[i].mount + path_ + "/" + name, errno);
  }
  return {};
}

Result<std::vector<std::string>> CgroupDir::children() const {
  std::set<std::string> names;
  for (const UniqueFd& part : parts_) {
    if (!part) continue;
    UniqueFd copy(::openat(part.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!copy) return errno_error(path_, errno);
    DIR* dir = ::fdopendir(copy.get());
    if (dir == nullptr) return errno_error(path_, errno);
    static_cast<void>(copy.release());
    while (const dirent* entry = ::readdir(dir)) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
      const std::string_view name = entry->d_name;
      if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace(name);
    }
    ::closedir(dir);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Result<std::vector<pid_t>> CgroupDir::pids() const {
  std::set<pid_t> found;
  for (const UniqueFd& part : parts_) {
    if (!part) continue;
    SPILLWAY_TRY(text, read_file_at(part.get(), "cgroup.procs"));
    for (std::string_view rest = text; !rest.empty();) {
      const std::optional<std::uint64_t> pid = parse_number(take_line(rest));
      if (pid && *pid > 0) found.insert(static_cast<pid_t>(*pid));  // 0: a process outside our pid namespace
    }
  }
  return std::vector<pid_t>(found.begin(), found.end());
}

bool CgroupDir::has(Controller controller) const {
  const std::size_t index = index_of(controller);
  if (index == kNowhere || !parts_[index]) return false;
  if (layout_->version == CgroupVersion::kV1) return true;
  // these two are part of version 2 itself
  if (controller == Controller::kFreezer || controller == Controller::kCpuacct) return true;
  const Result<std::string> enabled = read_file_at(parts_[index].get(), "cgroup.controllers");
  if (!enabled) return false;
  std::string_view text = *enabled;
  return contains(split(take_line(text), ' '), to_string(controller));
}

int CgroupDir::fd(Controller controller) const {
  const std::size_t index = index_of(controller);
  return index == kNowhere ? -1 : parts_[index].get();
}

std::vector<int> CgroupDir::fds() const {
  std::vector<int> all;
  for (const UniqueFd& part : parts_)
    if (part) all.push_back(part.get());
  return all;
}

Result<std::string> CgroupDir::read(Controller controller, const std::string& file) const {
  const int directory = fd(controller);
  if (directory < 0) return invalid(file, "no {} hierarchy holds {}", to_string(controller), path_);
  Result<std::string> text = read_file_at(directory, file);
  if (!text) return Error{text.error().code, text.error().message, file_path(controller) + "/" + file};
  return text;
}

Outcome CgroupDir::write(Controller controller, const std::string& file, std::string_view text) const {
  const int directory = fd(controller);
  if (directory < 0) return invalid(file, "no {} hierarchy holds {}", to_string(controller), path_);
  const Outcome written = write_file_at(directory, file, text);
  if (!written)
    return Error{written.error().code, fmt::format("{} (writing \"{}\")", written.error().message, text),
                 file_path(controller) + "/" + file};
  return {};
}

Outcome CgroupDir::delegate_controllers() const {
  if (layout_->version == CgroupVersion::kV1) return {};
  SPILLWAY_TRY(available, read(Controller::kMemory, "cgroup.controllers"));
  SPILLWAY_TRY(enabled, read(Controller::kMemory, "cgroup.subtree_control"));
  std::string_view available_line = available;
  std::string_view enabled_line = enabled;
  const std::vector<std::string_view> can = split(take_line(available_line), ' ');
  const std::vector<std::string_view> does = split(take_line(enabled_line), ' ');
  std::vector<Controller> wanted{Controller::kMemory, Controller::kPids, Controller::kCpu};
  for (const Controller extra : {Controller::kCpuset, Controller::kHugetlb})
    if (index_of(extra) != kNowhere) wanted.push_back(extra);
  for (const Controller controller : wanted) {
    if (contains(does, to_string(controller))) continue;
    const bool required = controller == Controller::kMemory;
    if (!contains(can, to_string(controller))) {
      if (required)
        return make_error(ErrorCode::kNotFound,
                          "the memory controller is not delegated to {}: cgroup.controllers there says "
                          "\"{}\"",
                          file_path(Controller::kMemory), fmt::join(can, " "));
      continue;
    }
    const Outcome written =
        write(Controller::kMemory, "cgroup.subtree_control", fmt::format("+{}", to_string(controller)));
    if (!written && required) return written.error();
  }
  return {};
}

Outcome CgroupDir::check_writable() const {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (::faccessat(parts_[i].get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
      return errno_error(layout_->hierarchies[i].mount + path_, errno);
  return {};
}

Outcome CgroupDir::lock(const LockPatience& again) const {
  const Outcome locked = lock_exclusively(fd(Controller::kMemory), again);
  if (locked) return {};
  if (locked.error().code == ErrorCode::kConflict)
    return make_error(ErrorCode::kConflict, "{} belongs to a running process", file_path(Controller::kMemory));
  return Error{locked.error().code, locked.error().text(), file_path(Controller::kMemory)};
}

bool CgroupDir::is_same_as(const CgroupDir& other) const {
  struct stat mine = {};
  struct stat theirs = {};
  return ::fstat(fd(Controller::kMemory), &mine) == 0 && ::fstat(other.fd(Controller::kMemory), &theirs) == 0 &&
         mine.st_ino == theirs.st_ino && mine.st_dev == theirs.st_dev;
}

bool CgroupDir::is_child_of(const CgroupDir& parent) const {
  struct stat held = {};
  struct stat named = {};
  const int own = fd(Controller::kMemory);
  const int above = parent.fd(Controller::kMemory);
  if (own < 0 || above < 0) return false;
  return ::fstat(own, &held) == 0 && ::fstatat(above, name().c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace spillway::host
