// A group version of the API that another server serves, as its APIService describes, and its position in discovery.
// Thread: any (pure). Source: Kubernetes API reference, APIService.
#pragma once

#include "api/json/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

struct RemoteApi {
  std::string name;  // the APIService's: "v1beta1.metrics.example.com"
  std::string uid;
  std::string group;
  std::string version;
  std::string service_ns;
  std::string service_name;
  std::int64_t port = 443;
  std::string authority_pem;  // empty: the authorities of the system
  bool verifies = true;       // false: any certificate is good
  std::int64_t group_priority = 0;
  std::int64_t version_priority = 0;
  bool available = false;  // from the condition Available

  friend bool operator==(const RemoteApi&, const RemoteApi&) = default;
};

/// nullopt: the APIService names no Service, so this server serves the group version.
std::optional<RemoteApi> remote_api(const api::Json& api_service);

/// "/apis/GROUP/VERSION"
std::string path_of(const RemoteApi& api);

/// The priority of a group version in discovery: larger numbers are listed first.
struct ApiPriority {
  std::int64_t group = 0;
  std::int64_t version = 0;
};

/// The priority of a group version that this server serves: upstream's for built-in ones, else that of custom kinds.
ApiPriority local_priority(std::string_view group, std::string_view version);

}  // namespace spillway::apiserver
