// From method and path to what is meant: a resource, an object, a subresource, a verb.
// Thread: any (pure). Source: spec "API server contract", 3.1, 3.2, 4.8.
#pragma once

#include "api/exchange.h"
#include "api/status.h"
#include "apiserver/resource_registry.h"

#include <string>
#include <string_view>

namespace spillway::apiserver {

/// A path below /api or /apis that names a resource.
struct Route {
  const Resource* resource = nullptr;
  const Subresource* subresource = nullptr;
  std::string ns;    // empty: none in the path
  std::string name;  // empty: the collection
  Verb verb = Verb::kGet;
  bool old_watch = false;  // /api/v1/watch/…
};

/// What authorization is asked about; also for paths that are not served.
struct RequestAttributes {
  bool is_resource = false;
  std::string verb;  // "get", …, or the method in lower case for other paths
  std::string group;
  std::string version;
  std::string resource;
  std::string subresource;
  std::string ns;
  std::string name;  // of a list or watch: the one that its field selector pins (metadata.name=)
  std::string node;  // of a list or watch: the node that its field selector pins (spec.nodeName=)
  std::string path;
};

RequestAttributes request_attributes(api::Method method, const api::Target& target);

/// 404 for what is not served, 405 for a method that is not served there.
api::StatusResult<Route> find_route(const ResourceRegistry& registry, api::Method method, const api::Target& target);

/// "0" and "false" in any case are false, anything else true; an absent parameter is false.
bool query_flag(const api::Target& target, std::string_view name);

}  // namespace spillway::apiserver
