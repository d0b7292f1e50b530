#include "apiserver/access/gatekeeper.h"

#include "api/text/identities.h"

namespace spillway::apiserver {

Verdict Gatekeeper::authorize(const api::UserInfo& user, const RequestAttributes& request) const {
  if (in_group(user, api::kMastersGroup)) return {true, {}};
  if (!request.is_resource && request.verb == "get" && is_public_path(request.path)) return {true, {}};
  if (!request.is_resource && request.verb == "get" && is_dashboard_path(request.path) &&
      in_group(user, api::kAuthenticatedGroup)) {
    return {true, {}};
  }
  Verdict by_node = nodes_.authorize(user, request);
  if (by_node.allowed) return by_node;
  Verdict by_role = roles_.authorize(user, request);
  return by_role.allowed ? by_role : by_node;
}

}  // namespace spillway::apiserver
