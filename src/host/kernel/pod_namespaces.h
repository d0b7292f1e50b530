// Namespaces that all containers of a pod share: held by descriptors, so that they live as long as this object, with or
// without a process in them.
// Thread: loop. Waits only for the end of a process that has nothing left to do. Source: namespaces(7), setns(2).
#pragma once

#include "base/error.h"
#include "host/kernel/unique_fd.h"

#include <vector>

namespace spillway::host {

struct NamespaceWish {
  bool ipc = false;
  bool network = false;
};

class PodNamespaces {
 public:
  /// kForbidden: no right to make them (CAP_SYS_ADMIN).
  static Result<PodNamespaces> create(const NamespaceWish& wish);

  bool has_network() const { return static_cast<bool>(network_); }

  /// Borrowed.
  std::vector<int> fds() const;

 private:
  UniqueFd ipc_;
  UniqueFd network_;
};

}  // namespace spillway::host
