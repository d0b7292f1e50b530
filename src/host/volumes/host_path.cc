#include "host/volumes/host_path.h"

#include "host/kernel/kernel_file.h"
#include "host/volumes/path_walk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <ranges>
#include <string_view>
#include <system_error>

namespace spillway::host {
namespace {

constexpr mode_t kMadeDirectory = 0755;
constexpr mode_t kMadeFile = 0644;

/// The check of a hostPath type; null: the type is unknown.
struct TypeRule {
  std::string_view type;
  std::string_view what;
  mode_t format;
};

constexpr TypeRule kTypes[] = {{"Directory", "a directory", S_IFDIR},
                               {"DirectoryOrCreate", "a directory", S_IFDIR},
                               {"File", "a file", S_IFREG},
                               {"FileOrCreate", "a file", S_IFREG},
                               {"Socket", "a socket file", S_IFSOCK},
                               {"CharDevice", "a character device", S_IFCHR},
                               {"BlockDevice", "a block device", S_IFBLK}};

bool is_at_or_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/' || folder.ends_with('/'));
}

Result<std::string> real_path(int fd) {
  std::error_code error;
  std::string real = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string();
  if (error) return errno_error("/proc/self/fd", error.value());
  return real;
}

/// `real` has no links.
Outcome check_hidden(const std::string& real, std::span<const std::string> hidden) {
  std::error_code error;
  for (const std::string& each : hidden) {
    const std::string kept = std::filesystem::weakly_canonical(each, error).string();
    if (error || kept.empty() || kept == "/") continue;
    if (is_at_or_below(real, kept) || is_at_or_below(kept, real))
      return make_error(ErrorCode::kForbidden, "hostPath {}: it holds files of this node that no pod sees", real);
  }
  return {};
}

Outcome check_hidden(int fd, std::span<const std::string> hidden) {
  SPILLWAY_TRY(real, real_path(fd));
  return check_hidden(real, hidden);
}

/// Checks a path before it is made: `rest` does not exist below `parent`, which does.
Outcome check_made(int parent, std::string_view rest, std::span<const std::string> hidden) {
  SPILLWAY_TRY(real, real_path(parent));
  for (const auto component : std::views::split(rest, '/'))
    if (std::string_view(component) == "..")
      return errno_error(rest, ENOENT);  // the parent of the missing directory does not exist
  return check_hidden(fmt::format("{}{}{}", real, real.ends_with('/') ? "" : "/", rest), hidden);
}

/// Made in a directory that is held open: `name` is not a link then. Not made where it would be refused.
Result<UniqueFd> make_file(int root, const std::string& path, const WalkRules& rules,
                           std::span<const std::string> hidden) {
  const auto slash = path.rfind('/');
  SPILLWAY_TRY(parent, walk_path(root, slash == std::string::npos ? "" : path.substr(0, slash), rules));
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  SPILLWAY_TRY_VOID(check_made(parent.fd.get(), name, hidden));
  const UniqueFd made(
      ::openat(parent.fd.get(), name.c_str(), O_CREAT | O_EXCL | O_RDONLY | O_NOFOLLOW | O_CLOEXEC, kMadeFile));
  if (!made) return errno_error(path, errno);
  UniqueFd fd;
  if (::fchmod(made.get(), kMadeFile) == 0)
    fd.reset(::openat(parent.fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (fd) return fd;
  const int why = errno;
  ::unlinkat(parent.fd.get(), name.c_str(), 0);
  return errno_error(path, why);
}

}  // namespace

Result<UniqueFd> open_host_path(const agent::HostPath& wanted, std::span<const std::string> hidden) {
  const TypeRule* rule = nullptr;
  for (const TypeRule& each : kTypes)
    if (each.type == wanted.type) rule = &each;
  if (rule == nullptr && !wanted.type.empty()) return invalid({}, "{} is an invalid volume type", wanted.type);
  const UniqueFd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return errno_error("/", errno);
  WalkRules rules{.base = "/", .links = WalkRules::Links::kOfRoot, .make = {}};
  const auto check = [&](int parent, std::string_view rest) { return check_made(parent, rest, hidden); };
  // Without a type nothing is checked, and container runtimes make a missing directory.
  if (wanted.type == "DirectoryOrCreate" || wanted.type.empty())
    rules.make = WalkRules::Made{.mode = kMadeDirectory, .check = check};
  Result<WalkedPath> found = walk_path(root.get(), wanted.path, rules);
  if (!found && found.error().code == ErrorCode::kNotFound && wanted.type == "FileOrCreate") {
    return make_file(root.get(), wanted.path, rules, hidden);
  }
  if (!found && found.error().code == ErrorCode::kNotFound && rule != nullptr)
    return invalid({}, "hostPath type check failed: {} is not {}", wanted.path, rule->what);
  if (!found) return found.error();
  SPILLWAY_TRY_VOID(check_hidden(found->fd.get(), hidden));
  if (rule != nullptr && (found->status.st_mode & S_IFMT) != rule->format)
    return invalid({}, "hostPath type check failed: {} is not {}", wanted.path, rule->what);
  return std::move(found->fd);
}

Result<UniqueFd> open_local_directory(const std::string& path, std::span<const std::string> hidden) {
  const UniqueFd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return errno_error("/", errno);
  const WalkRules rules{.base = "/", .links = WalkRules::Links::kOfRoot, .make = {}};
  Result<WalkedPath> found = walk_path(root.get(), path, rules);
  if (!found && found.error().code == ErrorCode::kNotFound) return invalid({}, "path \"{}\" does not exist", path);
  if (!found) return found.error();
  SPILLWAY_TRY_VOID(check_hidden(found->fd.get(), hidden));
  if (!S_ISDIR(found->status.st_mode)) return invalid({}, "only directory and block device are supported");
  UniqueFd directory(::openat(found->fd.get(), ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return errno_error(path, errno);
  return directory;
}

}  // namespace spillway::host
