#include "host/volumes/path_walk.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <deque>

namespace spillway::host {
namespace {

constexpr int kLinksMax = 40;  // the kernel's limit

struct Component {
  std::string name;
  bool from_link = false;
};

void prepend(std::deque<Component>& to, std::string_view path, bool from_link) {
  std::vector<Component> parts;
  while (!path.empty()) {
    const auto slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (!name.empty() && name != ".") parts.push_back({std::string(name), from_link});
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  to.insert(to.begin(), parts.begin(), parts.end());
}

/// The rest of an absolute path below `base`; nullopt: it is elsewhere.
std::optional<std::string_view> below(std::string_view path, std::string_view base) {
  if (base.empty() || !path.starts_with(base)) return std::nullopt;
  path.remove_prefix(base.size());
  if (!path.empty() && path.front() != '/' && !base.ends_with('/')) return std::nullopt;
  return path;
}

class Walk {
 public:
  Walk(int directory, const WalkRules& rules) : directory_(directory), rules_(rules) {}

  Result<WalkedPath> run(std::string_view path) {
    Result<WalkedPath> found = walk(path);
    for (; !found && !made_in_.empty(); made_in_.pop_back())  // the last directory first; those that are not empty stay
      ::unlinkat(made_in_.back().parent.get(), made_in_.back().name.c_str(), AT_REMOVEDIR);
    return found;
  }

 private:
  struct MadeIn {
    UniqueFd parent;
    std::string name;
  };

  Result<WalkedPath> walk(std::string_view path) {
    prepend(rest_, path, false);
    while (!rest_.empty()) {
      const Component next = std::move(rest_.front());
      rest_.pop_front();
      SPILLWAY_TRY_VOID(step(next));
    }
    WalkedPath found;
    found.fd.reset(held_.empty() ? ::openat(directory_, ".", O_PATH | O_CLOEXEC)
                                 : ::fcntl(held_.back().get(), F_DUPFD_CLOEXEC, 3));
    if (!found.fd || ::fstat(found.fd.get(), &found.status) != 0) return errno_error(path, errno);
    found.made = std::move(made_);
    found.path = here();
    return found;
  }

  int top() const { return held_.empty() ? directory_ : held_.back().get(); }

  std::string here(std::string_view name = {}) const {
    std::string path;
    for (const std::string& each : names_) path += fmt::format("{}{}", path.empty() ? "" : "/", each);
    if (!name.empty()) path += fmt::format("{}{}", path.empty() ? "" : "/", name);
    return path;
  }

  Outcome step(const Component& next) {
    if (next.name == "..") {
      if (held_.empty()) {
        if (rules_.base == "/") return {};
        return make_error(ErrorCode::kForbidden, "it leads out of the volume");
      }
      held_.pop_back();
      names_.pop_back();
      return {};
    }
    UniqueFd fd(::openat(top(), next.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!fd && errno == ENOENT && rules_.make && !next.from_link) {
      SPILLWAY_TRY(made, make_directory(next.name));
      fd = std::move(made);
    }
    if (!fd) return errno_error(here(next.name), errno);
    struct stat status = {};
    if (::fstat(fd.get(), &status) != 0) return errno_error(here(next.name), errno);
    if (S_ISLNK(status.st_mode)) return follow(fd.get(), status, next.name);
    if (!rest_.empty() && !S_ISDIR(status.st_mode)) return errno_error(here(next.name), ENOTDIR);
    held_.push_back(std::move(fd));
    names_.push_back(next.name);
    return {};
  }

  /// Checks if the rest of the path, from `name` on, may be made.
  Outcome may_make(const std::string& name) const {
    if (!rules_.make->check) return {};
    std::string rest = name;
    for (const Component& each : rest_) rest += "/" + each.name;
    return rules_.make->check(top(), rest);
  }

  Result<UniqueFd> make_directory(const std::string& name) {
    SPILLWAY_TRY_VOID(may_make(name));
    UniqueFd parent(::openat(top(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!parent) return errno_error(here(name), errno);
    if (::mkdirat(top(), name.c_str(), rules_.make->mode & 0777) != 0) return errno_error(here(name), errno);
    made_in_.push_back({std::move(parent), name});
    UniqueFd fd(::openat(top(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // A file that was put in its place meanwhile is not ours to change.
    struct stat status = {};
    if (!fd || ::fstat(fd.get(), &status) != 0) return errno_error(here(name), errno);
    if (status.st_uid != ::geteuid()) return errno_error(here(name), EEXIST);
    if (::fchown(fd.get(), rules_.make->uid, rules_.make->gid) != 0 || ::fchmod(fd.get(), rules_.make->mode) != 0)
      return errno_error(here(name), errno);
    made_.push_back(here(name));
    return fd;
  }

  Outcome follow(int link, const struct stat& status, const std::string& name) {
    if (++links_ > kLinksMax) return errno_error(here(name), ELOOP);
    if (rules_.links == WalkRules::Links::kOfRoot && status.st_uid != 0)
      return make_error(ErrorCode::kForbidden, "{}: a link that is not root's is not followed", here(name));
    std::array<char, PATH_MAX> target;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const ssize_t size = ::readlinkat(link, "", target.data(), target.size());
    if (size < 0) return errno_error(here(name), errno);
    std::string_view path(target.data(), static_cast<std::size_t>(size));
    if (path.starts_with('/')) {
      const auto inside = below(path, rules_.base);
      if (!inside) return make_error(ErrorCode::kForbidden, "it leads out of the volume");
      held_.clear();
      names_.clear();
      path = *inside;
    }
    prepend(rest_, path, true);
    return {};
  }

  int directory_;
  const WalkRules& rules_;
  std::deque<Component> rest_;
  std::vector<UniqueFd> held_;
  std::vector<std::string> names_;
  std::vector<std::string> made_;
  std::vector<MadeIn> made_in_;
  int links_ = 0;
};

}  // namespace

Result<WalkedPath> walk_path(int directory, std::string_view path, const WalkRules& rules) {
  return Walk(directory, rules).run(path);
}

}  // namespace spillway::host
