// The identity of one pod in a runtime's table. A static pod whose manifest returns has the uid of the pod that was
// removed: operations that wait compare the identity as well, so that they do not continue in the later pod. Thread:
// loop.
#pragma once

#include <memory>

namespace spillway::host {

/// Equal for two pods only if they are the same entry of the table. Null: no pod.
using PodIdentity = std::shared_ptr<const char>;

inline PodIdentity new_pod_identity() {
  return std::make_shared<const char>();
}

}  // namespace spillway::host
