// Port: the group versions that other servers serve, as discovery and OpenAPI list them. Thread: loop.
#pragma once

#include "api/json/json.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

struct RemoteSchemas;
using RemoteSchemasPtr = std::shared_ptr<const RemoteSchemas>;

struct RemoteVersion {
  std::string group;
  std::string version;
  std::int64_t group_priority = 0;
  std::int64_t version_priority = 0;
  bool is_fresh = false;                     // false: its documents may be out of date
  api::Json resources = api::Json::array();  // resources in the form of an APIResourceList
  std::string openapi_path;                  // relative URL of the OpenAPI v3 document; empty: there is none
};

class RemoteGroups {
 public:
  virtual ~RemoteGroups() = default;
  /// All versions, by priority of the group, then of the version.
  virtual const std::vector<RemoteVersion>& remote_versions() const = 0;
  /// Their definitions in OpenAPI v2, in the same order; a version whose server has none is left out.
  virtual std::vector<RemoteSchemasPtr> remote_schemas() const = 0;
  /// Changes whenever remote_schemas() does.
  virtual std::uint64_t schemas_version() const = 0;
  /// The place of a group version that this server serves.
  virtual std::int64_t local_group_priority(std::string_view group, std::string_view version) const = 0;
  virtual std::int64_t local_version_priority(std::string_view group, std::string_view version) const = 0;
};

}  // namespace spillway::apiserver
