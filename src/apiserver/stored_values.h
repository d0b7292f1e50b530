// Identifies stored values by the table of resources: the object that a key belongs to, and whether the value is that
// object. Thread: any (immutable once made). Source: spec "API server contract", 22.2.
#pragma once

#include "apiserver/resource/resource_registry.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class StoredValues {
 public:
  /// The kind of a key of no known resource, perhaps written by another version. Its value is not parsed.
  static constexpr std::string_view kUnknown = "(unknown)";

  struct Verdict {
    std::string resource;  // "pods", "deployments.apps", or kUnknown
    std::string problem;   // the fault and the expected form; empty: none
    std::string remark;    // side effects of the next write: lost fields, other bytes; empty: none
  };

  StoredValues();

  /// The prefixes of objects without history (Resource::keeps_history).
  std::vector<std::string> prefixes_without_history() const;

  Verdict check(std::string_view key, std::string_view value) const;

 private:
  const Resource* resource_of(std::string_view key) const;

  ResourceTablePtr table_;
};

}  // namespace spillway::apiserver
