// The write and the event that a rule of binding returns. Thread: any (plain values).
#pragma once

#include "api/json/json.h"

#include <optional>
#include <string>

namespace spillway::storage {

enum class WriteTo { kClaim, kClaimStatus, kVolume, kVolumeStatus };

/// A merge patch, guarded by uid and resourceVersion of the object it was decided on.
struct StorageWrite {
  WriteTo target{};
  std::string ns;  // the claim's namespace
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

/// One sync of a claim or volume: at most one write; its consequences are decided once the write is seen.
struct StorageStep {
  std::optional<StorageWrite> write;
  std::optional<StorageEvent> event;

  friend bool operator==(const StorageStep&, const StorageStep&) = default;
};

}  // namespace spillway::storage
