// The resources of all pods of the node, by uid, in a file that survives the agent: what the node has allocated to them
// (allocated_pods_state), or what was last put into force (actuated_pods_state). The files have upstream's form and
// checksum, so that either agent reads the other's.
// Thread: loop. Bounds: one entry per pod of the node. Source: KEP-1287, "Checkpointing"; the checksum is FNV-1a (32
// bits) over the data printed with its type.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"
#include "policy/containers/pod_resize.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace spillway::agent {

inline constexpr std::string_view kAllocatedPodsFile = "allocated_pods_state";
inline constexpr std::string_view kActuatedPodsFile = "actuated_pods_state";

class ResourceBook {
 public:
  explicit ResourceBook(std::string_view file) : file_(file) {}

  /// `text`: what an earlier process saved; nullopt: nothing. kInvalid: it is damaged.
  static Result<ResourceBook> parse(std::string_view file, const std::optional<std::string>& text);

  /// nullptr: the pod has no entry.
  const containers::PodResources* find(const std::string& uid) const;
  void set(const std::string& uid, containers::PodResources resources);

  /// Leaves the pod's entry out of the file until trust(): the next process takes nothing for granted.
  void doubt(const std::string& uid);
  void trust(const std::string& uid);

  /// The file changes only with the next entry.
  void erase(const std::string& uid) {
    entries_.erase(uid);
    doubted_.erase(uid);
  }

  void keep_only(const std::set<std::string, std::less<>>& uids);

  /// The command that saves the entries; nullopt: nothing has changed since the last one.
  std::optional<SaveCheckpoint> take_save();

 private:
  std::string file_;
  std::map<std::string, containers::PodResources> entries_;
  std::set<std::string, std::less<>> doubted_;  // uids
  bool changed_ = false;
};

/// Both books of an agent.
struct ResourceBooks {
  ResourceBook allocated{kAllocatedPodsFile};
  ResourceBook actuated{kActuatedPodsFile};
};

}  // namespace spillway::agent
