// Discovery documents of aggregated API servers, fetched when an APIService is added, changes or becomes available, and
// every kRefresh. The last document stays until it is replaced; it counts as stale while its server does not answer.
// Thread: loop. Bounds: kDocumentBytesMax for each document, kFetchesMax requests at a time.
// Source: Kubernetes docs, "Kubernetes API Aggregation Layer"; KEP-3352.
#pragma once

#include "apiserver/aggregation/due_names.h"
#include "apiserver/aggregation/remote_apis.h"
#include "apiserver/aggregation/remote_fetch.h"
#include "apiserver/aggregation/remote_open_api.h"
#include "apiserver/read/core.h"
#include "apiserver/request/remote_groups.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spillway::apiserver {

class RemoteDiscovery final : public RemoteGroups {
 public:
  static constexpr Duration kRefresh = minutes(1);
  static constexpr std::size_t kDocumentBytesMax = std::size_t{1} << 20U;
  static constexpr std::size_t kFetchesMax = 16;

  RemoteDiscovery(Core& core, const RemoteApis& apis, RemoteFetch& fetch)
      : core_(core), apis_(apis), fetch_(fetch), open_api_(core, fetch) {}

  /// Called when APIs may have been added, removed or changed.
  void follow();

  // RemoteGroups
  const std::vector<RemoteVersion>& remote_versions() const override { return versions_; }

  std::vector<RemoteSchemasPtr> remote_schemas() const override;

  std::uint64_t schemas_version() const override { return open_api_.version(); }

  std::int64_t local_group_priority(std::string_view group, std::string_view version) const override {
    return local_priority(group, version).group;
  }

  std::int64_t local_version_priority(std::string_view group, std::string_view version) const override {
    return local_priority(group, version).version;
  }

 private:
  struct Known {
    RemoteApiPtr api;
    bool is_fresh = false;
    api::Json resources = api::Json::array();
    std::string openapi_path;
  };

  void fetch_next();
  void fetch(const std::string& name, const RemoteApiPtr& api);
  void on_resources(const std::string& name, const RemoteApiPtr& api, const Result<api::Response>& answer);
  void on_openapi(const std::string& name, const RemoteApiPtr& api, const Result<api::Response>& answer);
  void refresh();
  void publish();

  Core& core_;
  const RemoteApis& apis_;
  RemoteFetch& fetch_;
  std::uint64_t followed_ = 0;  // the version of apis_
  std::map<std::string, Known, std::less<>> known_;
  DueNames due_{kFetchesMax};
  bool is_timed_ = false;
  std::vector<RemoteVersion> versions_;
  RemoteOpenApi open_api_;
};

}  // namespace spillway::apiserver
