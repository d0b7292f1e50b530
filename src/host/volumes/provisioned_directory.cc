#include "host/volumes/provisioned_directory.h"

#include "host/kernel/kernel_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

constexpr mode_t kVolumeMode = 0777;
constexpr mode_t kFolderMode = 0700;
constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::string_view kRemovedPrefix = ".removed-";

Outcome check_volume_name(std::string_view name) {
  const bool is_plain = !name.empty() && name.size() <= NAME_MAX - kRemovedPrefix.size() && !name.starts_with('.') &&
                        !name.contains('/') && !name.contains('\0');
  if (is_plain) return {};
  return invalid({}, "\"{}\" cannot name the directory of a volume", name);
}

Result<std::vector<std::string>> entries_of(int directory) {
  const int listed = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(listed < 0 ? nullptr : ::fdopendir(listed), ::closedir);
  if (!entries) return errno_error("volume", errno);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

/// A folder of root's that holds trees on their way out, all at the same depth: a folder within a tree is moved up
/// before it is listed. A mount cannot be moved, so what is mounted there is never entered.
class Removal {
 public:
  explicit Removal(UniqueFd bin) : bin_(std::move(bin)) {}

  Outcome move_in(int from, const std::string& name) {
    while (true) {
      std::string place = std::to_string(next_++);
      if (::renameat(from, name.c_str(), bin_.get(), place.c_str()) == 0) {
        waiting_.push_back(std::move(place));
        return {};
      }
      if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return errno_error(name, errno);
    }
  }

  Outcome run() {
    SPILLWAY_TRY(left, entries_of(bin_.get()));
    for (std::string& each : left) {
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(each.data(), each.data() + each.size(), number);
      if (error == std::errc() && number >= next_) next_ = number + 1;
    }
    waiting_ = std::deque<std::string>(std::move_iterator(left.begin()), std::move_iterator(left.end()));
    Outcome first;
    while (!waiting_.empty()) {
      const std::string name = std::move(waiting_.front());
      waiting_.pop_front();
      if (const Outcome removed = remove(name); first && !removed) first = removed;
    }
    return first;
  }

 private:
  Outcome remove(const std::string& name) {
    if (::unlinkat(bin_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
    const UniqueFd tree(::openat(bin_.get(), name.c_str(), kOpenFolder));
    if (!tree) return errno_error(name, errno);
    SPILLWAY_TRY(names, entries_of(tree.get()));
    for (const std::string& each : names) {
      if (::unlinkat(tree.get(), each.c_str(), 0) == 0 || errno == ENOENT) continue;
      if (errno != EISDIR) return errno_error(each, errno);
      if (::unlinkat(tree.get(), each.c_str(), AT_REMOVEDIR) == 0) continue;
      if (errno != ENOTEMPTY && errno != EEXIST) return errno_error(each, errno);
      SPILLWAY_TRY_VOID(move_in(tree.get(), each));
    }
    if (::unlinkat(bin_.get(), name.c_str(), AT_REMOVEDIR) != 0) return errno_error(name, errno);
    return {};
  }

  UniqueFd bin_;
  std::uint64_t next_ = 0;
  std::deque<std::string> waiting_;
};

}  // namespace

std::string provisioned_folder(const std::string& state_dir) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(state_dir, ignored);
  return (whole / "local-volumes").lexically_normal().string();
}

Outcome make_provisioned(const std::string& folder, const std::string& name) {
  SPILLWAY_TRY_VOID(check_volume_name(name));
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
  if (error) return errno_error(folder, error.value());
  if (::mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) return errno_error(folder, errno);
  const UniqueFd above(::open(folder.c_str(), kOpenFolder));
  if (!above) return errno_error(folder, errno);
  if (::mkdirat(above.get(), name.c_str(), kFolderMode) != 0) {
    if (errno != EEXIST) return errno_error(name, errno);
    const Result<UniqueFd> there = open_provisioned(folder, name);
    return there ? Outcome() : Outcome(there.error());
  }
  const UniqueFd made(::openat(above.get(), name.c_str(), kOpenFolder));
  if (!made || ::fchmod(made.get(), kVolumeMode) != 0) return errno_error(name, errno);
  return {};
}

Result<UniqueFd> open_provisioned(const std::string& folder, const std::string& name) {
  SPILLWAY_TRY_VOID(check_volume_name(name));
  const UniqueFd above(::open(folder.c_str(), kOpenFolder));
  if (!above) return errno_error(folder, errno);
  UniqueFd directory(::openat(above.get(), name.c_str(), kOpenFolder));
  if (!directory) return errno_error(name, errno);
  return directory;
}

Outcome remove_provisioned(const std::string& folder, const std::string& name) {
  SPILLWAY_TRY_VOID(check_volume_name(name));
  const UniqueFd above(::open(folder.c_str(), kOpenFolder));
  if (!above) return errno == ENOENT ? Outcome() : errno_error(folder, errno);
  const std::string bin = fmt::format("{}{}", kRemovedPrefix, name);
  if (::mkdirat(above.get(), bin.c_str(), kFolderMode) != 0 && errno != EEXIST) return errno_error(bin, errno);
  UniqueFd opened(::openat(above.get(), bin.c_str(), kOpenFolder));
  if (!opened) return errno_error(bin, errno);
  Removal removal(std::move(opened));
  struct stat there = {};
  if (::fstatat(above.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    SPILLWAY_TRY_VOID(removal.move_in(above.get(), name));
  } else if (errno != ENOENT) {
    return errno_error(name, errno);
  }
  SPILLWAY_TRY_VOID(removal.run());
  if (::unlinkat(above.get(), bin.c_str(), AT_REMOVEDIR) != 0) return errno_error(bin, errno);
  return {};
}

}  // namespace spillway::host
