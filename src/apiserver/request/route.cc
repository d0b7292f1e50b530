#include "apiserver/request/route.h"

#include "api/exchange/strict_target.h"
#include "api/object/selector.h"
#include "base/ascii.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::string_view kProxy = "proxy";

/// The segments behind /api/v1 or /apis/GROUP/VERSION.
struct GroupVersionPath {
  std::string_view group;
  std::string_view version;
  std::span<const std::string> rest;
  bool old_watch = false;
};

std::optional<GroupVersionPath> split(const api::Target& target) {
  const std::span<const std::string> segments(target.segments);
  GroupVersionPath path;
  if (segments.size() >= 3 && segments[0] == "api") {
    path.version = segments[1];
    path.rest = segments.subspan(2);
  } else if (segments.size() >= 4 && segments[0] == "apis") {
    path.group = segments[1];
    path.version = segments[2];
    path.rest = segments.subspan(3);
  } else {
    return std::nullopt;
  }
  if (path.rest.size() >= 2 && path.rest[0] == "watch") {
    path.old_watch = true;
    path.rest = path.rest.subspan(1);
  }
  return path;
}

/// Resource, namespace, name and subresource of a path, whether they are served or not.
struct Named {
  std::string_view resource;
  std::string_view ns;
  std::string_view name;
  std::string_view subresource;
  bool too_long = false;
};

Named name_parts(std::span<const std::string> rest) {
  Named named;
  const bool below_namespace =
      rest.size() >= 3 && rest[0] == "namespaces" && rest[2] != "status" && rest[2] != "finalize";
  if (below_namespace) {
    named.ns = rest[1];
    rest = rest.subspan(2);
  }
  named.resource = rest[0];
  if (rest.size() > 1) named.name = rest[1];
  if (rest.size() > 2) named.subresource = rest[2];
  named.too_long =
      rest.size() > 3 && named.subresource != kProxy;  // the rest of the path belongs to the program behind the proxy
  if (named.resource == "namespaces" && !below_namespace) named.ns = {};
  return named;
}

enum class Watching { kUnasked, kByQuery, kByPath };

std::optional<Verb> verb_of(api::Method method, bool collection, Watching watching) {
  if (watching == Watching::kByPath) return method == api::Method::kGet ? std::optional(Verb::kWatch) : std::nullopt;
  switch (method) {
    case api::Method::kGet:
      if (collection && watching == Watching::kByQuery) return Verb::kWatch;
      return collection ? Verb::kList : Verb::kGet;
    case api::Method::kPost:
      return Verb::kCreate;
    case api::Method::kPut:
      return Verb::kUpdate;
    case api::Method::kPatch:
      return Verb::kPatch;
    case api::Method::kDelete:
      return collection ? Verb::kDeleteCollection : Verb::kDelete;
    case api::Method::kHead:
    case api::Method::kOptions:
    case api::Method::kOther:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool query_flag(const api::Target& target, std::string_view name) {
  const std::string* value = target.find(name);
  return value != nullptr && *value != "0" && lower_case(*value) != "false";
}

api::StatusResult<api::Target> read_target(const std::string& text) {
  Result<api::Target> target = api::parse_target(text);
  if (!target) return target.error();
  std::vector<std::string>& segments = target->segments;
  if (!segments.empty() && segments.back().empty()) segments.pop_back();
  if (!api::is_normal(*target)) return api::unknown_resource_status();
  return *std::move(target);
}

bool is_long_running(const Route& route) {
  if (route.resource == nullptr) return false;
  if (route.verb == Verb::kWatch) return true;
  const SubresourceId part = route.subresource == nullptr ? SubresourceId::kNone : route.subresource->id;
  return part == SubresourceId::kLog || part == SubresourceId::kExec || part == SubresourceId::kProxy;
}

RequestAttributes request_attributes(api::Method method, const api::Target& target) {
  RequestAttributes out;
  out.path = api::path_of(target);
  out.verb = lower_case(api::to_string(method));
  const std::optional<GroupVersionPath> path = split(target);
  if (!path || path->rest.empty() || path->rest[0].empty()) return out;
  const Named named = name_parts(path->rest);
  out.is_resource = true;
  out.group = path->group;
  out.version = path->version;
  out.resource = named.resource;
  out.subresource = named.subresource;
  out.ns = named.ns;
  out.name = named.name;
  out.object = named.name;
  out.below = named.ns;
  out.too_deep = named.too_long;
  out.old_watch = path->old_watch;
  if (out.group.empty() && out.resource == "namespaces" && out.ns.empty()) out.ns = out.name;
  const Watching in_query = query_flag(target, "watch") ? Watching::kByQuery : Watching::kUnasked;
  out.action = verb_of(method, out.object.empty(), out.old_watch ? Watching::kByPath : in_query);
  if (!out.action && out.subresource == kProxy) {
    // These methods are forwarded to the program behind the proxy. The API has no verb OPTIONS, and authorization
    // treats HEAD as GET.
    const bool passes = method == api::Method::kHead || method == api::Method::kOptions;
    if (!passes || out.old_watch || out.object.empty()) return out;
    out.action = Verb::kGet;
    if (method == api::Method::kOptions) return out;
  }
  if (!out.action) return out;
  out.verb = to_string(*out.action);
  const std::string* selector = target.find("fieldSelector");
  if (selector == nullptr || (out.action != Verb::kList && out.action != Verb::kWatch)) return out;
  const Result<api::FieldSelector> fields = api::parse_field_selector(*selector);
  if (!fields) return out;
  for (const api::FieldRequirement& requirement : fields->requirements) {
    if (!requirement.equal) continue;
    if (requirement.field == "metadata.name" && out.name.empty()) out.name = requirement.value;
    if (requirement.field == "spec.nodeName") out.node = requirement.value;
  }
  return out;
}

api::StatusResult<Route> find_route(const ResourceTable& table, const RequestAttributes& asked) {
  if (!asked.is_resource || asked.too_deep) return api::unknown_resource_status();
  Route route;
  route.resource = table.find(asked.group, asked.version, asked.resource);
  if (route.resource == nullptr) return api::unknown_resource_status();
  if (!asked.below.empty() && !route.resource->namespaced()) return api::unknown_resource_status();
  route.ns = asked.below;
  route.name = asked.object;
  route.old_watch = asked.old_watch;
  if (!asked.subresource.empty()) {
    route.subresource = route.resource->subresource(asked.subresource);
    if (route.subresource == nullptr) return api::unknown_resource_status();
  }
  if (!asked.action) return api::method_not_allowed_status();
  const Verb verb = *asked.action;
  route.verb = verb;
  const bool collection = route.name.empty();
  if (route.subresource != nullptr) {
    if (route.resource->namespaced() && route.ns.empty()) return api::unknown_resource_status();
    if (!route.subresource->verbs.has(verb)) return api::method_not_allowed_status();
    return route;
  }
  const bool needs_name = verb == Verb::kGet || verb == Verb::kUpdate || verb == Verb::kPatch || verb == Verb::kDelete;
  const bool needs_collection = verb == Verb::kCreate || verb == Verb::kDeleteCollection;
  const bool across_namespaces = route.resource->namespaced() && route.ns.empty();
  if (across_namespaces && !collection) return api::unknown_resource_status();
  if (across_namespaces && verb != Verb::kList && verb != Verb::kWatch) return api::method_not_allowed_status();
  if ((needs_name && collection) || (needs_collection && !collection)) return api::method_not_allowed_status();
  if (!route.resource->verbs.has(verb)) return api::method_not_allowed_status();
  return route;
}

}  // namespace spillway::apiserver
