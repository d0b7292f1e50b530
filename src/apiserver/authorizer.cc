#include "apiserver/authorizer.h"

#include <algorithm>

namespace spillway::apiserver {

bool in_group(const api::UserInfo& user, std::string_view group) {
  return std::ranges::find(user.groups, group) != user.groups.end();
}

bool is_public_path(std::string_view path) {
  for (const std::string_view open : {"/healthz", "/livez", "/readyz"}) {
    if (path == open || (path.starts_with(open) && path[open.size()] == '/')) return true;
  }
  return path == "/version" || path == "/api" || path == "/apis";
}

Verdict AuthenticatedMayAll::authorize(const api::UserInfo& user, const RequestAttributes& request) const {
  const bool anonymous = in_group(user, "system:unauthenticated") || user.name == "system:anonymous";
  if (!anonymous || (!request.is_resource && request.verb == "get" && is_public_path(request.path))) return {true, {}};
  return {false, "anonymous clients see health, version and discovery only"};
}

}  // namespace spillway::apiserver
