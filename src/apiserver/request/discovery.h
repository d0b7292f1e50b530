// Discovery documents, made from the registry: legacy and aggregated discovery, versions, root paths. Thread: any
// (pure). Source: spec "API server contract", 6.1-6.3.
#pragma once

#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class Discovery {
 public:
  explicit Discovery(const ResourceRegistry& registry) : registry_(registry) {}

  /// GET /api, without aggregation.
  api::Json core_versions() const;
  /// GET /apis.
  api::Json groups() const;
  /// GET /apis/GROUP; nullopt: not served.
  std::optional<api::Json> group(std::string_view name) const;
  /// GET /api/v1 and /apis/GROUP/VERSION; nullopt: not served.
  std::optional<api::Json> resources(std::string_view group, std::string_view version) const;
  /// GET /api (`core`) or /apis as APIGroupDiscoveryList of "v2" or "v2beta1".
  api::Json aggregated(bool core, std::string_view version) const;

 private:
  /// Group names in the order they are shown; the core group is not among them.
  std::vector<std::string_view> group_names() const;
  /// The resource whose documents are stored for those of `row`.
  const Resource& stored_as(const Resource& row) const;
  api::Json group_document(std::string_view name) const;

  const ResourceRegistry& registry_;
};

/// GET /version for Spillway's own version "0.1.0".
api::Json version_document(std::string_view spillway_version);

}  // namespace spillway::apiserver
