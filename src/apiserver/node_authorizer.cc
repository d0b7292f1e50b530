#include "apiserver/node_authorizer.h"

#include <algorithm>
#include <array>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kUserPrefix = "system:node:";
constexpr std::string_view kLeaseNamespace = "kube-node-lease";

bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, text) != list.end();
}

/// Calls `found` with every member called `member` anywhere below.
bool any_member(const Json& document, std::string_view member, const std::function<bool(const Json&)>& found) {
  if (const Json::Array* list = document.if_array()) {
    return std::ranges::any_of(*list, [&](const Json& one) { return any_member(one, member, found); });
  }
  const Json::Object* object = document.if_object();
  if (object == nullptr) return false;
  return std::ranges::any_of(*object, [&](const auto& one) {
    return (one.key == member && found(one.value)) || any_member(one.value, member, found);
  });
}

Verdict denied(const std::string& node) {
  return {false, "no relationship found between node '" + node + "' and this object"};
}

Verdict allowed() {
  return {true, {}};
}

}  // namespace

std::optional<std::string> node_identity(const api::UserInfo& user) {
  if (!user.name.starts_with(kUserPrefix) || user.name.size() == kUserPrefix.size()) return std::nullopt;
  if (!in_group(user, "system:nodes")) return std::nullopt;
  return user.name.substr(kUserPrefix.size());
}

bool pod_refers_to(const Json& pod, std::string_view plural, std::string_view name) {
  const Json* spec = pod.find("spec");
  if (spec == nullptr) return false;
  if (plural == "serviceaccounts") return spec->string_at({"serviceAccountName"}) == name;
  const auto is_named = [&](const Json& reference) { return reference.string_at({"name"}) == name; };
  if (plural == "configmaps") {
    return any_member(*spec, "configMap", is_named) || any_member(*spec, "configMapRef", is_named) ||
           any_member(*spec, "configMapKeyRef", is_named);
  }
  if (any_member(*spec, "secretRef", is_named) || any_member(*spec, "secretKeyRef", is_named)) return true;
  if (any_member(*spec, "secret", [&](const Json& source) {
        return source.string_at({"secretName"}) == name || source.string_at({"name"}) == name;
      })) {
    return true;
  }
  const Json* pull = spec->find("imagePullSecrets");
  return pull != nullptr && pull->if_array() != nullptr && std::ranges::any_of(*pull->if_array(), is_named);
}

NodeAuthorizer::NodeAuthorizer(Core& core) : pods_(core.cache.of(core.registry.get("pods"))) {}

bool NodeAuthorizer::any_pod(const std::string& node, std::string_view ns,
                             const std::function<bool(const Json& pod)>& refers) const {
  const ObjectMap* pods = pods_.on_node(node);
  if (pods == nullptr) return false;
  return std::ranges::any_of(*pods,
                             [&](const auto& pod) { return pod.second->ns == ns && refers(pod.second->document()); });
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
      const bool may = reads || (one_of(verb, {"update", "patch"}) && one_of(request.subresource, {"", "status"}));
      return may && own ? allowed() : denied(*node);
    }
    if (resource == "pods") return authorize_pods(*node, request);
    if (one_of(resource, {"secrets", "configmaps"}) && request.subresource.empty()) {
      const bool related = reads && !request.name.empty() && any_pod(*node, request.ns, [&](const Json& pod) {
                             return pod_refers_to(pod, resource, request.name);
                           });
      return related ? allowed() : denied(*node);
    }
    if (resource == "serviceaccounts") {
      const bool may =
          (verb == "get" && request.subresource.empty()) || (verb == "create" && request.subresource == "token");
      const bool related = may && any_pod(*node, request.ns,
                                          [&](const Json& pod) { return pod_refers_to(pod, resource, request.name); });
      return related ? allowed() : denied(*node);
    }
    if (resource == "events") return one_of(verb, {"create", "patch", "update"}) ? allowed() : Verdict{};
    if (resource == "services") return reads ? allowed() : Verdict{};
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
  if (request.group == "events.k8s.io") return one_of(verb, {"create", "patch", "update"}) ? allowed() : Verdict{};
  if (one_of(resource, {"csidrivers", "runtimeclasses"})) return reads ? allowed() : Verdict{};
  if (resource == "certificatesigningrequests") return reads || verb == "create" ? allowed() : Verdict{};
  if (one_of(resource, {"tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews"})) {
    return verb == "create" ? allowed() : Verdict{};
  }
  return {};
}

Verdict NodeAuthorizer::authorize_pods(const std::string& node, const RequestAttributes& request) const {
  const std::string_view verb = request.verb;
  if (verb == "create" && request.subresource.empty()) return allowed();  // mirror pods; admission looks closer
  if (one_of(verb, {"list", "watch"})) return request.node == node ? allowed() : denied(node);
  const ObjectPtr pod = pods_.find(object_key(request.ns, request.name));
  // Deleting what is gone already is a 404, not a refusal.
  const bool own = pod ? pod->meta.fields.front() == node : verb == "delete" || verb == "get";
  bool may = request.subresource.empty() && one_of(verb, {"get", "delete"});
  may = may || (request.subresource == "status" && one_of(verb, {"get", "update", "patch"}));
  may = may || (request.subresource == "eviction" && verb == "create");
  return may && own ? allowed() : denied(node);
}

}  // namespace spillway::apiserver
