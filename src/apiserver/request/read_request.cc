#include "apiserver/request/read_request.h"

#include "api/patch/patch.h"
#include "apiserver/request/body.h"

#include <utility>

namespace spillway::apiserver {
namespace {

/// True if the body is an object to be stored, in the type of the resource.
bool says_object(const Route& route) {
  if (route.resource == nullptr || !route.resource->stored()) return false;
  if (route.verb != Verb::kCreate && route.verb != Verb::kUpdate) return false;
  if (route.subresource == nullptr) return true;
  const SubresourceId id = route.subresource->id;
  return id == SubresourceId::kStatus || id == SubresourceId::kFinalize || id == SubresourceId::kApproval ||
         id == SubresourceId::kEphemeralContainers || id == SubresourceId::kResize;
}

bool is_proxied(const api::StatusResult<Route>& route) {
  return route && route->subresource != nullptr && route->subresource->id == SubresourceId::kProxy;
}

void read_patch(const api::Request& request, const Resource& resource, ReadBody& body) {
  const std::optional<api::PatchType> type = api::parse_patch_type(request.header("content-type"));
  if (type) body.patch = parsed_patch(request, resource, *type);
}

}  // namespace

ReadRequest read_request(ResourceTablePtr table, const api::Request& request) {
  ReadRequest read;
  read.table = std::move(table);
  auto target = read_target(request.target);
  if (!target) {
    read.understood = target.error();
    return read;
  }
  read.target = *std::move(target);
  read.asked = request_attributes(request.method, read.target);
  read.route = find_route(*read.table, read.asked);
  const Route route = read.route ? *read.route : Route();
  read.form = negotiate(request.header("accept"), encodings_of(route), tables_of(route));
  if (!read.form && is_proxied(read.route)) read.form = AnswerForm{};  // the program behind the proxy reads Accept
  return read;
}

void read_body(const api::Request& request, ReadRequest& read) {
  if (!read.understood || !read.route || request.document || !check_size(request)) return;
  const Route& route = *read.route;
  // A heartbeat is held against the stored bytes: most need no document at all.
  const bool renews = route.resource != nullptr && route.resource->renewed && route.subresource == nullptr;
  if (is_proxied(read.route)) return;
  if (route.verb == Verb::kPatch) {
    if (route.resource != nullptr && route.resource->stored() && !renews) {
      read_patch(request, *route.resource, read.body);
    }
    return;
  }
  if (!says_object(route)) return;
  const auto format = body_format(request.header("content-type"));
  if (format && *format == BodyFormat::kProtobuf && type_of(*route.resource).json_only()) return;
  if (!format || (renews && route.verb == Verb::kUpdate)) return;
  read.body.type = &type_of(*route.resource);
  read.body.object = read_typed(request, *read.body.type, *format);
}

}  // namespace spillway::apiserver
