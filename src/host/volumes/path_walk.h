// A path opened component by component below a directory that is held open, in places where pods can put links: nothing
// above that directory is ever reached, and nothing is looked up twice.
// Thread: any; may wait for a file system. Source: openat(2); spec "Pod lifecycle", 6.10, 7.4.
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

struct WalkRules {
  /// The path of the directory: absolute links into it are followed as if they were relative. Empty: none is.
  std::string base;
  enum class Links { kAll, kOfRoot } links = Links::kAll;  // kOfRoot: links that only root can have made

  /// Mode and owner of directories that are made; directories that a link names are not made.
  struct Made {
    mode_t mode = 0755;
    uid_t uid = 0;
    gid_t gid = 0;
    /// Asked before each is made: `parent` is the last directory of the path that is there, `rest` the components below
    /// it. An error ends the walk. Empty: all may be made.
    std::function<Outcome(int parent, std::string_view rest)> check = {};
  };

  std::optional<Made> make = {};
};

struct WalkedPath {
  UniqueFd fd;  // O_PATH
  struct stat status = {};
  std::vector<std::string> made;  // directories, relative to the beginning, without links
  std::string path;               // path of `fd`, in the form of the walked path
};

/// kForbidden: the path leaves the directory, or a link may not be followed. kNotFound: a component does not exist.
/// Else the error of the kernel or of the rules. Errors name the component. After an error all made directories are
/// removed.
Result<WalkedPath> walk_path(int directory, std::string_view path, const WalkRules& rules);

}  // namespace spillway::host
