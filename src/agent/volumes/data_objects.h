// ConfigMaps and Secrets as pods refer to them.
// Thread: any (plain values).
#pragma once

#include "api/json/json.h"

#include <compare>
#include <map>
#include <string>
#include <string_view>

namespace spillway::agent {

/// A ConfigMap or Secret of the pod's namespace.
struct DataReference {
  enum class Kind { kConfigMap, kSecret };

  Kind kind = Kind::kConfigMap;
  std::string name;

  friend auto operator<=>(const DataReference&, const DataReference&) = default;
};

/// "configmaps", "secrets".
inline std::string_view plural_of(DataReference::Kind kind) {
  return kind == DataReference::Kind::kSecret ? "secrets" : "configmaps";
}

/// The documents of the objects; an absent entry does not exist.
using DataObjects = std::map<DataReference, api::Json>;

}  // namespace spillway::agent
