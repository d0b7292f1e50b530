// Namespaces that all containers of a pod share: held by descriptors, so that they live as long as this object, with or
// without a process in them.
// Thread: loop. Waits only for some system calls of a process that is made for it, and for its end.
// Source: namespaces(7), user_namespaces(7), setns(2).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/kernel/mount_steps.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

/// The confinement of a pod: mounts that begin as those of `root` and continue with `mounts`, ids of its own, a host
/// name.
struct ConfinedView {
  int root = -1;  // a mount namespace
  std::vector<MountStep> mounts;
  std::uint32_t first_id = 0;  // id of this machine that is the pod's id 0
  std::string hostname;        // empty: the machine's
};

/// The number of user and group ids of a pod, from 0 on.
inline constexpr std::uint32_t kPodIds = 65'536;

struct NamespaceWish {
  bool ipc = false;
  bool network = false;
  std::optional<ConfinedView> view;
};

class PodNamespaces {
 public:
  /// The namespaces of the pod; empty: the machine's. Another process may hold them as well.
  struct Parts {
    UniqueFd ipc;
    UniqueFd network;
    UniqueFd host_name;
    UniqueFd mounts;
    UniqueFd users;
    UniqueFd root;
  };

  /// Adopts the namespaces that an earlier process made for a pod.
  static PodNamespaces adopt(Parts parts) {
    PodNamespaces made;
    made.parts_ = std::move(parts);
    return made;
  }

  const Parts& parts() const { return parts_; }

  /// kForbidden: no right to make them (CAP_SYS_ADMIN). Errors of a view name the step that failed.
  static Result<PodNamespaces> create(const NamespaceWish& wish);

  bool has_network() const { return static_cast<bool>(parts_.network); }

  /// The namespaces to enter while still root, without the view's; borrowed.
  std::vector<int> fds() const;

  /// The mount namespace of the view, borrowed; -1: none. A process that has entered the user namespace may no longer
  /// enter the others.
  int mounts() const { return parts_.mounts.get(); }

  int users() const { return parts_.users.get(); }

  /// The root directory of the view, before any container mounts something on top; empty: there is none.
  const UniqueFd& root() const { return parts_.root; }

  /// The network namespace; -1: the machine's.
  int network() const { return parts_.network.get(); }

 private:
  Parts parts_;
};

}  // namespace spillway::host
