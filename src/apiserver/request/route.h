// Parses method and path of a request into a route: resource, object, subresource, verb.
// Thread: any (pure). Source: spec "API server contract", 3.1, 3.2, 4.8.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "apiserver/resource/resource_registry.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

/// The attributes of a request, parsed once from its method and path, also for paths that are not served. Authorization
/// decides about this value, and find_route() makes the route from it: nothing can be done that was not asked about.
struct RequestAttributes {
  bool is_resource = false;
  std::string verb;  // "get", …, or the method in lower case where no verb is meant
  std::string group;
  std::string version;
  std::string resource;
  std::string subresource;
  std::string ns;
  std::string name;  // for a list or watch: the name pinned by its field selector (metadata.name=)
  std::string node;  // for a list or watch: the node pinned by its field selector (spec.nodeName=)
  std::string path;

  std::optional<Verb> action;  // the verb's handler; nullopt: a method, or a verb of a review, that has none
  std::string object;          // the name in the path; empty: the collection
  std::string below;           // the namespace whose objects the path names; empty: none
  bool old_watch = false;      // /api/v1/watch/…
  bool too_deep = false;       // segments follow that belong to no subresource
};

/// A target taken apart. 404 for empty, "." and ".." segments, but for one trailing slash; 400 for broken escapes.
api::StatusResult<api::Target> read_target(const std::string& text);

/// A watch is a GET of a collection, or of anything below /watch/; with a name in the path, `watch=1` means nothing.
RequestAttributes request_attributes(api::Method method, const api::Target& target);

/// The target of a request. `verb` is the one to authorize.
struct Route {
  const Resource* resource = nullptr;
  const Subresource* subresource = nullptr;
  std::string ns;    // empty: none in the path
  std::string name;  // empty: the collection
  Verb verb = Verb::kGet;
  bool old_watch = false;  // /api/v1/watch/…
};

/// 404 for what is not served, 405 for a method that is not served there.
api::StatusResult<Route> find_route(const ResourceTable& table, const RequestAttributes& asked);

/// True if the answer may last as long as both sides want.
bool is_long_running(const Route& route);

/// "0" and "false" in any case are false, anything else true; an absent parameter is false.
bool query_flag(const api::Target& target, std::string_view name);

}  // namespace spillway::apiserver
