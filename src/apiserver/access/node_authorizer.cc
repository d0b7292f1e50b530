#include "apiserver/access/node_authorizer.h"

#include "api/text/identities.h"

#include <algorithm>
#include <array>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kLeaseNamespace = "kube-node-lease";

bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, text) != list.end();
}

Verdict denied(const std::string& node) {
  return {false, "no relationship found between node '" + node + "' and this object"};
}

Verdict allowed() {
  return {true, {}};
}

}  // namespace

std::optional<std::string> node_identity(const api::UserInfo& user) {
  if (!user.name.starts_with(api::kNodeUserPrefix) || user.name.size() == api::kNodeUserPrefix.size())
    return std::nullopt;
  if (!in_group(user, api::kNodesGroup)) return std::nullopt;
  return user.name.substr(api::kNodeUserPrefix.size());
}

NodeAuthorizer::NodeAuthorizer(Core& core)
    : pods_(core.cache.of(core.registry.get("pods"))),
      volumes_(core.cache.of(core.registry.get("persistentvolumes"))),
      claims_(core.cache.of(core.registry.get("persistentvolumeclaims"))),
      attachments_(core.cache.of(core.registry.get("volumeattachments.storage.k8s.io"))) {}

bool NodeAuthorizer::any_pod_refers(const std::string& node, std::string_view ns, ReferenceKind kind,
                                    std::string_view name) const {
  const ObjectMap* pods = pods_.on_node(node);
  if (pods == nullptr || name.empty()) return false;
  return std::ranges::any_of(
      *pods, [&](const auto& pod) { return pod.second->ns == ns && refers_to(pod.second->document(), kind, name); });
}

bool NodeAuthorizer::any_pod_mounts(const std::string& node, std::string_view volume) const {
  const ObjectPtr found = volumes_.find(object_key({}, volume));
  if (!found) return false;
  const Json& document = found->document();
  const std::string_view ns = document.string_at({"spec", "claimRef", "namespace"});
  const std::string_view name = document.string_at({"spec", "claimRef", "name"});
  const ObjectPtr claim = ns.empty() ? nullptr : claims_.find(object_key(ns, name));
  if (!claim || claim->document().string_at({"spec", "volumeName"}) != volume) return false;
  return any_pod_refers(node, ns, ReferenceKind::kPersistentVolumeClaim, name);
}

bool NodeAuthorizer::is_attached_to(const std::string& node, std::string_view attachment) const {
  const ObjectPtr found = attachments_.find(object_key({}, attachment));
  return found && found->document().string_at({"spec", "nodeName"}) == node;
}

Verdict NodeAuthorizer::authorize(const api::UserInfo& user, const RequestAttributes& request) const {
  const std::optional<std::string> node = node_identity(user);
  if (!node || !request.is_resource) return {};
  const bool own = request.name == *node;
  const std::string_view verb = request.verb;
  const std::string_view resource = request.resource;
  const bool reads = one_of(verb, {"get", "list", "watch"});
  if (request.group.empty()) {
    if (resource == "nodes") {
      if (verb == "create" && request.subresource.empty()) return allowed();
      // nodes/proxy is excluded: the API server would send that request wherever the node says it lives.
      const bool own_part = one_of(request.subresource, {"", "status"});
      const bool may = own_part && (reads || one_of(verb, {"update", "patch"}));
      return may && own ? allowed() : denied(*node);
    }
    if (resource == "pods") return authorize_pods(*node, request);
    if (one_of(resource, {"secrets", "configmaps"}) && request.subresource.empty()) {
      const ReferenceKind kind = resource == "secrets" ? ReferenceKind::kSecret : ReferenceKind::kConfigMap;
      return reads && any_pod_refers(*node, request.ns, kind, request.name) ? allowed() : denied(*node);
    }
    if (resource == "persistentvolumeclaims" || resource == "persistentvolumes") {
      if (verb != "get" || !request.subresource.empty()) return denied(*node);
      const bool related = resource == "persistentvolumes"
                               ? any_pod_mounts(*node, request.name)
                               : any_pod_refers(*node, request.ns, ReferenceKind::kPersistentVolumeClaim, request.name);
      return related ? allowed() : denied(*node);
    }
    if (resource == "serviceaccounts") {
      const bool may =
          (verb == "get" && request.subresource.empty()) || (verb == "create" && request.subresource == "token");
      const bool related = may && any_pod_refers(*node, request.ns, ReferenceKind::kServiceAccount, request.name);
      return related ? allowed() : denied(*node);
    }
    if (resource == "events") return one_of(verb, {"create", "patch", "update"}) ? allowed() : Verdict{};
    // services/proxy is excluded: the API server itself would send that request.
    if (resource == "services") return reads && request.subresource.empty() ? allowed() : Verdict{};
    return {};
  }
  if (request.group == "coordination.k8s.io" && resource == "leases") {
    if (request.ns != kLeaseNamespace) return {};
    if (verb == "create") return allowed();
    return one_of(verb, {"get", "update", "patch", "delete"}) && own ? allowed() : denied(*node);
  }
  if (request.group == "storage.k8s.io" && resource == "csinodes") {
    if (verb == "create") return allowed();
    return one_of(verb, {"get", "update", "patch", "delete"}) && own ? allowed() : denied(*node);
  }
  if (request.group == "storage.k8s.io" && resource == "volumeattachments") {
    const bool may = verb == "get" && request.subresource.empty();
    return may && is_attached_to(*node, request.name) ? allowed() : denied(*node);
  }
  if (request.group == "events.k8s.io") return one_of(verb, {"create", "patch", "update"}) ? allowed() : Verdict{};
  const bool is_class = (request.group == "storage.k8s.io" && resource == "csidrivers") ||
                        (request.group == "node.k8s.io" && resource == "runtimeclasses");
  if (is_class) return reads ? allowed() : Verdict{};
  if (request.group == "certificates.k8s.io" && resource == "certificatesigningrequests") {
    // The certificate subresources nodeclient and selfnodeclient are excluded: they permit automatic approval.
    return request.subresource.empty() && (reads || verb == "create") ? allowed() : Verdict{};
  }
  const bool is_review = (request.group == "authentication.k8s.io" && resource == "tokenreviews") ||
                         (request.group == "authorization.k8s.io" &&
                          one_of(resource, {"subjectaccessreviews", "localsubjectaccessreviews"}));
  if (is_review) {
    return verb == "create" ? allowed() : Verdict{};
  }
  return {};
}

Verdict NodeAuthorizer::authorize_pods(const std::string& node, const RequestAttributes& request) const {
  const std::string_view verb = request.verb;
  if (verb == "create" && request.subresource.empty()) return allowed();  // mirror pods; admission checks more
  if (one_of(verb, {"list", "watch"})) return request.node == node ? allowed() : denied(node);
  const ObjectPtr pod = pods_.find(object_key(request.ns, request.name));
  // A pod that does not exist is refused like one elsewhere, so that a node cannot find out which names are taken.
  const bool own = pod && pod->meta.fields.front() == node;
  bool may = request.subresource.empty() && one_of(verb, {"get", "delete"});
  may = may || (request.subresource == "status" && one_of(verb, {"get", "update", "patch"}));
  may = may || (request.subresource == "eviction" && verb == "create");
  return may && own ? allowed() : denied(node);
}

}  // namespace spillway::apiserver
