// What a rule of binding asks to be written, and what is to be said. Thread: any (plain values).
#pragma once

#include "api/json/json.h"

#include <optional>
#include <string>

namespace spillway::storage {

enum class WriteTo { kClaim, kClaimStatus, kVolume, kVolumeStatus };

/// A merge patch, guarded by uid and resourceVersion of the object it was decided on.
struct StorageWrite {
  WriteTo target{};
  std::string ns;  // of a claim
  std::string name;
  api::Json patch;

  friend bool operator==(const StorageWrite&, const StorageWrite&) = default;
};

struct StorageEvent {
  bool warning = false;
  std::string reason;
  std::string message;

  friend bool operator==(const StorageEvent&, const StorageEvent&) = default;
};

/// One look at a claim or volume: at most one write; what follows from it is decided when it is seen.
struct StorageStep {
  std::optional<StorageWrite> write;
  std::optional<StorageEvent> event;

  friend bool operator==(const StorageStep&, const StorageStep&) = default;
};

}  // namespace spillway::storage
