// What is at rest in a store, by the table of resources: which object a key means, and whether the value is that one.
// Thread: any (immutable once made). Source: spec "API server contract", 22.2.
#pragma once

#include "apiserver/resource/resource_registry.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class StoredValues {
 public:
  /// Of a key that no resource has: as another version may have written it. It is not read.
  static constexpr std::string_view kUnknown = "(unknown)";

  struct Verdict {
    std::string resource;  // "pods", "deployments.apps", or kUnknown
    std::string problem;   // what was found and what was expected; empty: nothing
    std::string note;      // the next write changes more than it says: fields that are lost, other bytes; empty: no
  };

  StoredValues();

  /// Where objects without history are (Resource::keeps_history).
  std::vector<std::string> prefixes_without_history() const;

  Verdict check(std::string_view key, std::string_view value) const;

 private:
  const Resource* resource_of(std::string_view key) const;

  ResourceTablePtr table_;
};

}  // namespace spillway::apiserver
