// Discovery documents, made from the registry: legacy and aggregated discovery, versions, root paths. Thread: any
// (pure). Source: spec "API server contract", 6.1-6.3.
#pragma once

#include "api/json/json.h"
#include "apiserver/request/remote_groups.h"
#include "apiserver/resource/resource_registry.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class Discovery {
 public:
  /// `remote`: the group versions that other servers serve; null: there are none.
  Discovery(const ResourceRegistry& registry, const RemoteGroups* remote) : registry_(registry), remote_(remote) {}

  /// GET /api, without aggregation.
  api::Json core_versions() const;
  /// GET /apis.
  api::Json groups() const;
  /// GET /apis/GROUP; nullopt: not served.
  std::optional<api::Json> group(std::string_view name) const;
  /// GET /api/v1 and /apis/GROUP/VERSION; nullopt: not served here.
  std::optional<api::Json> resources(std::string_view group, std::string_view version) const;
  /// GET /api (`core`) or /apis as APIGroupDiscoveryList of apidiscovery.k8s.io/v2.
  api::Json aggregated(bool core) const;

 private:
  struct Version {
    std::string_view name;
    const RemoteVersion* remote = nullptr;  // null: served here
  };

  struct Group {
    std::string_view name;
    std::vector<Version> versions;  // preferred version first
  };

  /// All groups but the core group, in the order in which they are shown.
  std::vector<Group> all_groups() const;
  std::vector<Group> local_groups() const;
  void insert(std::vector<Group>& groups, const RemoteVersion& remote) const;
  std::int64_t priority_of(const Group& group) const;
  std::int64_t priority_of(const Group& group, const Version& version) const;
  /// The resource whose documents are stored for those of `row`.
  const Resource& stored_as(const Resource& row) const;
  static api::Json group_document(const Group& group);
  api::Json aggregated_version(std::string_view group, const Version& version) const;

  const ResourceRegistry& registry_;
  const RemoteGroups* remote_;
};

/// GET /version for Spillway's own version "0.1.0".
api::Json version_document(std::string_view spillway_version);

}  // namespace spillway::apiserver
