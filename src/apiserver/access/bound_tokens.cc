#include "apiserver/access/bound_tokens.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"

namespace spillway::apiserver {

Outcome BoundTokens::check_object(std::string_view plural, std::string_view ns,
                                  const api::ObjectIdentity& object) const {
  const Resource& resource = core_.registry.get(plural);
  const ObjectPtr found = core_.cache.of(resource).find(object_key(ns, object.name));
  if (!found) {
    return make_error(ErrorCode::kUnauthorized, "{} \"{}\", which the token is bound to, is gone", resource.kind,
                      object.name);
  }
  if (found->meta.uid != object.uid) {
    return make_error(ErrorCode::kUnauthorized, "the token is bound to an earlier {} \"{}\"", resource.kind,
                      object.name);
  }
  if (!found->meta.deleting) return {};
  const auto deleted = api::parse_time(found->document().string_at({"metadata", "deletionTimestamp"}));
  if (deleted && *deleted + std::chrono::duration_cast<microseconds>(kAfterDeletion) >= core_.now.wall) return {};
  return make_error(ErrorCode::kUnauthorized, "{} \"{}\", which the token is bound to, is deleted", resource.kind,
                    object.name);
}

Outcome BoundTokens::check(const api::AccountToken& token) const {
  SPILLWAY_TRY_VOID(check_object("serviceaccounts", token.ns, token.account));
  if (token.secret) SPILLWAY_TRY_VOID(check_object("secrets", token.ns, *token.secret));
  // A node named beside a pod is only the pod's place: the pod ends with its node.
  if (token.pod) return check_object("pods", token.ns, *token.pod);
  if (token.node) return check_object("nodes", {}, *token.node);
  return {};
}

}  // namespace spillway::apiserver
