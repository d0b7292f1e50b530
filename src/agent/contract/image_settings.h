// Settings of the removal of images that no container uses.
// Thread: any (plain values). Source: Kubernetes docs, "Garbage Collection", container image lifecycle.
#pragma once

#include "base/time.h"

#include <cstdint>

namespace spillway::agent {

struct ImageGcPolicy {
  std::int64_t high_threshold_percent = 85;  // usage of the file system at which images are removed
  std::int64_t low_threshold_percent = 80;   // collection stops at this share of the disk
  Duration min_age = minutes(2);             // time since the image was first seen; younger images are kept
  Duration max_age{};                        // time since the image was last used; zero: images do not age

  friend bool operator==(const ImageGcPolicy&, const ImageGcPolicy&) = default;
};

}  // namespace spillway::agent
