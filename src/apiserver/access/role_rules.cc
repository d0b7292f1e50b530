#include "apiserver/access/role_rules.h"

#include "api/text/identities.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

/// Names of a rule that are compared one by one.
constexpr std::size_t kFewNames = 16;

constexpr std::string_view kLocalRole = "Role ";
constexpr std::string_view kClusterRole = "ClusterRole ";
constexpr std::string_view kUser = "user:";
constexpr std::string_view kGroupSubject = "group:";

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

bool allows_some_name(const PolicyRule& rule, const RequestAttributes& request) {
  if (!has(rule.verbs, request.verb)) return false;
  if (!request.is_resource) return covers_path(rule.non_resource_urls, request.path);
  return has(rule.api_groups, request.group) && covers_resource(rule.resources, request);
}

std::string role_key(const Json& role_ref, std::string_view ns) {
  const std::string_view name = role_ref.string_at({"name"});
  return role_ref.string_at({"kind"}) == "Role" ? fmt::format("{}{}/{}", kLocalRole, ns, name)
                                                : fmt::format("{}{}", kClusterRole, name);
}

/// The index key of a subject's bindings; empty: it is not a subject.
std::string place_of(const Json& subject, std::string_view ns) {
  const std::string_view kind = subject.string_at({"kind"});
  const std::string_view name = subject.string_at({"name"});
  if (kind == "User") return fmt::format("{}/{}{}", ns, kUser, name);
  if (kind == "Group") return fmt::format("{}/{}{}", ns, kGroupSubject, name);
  if (kind != "ServiceAccount") return {};
  const std::string_view given = subject.string_at({"namespace"});
  return fmt::format("{}/{}system:serviceaccount:{}:{}", ns, kUser, given.empty() ? ns : given, name);
}

}  // namespace

bool allows(const PolicyRule& rule, const RequestAttributes& request) {
  if (!allows_some_name(rule, request)) return false;
  const std::vector<std::string>& names = rule.resource_names;
  return !request.is_resource || names.empty() || std::ranges::find(names, request.name) != names.end();
}

RoleRules::RoleRules(Core& core)
    : roles_(core.cache.of(core.registry.get("roles.rbac.authorization.k8s.io"))),
      role_bindings_(core.cache.of(core.registry.get("rolebindings.rbac.authorization.k8s.io"))),
      cluster_roles_(core.cache.of(core.registry.get("clusterroles.rbac.authorization.k8s.io"))),
      cluster_role_bindings_(core.cache.of(core.registry.get("clusterrolebindings.rbac.authorization.k8s.io"))) {}

RuleList::RuleList(std::vector<PolicyRule> rules) : rules_(std::move(rules)), names_(rules_.size()) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const PolicyRule& rule = rules_[i];
    words_ += rule.words();
    if (rule.resource_names.size() <= kFewNames) continue;
    names_[i].insert(rule.resource_names.begin(), rule.resource_names.end());
    words_ -= rule.resource_names.size();
  }
}

bool RuleList::allows(const RequestAttributes& request) const {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (!names_[i].empty() && !names_[i].contains(request.name)) continue;
    if (names_[i].empty() ? apiserver::allows(rules_[i], request) : allows_some_name(rules_[i], request)) return true;
  }
  return false;
}

void RoleRules::load() {
  by_subject_.clear();
  local_.clear();
  cluster_.clear();
  named_.clear();
  for (const ResourceCache* cache : {&cluster_role_bindings_, &role_bindings_}) {
    for (const auto& [key, object] : cache->objects()) add(*cache, *object);
  }
}

void RoleRules::on_event(const ResourceCache& cache, const EventPtr& event) {
  const std::string& key = event->object ? event->object->key : event->previous->key;
  if (Bindings* const bindings = bindings_of(cache)) {
    remove(*bindings, key);
    if (event->object) add(cache, *event->object);
  } else if (&cache == &roles_ || &cache == &cluster_roles_) {
    const auto role = named_.find(fmt::format("{}{}", &cache == &roles_ ? kLocalRole : kClusterRole, key));
    if (role == named_.end()) return;
    role->second->rules = nullptr;
    role->second->is_read = false;
  }
}

RoleRules::Bindings* RoleRules::bindings_of(const ResourceCache& cache) {
  if (&cache == &role_bindings_) return &local_;
  return &cache == &cluster_role_bindings_ ? &cluster_ : nullptr;
}

