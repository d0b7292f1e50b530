// Control groups, both versions behind one value: a cgroup is held as directory descriptors, one per hierarchy, so a
// namesake made later is never touched by mistake. Version 1 is spread over one hierarchy per controller, version 2 has
// one; a hybrid machine counts as version 1 when its memory controller lives there.
// Thread: any (one at a time). Source: kernel documents "cgroup-v2.rst", "cgroup-v1/".
#pragma once

#include "base/error.h"
#include "base/file_lock.h"
#include "base/unique_fd.h"

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

enum class CgroupVersion { kV1, kV2 };

/// On version 2 all controllers are in the one hierarchy.
enum class Controller { kMemory, kCpu, kCpuacct, kPids, kFreezer, kCpuset, kHugetlb };

/// Controllers used besides those that always are: cgroups are made in their hierarchy (version 1), they are enabled
/// (version 2). kCpuset where containers are bound to CPUs or NUMA nodes, kHugetlb where there are huge pages.
using ExtraControllers = std::vector<Controller>;

std::string_view to_string(Controller controller);

/// The mount points of the hierarchies.
struct CgroupMounts {
  CgroupVersion version = CgroupVersion::kV2;
  std::string unified;                   // mount point of version 2
  std::map<Controller, std::string> v1;  // mount point of each controller of version 1
  ExtraControllers extra;
  friend bool operator==(const CgroupMounts&, const CgroupMounts&) = default;
};

/// Parses the text of /proc/self/mountinfo. kNotFound: no hierarchy with a memory controller.
Result<CgroupMounts> parse_cgroup_mounts(std::string_view mountinfo, const ExtraControllers& extra = {});
Result<CgroupMounts> read_cgroup_mounts(const ExtraControllers& extra = {});

/// Parses the text of /proc/self/cgroup: the path of this process in the version 2 hierarchy ("/" if it has none).
std::string parse_unified_path(std::string_view proc_cgroup);
/// Parses the cgroup of a process in the hierarchy that accounts memory.
std::string parse_memory_path(std::string_view proc_cgroup, CgroupVersion version);

class CgroupDir {
 public:
  CgroupDir() = default;

  static Result<CgroupDir> open_root(const CgroupMounts& mounts);

  /// The root of the hierarchies this cgroup is in.
  Result<CgroupDir> hierarchy_root() const;

  /// The child of that name in every hierarchy, made where it is missing.
  Result<CgroupDir> create_child(const std::string& name) const;
  /// kNotFound if no hierarchy has it.
  Result<CgroupDir> open_child(const std::string& name) const;
  /// A path of several names, created or opened one by one. Empty segments are skipped.
  Result<CgroupDir> create_path(std::string_view path) const;
  /// Opens the cgroup in every hierarchy that has it. kNotFound if none has it.
  Result<CgroupDir> open_path(std::string_view path) const;
  /// Removes an empty child from every hierarchy; one that is absent is fine. kConflict: processes or children left.
  Outcome remove_child(const std::string& name) const;

  /// Names of the children in any hierarchy, sorted.
  Result<std::vector<std::string>> children() const;
  /// Processes of this cgroup alone, in any hierarchy, ascending. Not those of its children.
  Result<std::vector<pid_t>> pids() const;

  explicit operator bool() const { return layout_ != nullptr; }

  CgroupVersion version() const;

  /// "/spillway/demo/n1".
  const std::string& path() const { return path_; }

  /// The path of the directory in the file system, for messages.
  std::string file_path(Controller controller) const;

  /// True if the hierarchy exists (version 1) or the controller is enabled here (version 2).
  bool has(Controller controller) const;
  /// The cgroup's directory in the controller's hierarchy; -1 if there is none.
  int fd(Controller controller) const;
  /// The directories in all hierarchies; borrowed.
  std::vector<int> fds() const;

  Result<std::string> read(Controller controller, const std::string& file) const;
  Outcome write(Controller controller, const std::string& file, std::string_view text) const;

  /// Version 2: enables memory, pids, cpu and the extra controllers for the children, as far as they are available;
  /// kForbidden or kNotFound if memory is not. Nothing to do on version 1.
  Outcome delegate_controllers() const;

  /// kForbidden: children cannot be made here; names the directory.
  Outcome check_writable() const;

  /// Takes and keeps the exclusive lock of this cgroup; the lock ends with this object or its process, however that
  /// ends. kConflict: another process, or another object, holds it, and the attempts of `again` are used up.
  Outcome lock(const LockPatience& again = {}) const;
  /// True if both are the same directory of the kernel.
  bool is_same_as(const CgroupDir& other) const;
  /// True as long as the name still leads to this very cgroup.
  bool is_child_of(const CgroupDir& parent) const;

 private:
  struct Hierarchy {
    std::string mount;
    std::vector<Controller> controllers;
  };

  struct Layout {
    CgroupVersion version;
    std::vector<Hierarchy> hierarchies;
  };

  std::size_t index_of(Controller controller) const;
  /// A cpuset of version 1 takes no process before it has CPUs and memory nodes: those of its parent.
  Outcome inherit_cpuset(const CgroupDir& child) const;
  Result<CgroupDir> open_below(const std::string& name, bool create) const;
  std::string name() const;

  std::shared_ptr<const Layout> layout_;
  std::string path_;
  std::vector<UniqueFd> parts_;  // directory of the cgroup in each hierarchy
};

}  // namespace spillway::host
