#include "apiserver/access/role_rules.h"

#include "api/text/identities.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

bool has(const std::vector<std::string>& list, std::string_view wanted) {
  return std::ranges::any_of(list, [&](const std::string& one) { return one == "*" || one == wanted; });
}

bool covers_resource(const std::vector<std::string>& resources, const RequestAttributes& request) {
  const std::string full =
      request.subresource.empty() ? request.resource : request.resource + "/" + request.subresource;
  return std::ranges::any_of(resources, [&](const std::string& one) {
    return one == "*" || one == full || (!request.subresource.empty() && one == "*/" + request.subresource);
  });
}

bool covers_path(const std::vector<std::string>& urls, std::string_view path) {
  return std::ranges::any_of(urls, [&](std::string_view url) {
    if (url == "*" || url == path) return true;
    return url.ends_with('*') && path.starts_with(url.substr(0, url.size() - 1));
  });
}

}  // namespace

bool allows(const PolicyRule& rule, const RequestAttributes& request) {
  if (!has(rule.verbs, request.verb)) return false;
  if (!request.is_resource) return covers_path(rule.non_resource_urls, request.path);
  if (!has(rule.api_groups, request.group) || !covers_resource(rule.resources, request)) return false;
  const std::vector<std::string>& names = rule.resource_names;
  return names.empty() || std::ranges::find(names, request.name) != names.end();
}

RoleRules::RoleRules(Core& core)
    : roles_(core.cache.of(core.registry.get("roles.rbac.authorization.k8s.io"))),
      role_bindings_(core.cache.of(core.registry.get("rolebindings.rbac.authorization.k8s.io"))),
      cluster_roles_(core.cache.of(core.registry.get("clusterroles.rbac.authorization.k8s.io"))),
      cluster_role_bindings_(core.cache.of(core.registry.get("clusterrolebindings.rbac.authorization.k8s.io"))) {}

void RoleRules::on_event(const ResourceCache& cache, const EventPtr&) {
  if (&cache == &roles_ || &cache == &role_bindings_ || &cache == &cluster_roles_ ||
      &cache == &cluster_role_bindings_) {
    stale_ = true;
  }
}

std::optional<std::vector<PolicyRule>> RoleRules::rules_of_role(const Json& role_ref, std::string_view ns) const {
  const bool local = role_ref.string_at({"kind"}) == "Role";
  const std::string_view name = role_ref.string_at({"name"});
  const ObjectPtr role = local ? roles_.find(object_key(ns, name)) : cluster_roles_.find(name);
  if (!role) return std::nullopt;
  return rules_from_json(*role->shared_document());
}

void RoleRules::add_bindings(const ResourceCache& cache) const {
  for (const auto& [key, object] : cache.objects()) {
    const Json document = object->document();
    const Json* role_ref = document.find("roleRef");
    const Json* subjects = document.find("subjects");
    if (role_ref == nullptr || subjects == nullptr || subjects->if_array() == nullptr) continue;
    std::optional<std::vector<PolicyRule>> rules = rules_of_role(*role_ref, object->ns);
    if (!rules) continue;
    Binding binding{object->ns,
                    fmt::format("allowed by {} \"{}\" of {} \"{}\"", cache.resource().kind, key,
                                role_ref->string_at({"kind"}), role_ref->string_at({"name"})),
                    {},
                    *std::move(rules)};
    for (const Json& subject : *subjects->if_array()) {
      binding.subjects.push_back({std::string(subject.string_at({"kind"})), std::string(subject.string_at({"name"})),
                                  std::string(subject.string_at({"namespace"}))});
    }
    bindings_.push_back(std::move(binding));
  }
}

const std::vector<RoleRules::Binding>& RoleRules::bindings() const {
  if (std::exchange(stale_, false)) {
    bindings_.clear();
    add_bindings(cluster_role_bindings_);
    add_bindings(role_bindings_);
  }
  return bindings_;
}

bool RoleRules::is_bound(const Binding& binding, const api::UserInfo& user) {
  return std::ranges::any_of(binding.subjects, [&](const Subject& subject) {
    if (subject.kind == "User") return subject.name == user.name;
    if (subject.kind == "Group") return in_group(user, subject.name);
    const std::string& ns = subject.ns.empty() ? binding.ns : subject.ns;
    return subject.kind == "ServiceAccount" && user.name == "system:serviceaccount:" + ns + ":" + subject.name;
  });
}

Verdict RoleRules::authorize(const api::UserInfo& user, const RequestAttributes& request) const {
  for (const Binding& binding : bindings()) {
    if (!binding.ns.empty() && (!request.is_resource || binding.ns != request.ns)) continue;
    if (!is_bound(binding, user)) continue;
    if (std::ranges::any_of(binding.rules, [&](const PolicyRule& rule) { return allows(rule, request); })) {
      return {true, binding.text};
    }
  }
  return {};
}

std::vector<PolicyRule> RoleRules::rules_of(const api::UserInfo& user, std::string_view ns) const {
  std::vector<PolicyRule> rules;
  if (in_group(user, api::kMastersGroup)) {
    rules.push_back({{"*"}, {"*"}, {"*"}, {}, {}});
    rules.push_back({{"*"}, {}, {}, {}, {"*"}});
  }
  for (const Binding& binding : bindings()) {
    if ((binding.ns.empty() || binding.ns == ns) && is_bound(binding, user)) {
      rules.insert(rules.end(), binding.rules.begin(), binding.rules.end());
    }
  }
  return rules;
}

}  // namespace spillway::apiserver