void RoleRules::add(const ResourceCache& cache, const StoredObject& object) {
  ++reads_;
  const api::DocumentPtr document = object.shared_document();
  const Json* const role_ref = document->find("roleRef");
  const Json* const subjects = document->find("subjects");
  if (role_ref == nullptr || subjects == nullptr || subjects->if_array() == nullptr) return;
  Binding& binding = (*bindings_of(cache))[object.key];
  binding = {.key = object.key,
             .text = fmt::format("allowed by {} \"{}\" of {} \"{}\"", cache.resource().kind, object.key,
                                 role_ref->string_at({"kind"}), role_ref->string_at({"name"})),
             .places = {},
             .role = named(role_key(*role_ref, object.ns))};
  for (const Json& subject : *subjects->if_array()) {
    std::string place = place_of(subject, object.ns);
    if (!place.empty()) binding.places.push_back(std::move(place));
  }
  for (const std::string& place : binding.places) by_subject_[place].insert(&binding);
}

void RoleRules::remove(Bindings& bindings, const std::string& key) {
  const auto binding = bindings.find(key);
  if (binding == bindings.end()) return;
  for (const std::string& place : binding->second.places) {
    const auto found = by_subject_.find(place);
    if (found == by_subject_.end()) continue;  // a subject listed twice
    found->second.erase(&binding->second);
    if (found->second.empty()) by_subject_.erase(found);
  }
  const NamedRolePtr role = std::move(binding->second.role);
  bindings.erase(binding);
  constexpr long kHeldHereOnly = 2;  // by `role` and by the table
  if (role.use_count() == kHeldHereOnly) named_.erase(named_.find(role->key));
}

RoleRules::NamedRolePtr RoleRules::named(std::string key) {
  NamedRolePtr& role = named_[key];
  if (role == nullptr) role = std::make_shared<NamedRole>(NamedRole{.key = std::move(key), .rules = nullptr});
  return role;
}

RuleListPtr RoleRules::read_role(std::string_view key) const {
  const bool is_local = key.starts_with(kLocalRole);
  const ObjectPtr role =
      is_local ? roles_.find(key.substr(kLocalRole.size())) : cluster_roles_.find(key.substr(kClusterRole.size()));
  if (!role) return nullptr;
  ++reads_;
  return std::make_shared<const RuleList>(rules_from_json(*role->shared_document()));
}

const RuleList* RoleRules::read(NamedRole& role) const {
  if (!std::exchange(role.is_read, true)) role.rules = read_role(role.key);
  return role.rules.get();
}

RuleListPtr RoleRules::rules_of_role(const Json& role_ref, std::string_view ns) const {
  const std::string key = role_key(role_ref, ns);
  const auto role = named_.find(key);
  if (role == named_.end()) return read_role(key);
  read(*role->second);
  return role->second->rules;
}

RoleRules::Found RoleRules::find(std::string_view ns, const api::UserInfo& user) const {
  Found found;
  std::size_t parts = 0;
  const auto add = [&](std::string_view of, std::string_view name) {
    const auto there = by_subject_.find(fmt::format("{}/{}{}", ns, of, name));
    if (there == by_subject_.end()) return;
    found.insert(found.end(), there->second.begin(), there->second.end());
    ++parts;
  };
  add(kUser, user.name);
  for (const std::string& group : user.groups) add(kGroupSubject, group);
  if (parts > 1) {
    std::ranges::sort(found, ByKey());
    const auto repeated = std::ranges::unique(found);
    found.erase(repeated.begin(), repeated.end());
  }
  return found;
}

Verdict RoleRules::authorize(const api::UserInfo& user, const RequestAttributes& request) const {
  ++decision_;
  std::size_t words = 0;
  const auto allowed_by = [&](std::string_view ns) -> const Binding* {
    for (const Binding* const binding : find(ns, user)) {
      NamedRole& role = *binding->role;
      if (++words > kDecisionWordsMax) return nullptr;
      if (std::exchange(role.evaluated_by, decision_) == decision_) continue;
      const RuleList* const rules = read(role);
      if (rules == nullptr) continue;
      words += rules->words();
      if (words > kDecisionWordsMax) return nullptr;
      if (rules->allows(request)) return binding;
    }
    return nullptr;
  };
  const Binding* binding = allowed_by({});
  if (binding == nullptr && request.is_resource && !request.ns.empty()) binding = allowed_by(request.ns);
  if (binding != nullptr) return {true, binding->text};
  return {};
}

std::vector<RuleListPtr> RoleRules::rules_of(const api::UserInfo& user, std::string_view ns) const {
  static const RuleListPtr kEverything = std::make_shared<const RuleList>(
      std::vector<PolicyRule>{{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}});
  ++decision_;
  std::vector<RuleListPtr> rules;
  if (in_group(user, api::kMastersGroup)) rules.push_back(kEverything);
  const auto add = [&](std::string_view of) {
    for (const Binding* const binding : find(of, user)) {
      NamedRole& role = *binding->role;
      if (std::exchange(role.evaluated_by, decision_) == decision_ || read(role) == nullptr) continue;
      rules.push_back(role.rules);
    }
  };
  add({});
  if (!ns.empty()) add(ns);
  return rules;
}

}  // namespace spillway::apiserver
