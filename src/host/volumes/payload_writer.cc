#include "host/volumes/payload_writer.h"

#include "base/unique_fd.h"
#include "host/kernel/kernel_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

namespace spillway::host {
namespace {

constexpr const char* kData = "..data";
constexpr const char* kNextData = "..data_tmp";
constexpr int kNamesMax = 1000;  // directories that can be made within one second

using Files = std::map<std::string, agent::VolumeFile>;

std::string link_target(int directory, const std::string& name) {
  std::array<char, PATH_MAX> target;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t size = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  return size < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(size));
}

std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  const int listed = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(listed < 0 ? nullptr : ::fdopendir(listed), ::closedir);
  if (!entries) return names;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

/// Never leaves the tree: links are removed, not followed.
void remove_tree_at(int directory, const std::string& name) {
  if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return;
  const UniqueFd inside(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (inside)
    for (const std::string& each : names_in(inside.get())) remove_tree_at(inside.get(), each);
  ::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
}

std::string_view first_of(std::string_view path) {
  return path.substr(0, path.find('/'));
}

bool has_content(int directory, const std::string& path, const std::string& content) {
  const Result<std::string> there = read_file_at(directory, path);
  return there && *there == content;
}

/// Files below a directory, by their paths.
void list_files(int directory, const std::string& prefix, std::set<std::string>& into) {
  for (const std::string& name : names_in(directory)) {
    const std::string path = prefix.empty() ? name : fmt::format("{}/{}", prefix, name);
    const UniqueFd inside(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (inside) {
      list_files(inside.get(), path, into);
    } else {
      into.insert(path);
    }
  }
}

bool is_there(int directory, const std::string& data, const Files& files) {
  if (data.empty()) return false;
  const UniqueFd old(::openat(directory, data.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!old) return false;
  std::set<std::string> there;
  list_files(old.get(), {}, there);
  if (there.size() != files.size()) return false;
  for (const auto& [path, file] : files)
    if (!there.contains(path) || !has_content(old.get(), path, file.content)) return false;
  return true;
}

Outcome write_file(int directory, const std::string& path, const agent::VolumeFile& file, PayloadOwner owner) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (::mkdirat(directory, folder.c_str(), 0755) == 0) {
      if (::fchmodat(directory, folder.c_str(), 0755, 0) != 0 ||
          ::fchownat(directory, folder.c_str(), owner.first_user, owner.group, AT_SYMLINK_NOFOLLOW) != 0)
        return errno_error(folder, errno);
    } else if (errno != EEXIST) {
      return errno_error(folder, errno);
    }
  }
  const UniqueFd fd(::openat(directory, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return errno_error(path, errno);
  SPILLWAY_TRY_VOID(write_all(fd.get(), file.content, path));
  const uid_t user = owner.first_user + static_cast<uid_t>(file.owner.value_or(0));
  if (::fchown(fd.get(), user, owner.group) != 0 || ::fchmod(fd.get(), file.mode & 07777) != 0)
    return errno_error(path, errno);
  return {};
}

Result<std::string> make_generation(int directory, PayloadOwner owner, WallTime at) {
  const auto second = std::chrono::time_point_cast<std::chrono::seconds>(at).time_since_epoch().count();
  const std::string stamp = fmt::format("..{:%Y_%m_%d_%H_%M_%S}", fmt::gmtime(static_cast<std::time_t>(second)));
  for (int number = 0; number < kNamesMax; ++number) {
    std::string name = fmt::format("{}.{:09}", stamp, at.time_since_epoch().count() % 1'000'000 * 1000 + number);
    if (::mkdirat(directory, name.c_str(), 0755) != 0) {
      if (errno == EEXIST) continue;
      return errno_error(name, errno);
    }
    if (::fchmodat(directory, name.c_str(), 0755, 0) != 0 ||
        ::fchownat(directory, name.c_str(), owner.first_user, owner.group, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error(name, errno);
    return name;
  }
  return make_error(ErrorCode::kConflict, "{}: too many changes in one second", stamp);
}

Outcome fill(int directory, const std::string& generation, const Files& files, PayloadOwner owner,
             const std::function<Outcome(int)>& finish) {
  const UniqueFd inside(::openat(directory, generation.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!inside) return errno_error(generation, errno);
  for (const auto& [path, file] : files) SPILLWAY_TRY_VOID(write_file(inside.get(), path, file, owner));
  if (finish) SPILLWAY_TRY_VOID(finish(inside.get()));
  ::unlinkat(directory, kNextData, 0);
  if (::symlinkat(generation.c_str(), directory, kNextData) != 0) return errno_error(kNextData, errno);
  if (::renameat(directory, kNextData, directory, kData) != 0) return errno_error(kData, errno);
  return {};
}

}  // namespace

Result<bool> write_payload(int directory, const Files& files, PayloadOwner owner, WallTime at,
                           const std::function<Outcome(int)>& finish) {
  const std::string old = link_target(directory, kData);
  if (is_there(directory, old, files)) return false;
  SPILLWAY_TRY(generation, make_generation(directory, owner, at));
  if (const Outcome filled = fill(directory, generation, files, owner, finish); !filled) {
    remove_tree_at(directory, generation);
    return filled.error();
  }
  std::set<std::string> names;
  for (const auto& [path, file] : files) names.emplace(first_of(path));
  for (const std::string& name : names) {
    const std::string target = fmt::format("{}/{}", kData, name);
    if (link_target(directory, name) == target) continue;
    remove_tree_at(directory, name);
    if (::symlinkat(target.c_str(), directory, name.c_str()) != 0) return errno_error(name, errno);
  }
  for (const std::string& name : names_in(directory))
    if (name != kData && name != generation && !names.contains(name)) remove_tree_at(directory, name);
  return true;
}

}  // namespace spillway::host
