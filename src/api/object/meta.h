// metav1: object metadata, keys, times, owner references, conditions.
// Plain values. "Unset" is an empty string or nullopt, never zero.
// Thread: any. Source: Kubernetes API reference, "ObjectMeta"; API conventions, "Metadata".
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

using StringMap = std::map<std::string, std::string, std::less<>>;

/// namespace/name of a pod; orders by namespace, then name.
struct PodKey {
  std::string ns;
  std::string name;

  friend auto operator<=>(const PodKey&, const PodKey&) = default;

  std::string text() const { return ns + "/" + name; }
};

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  std::optional<bool> controller;
  std::optional<bool> block_owner_deletion;

  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

struct ObjectMeta {
  std::string name;
  std::string generate_name;
  std::string ns;  // "namespace"
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::optional<WallTime> creation_timestamp;
  std::optional<WallTime> deletion_timestamp;
  std::optional<std::int64_t> deletion_grace_period_seconds;
  StringMap labels;
  StringMap annotations;
  std::vector<OwnerReference> owner_references;
  std::vector<std::string> finalizers;

  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

/// The owner with controller: true, or nullptr.
const OwnerReference* controller_of(const ObjectMeta& meta);

}  // namespace spillway::api
