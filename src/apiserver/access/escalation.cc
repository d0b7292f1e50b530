#include "apiserver/access/escalation.h"

#include "api/text/identities.h"

#include <algorithm>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kAggregationRefusal = "must have cluster-admin privileges to use an aggregationRule";

bool grants(const std::vector<std::string>& list, const std::string& wanted) {
  return std::ranges::any_of(list, [&](const std::string& one) { return one == "*" || one == wanted; });
}

bool grants_path(const std::vector<std::string>& urls, const std::string& wanted) {
  return std::ranges::any_of(urls, [&](const std::string& url) {
    return url == "*" || url == wanted ||
           (url.ends_with('*') && wanted.starts_with(std::string_view(url).substr(0, url.size() - 1)));
  });
}

bool holds_path(std::span<const PolicyRule> held, const std::string& verb, const std::string& url) {
  return std::ranges::any_of(held, [&](const PolicyRule& rule) {
    return grants(rule.verbs, verb) && grants_path(rule.non_resource_urls, url);
  });
}

bool holds(std::span<const PolicyRule> held, const std::string& verb, const std::string& group,
           const std::string& resource, const std::string* name) {
  return std::ranges::any_of(held, [&](const PolicyRule& rule) {
    if (!grants(rule.verbs, verb) || !grants(rule.api_groups, group) || !grants(rule.resources, resource)) return false;
    return rule.resource_names.empty() ||
           (name != nullptr && std::ranges::find(rule.resource_names, *name) != rule.resource_names.end());
  });
}

/// What the garbage collector changes, and what the server keeps itself. A label is more than that: it may add the
/// rules to another role.
bool changes_what_holds_it_only(const Json& object, const Json& old) {
  const auto rest = [](Json document) {
    for (const std::string_view member :
         {"finalizers", "generation", "managedFields", "ownerReferences", "resourceVersion"}) {
      document.erase({"metadata", member});
    }
    return document;
  };
  return rest(object) == rest(old);
}

}  // namespace

bool covers(std::span<const PolicyRule> held, const PolicyRule& wanted) {
  for (const std::string& verb : wanted.verbs) {
    for (const std::string& url : wanted.non_resource_urls) {
      if (!holds_path(held, verb, url)) return false;
    }
    for (const std::string& group : wanted.api_groups) {
      for (const std::string& resource : wanted.resources) {
        if (wanted.resource_names.empty() && !holds(held, verb, group, resource, nullptr)) return false;
        for (const std::string& name : wanted.resource_names) {
          if (!holds(held, verb, group, resource, &name)) return false;
        }
      }
    }
  }
  return true;
}

StatusResult<void> EscalationCheck::check_create(const api::UserInfo& user, const Resource& resource,
                                                 const Json& object) const {
  if (resource.group == kGroup && object.find("aggregationRule") != nullptr && !may_aggregate(user, resource, object)) {
    return api::forbidden_status(resource.group_resource(), object.string_at({"metadata", "name"}),
                                 kAggregationRefusal);
  }
  return check(user, resource, object);
}

/// A rule that gathers others gathers anything, so it takes rights over everything.
bool EscalationCheck::may_aggregate(const api::UserInfo& user, const Resource& resource, const Json& object) const {
  if (in_group(user, api::kMastersGroup)) return true;
  const RequestAttributes escalate{.is_resource = true,
                                   .verb = "escalate",
                                   .group = std::string(resource.group),
                                   .resource = std::string(resource.plural),
                                   .name = std::string(object.string_at({"metadata", "name"}))};
  if (rules_.authorize(user, escalate).allowed) return true;
  const std::vector<PolicyRule> held = rules_.rules_of(user, {});
  const PolicyRule everything{.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}};
  const PolicyRule every_path{.verbs = {"*"}, .non_resource_urls = {"*"}};
  return covers(held, everything) && covers(held, every_path);
}

StatusResult<void> EscalationCheck::check_update(const api::UserInfo& user, const Resource& resource, SubresourceId,
                                                 const Json& object, const Json& old) const {
  if (resource.group != kGroup || changes_what_holds_it_only(object, old)) return {};
  const bool aggregates = object.find("aggregationRule") != nullptr || old.find("aggregationRule") != nullptr;
  if (aggregates && !may_aggregate(user, resource, object)) {
    return api::forbidden_status(resource.group_resource(), object.string_at({"metadata", "name"}),
                                 kAggregationRefusal);
  }
  return check(user, resource, object);
}

StatusResult<void> EscalationCheck::check(const api::UserInfo& user, const Resource& resource,
                                          const Json& object) const {
  if (resource.group != kGroup || in_group(user, api::kMastersGroup)) return {};
  const bool binds = resource.kind.ends_with("Binding");
  const std::string_view ns = object.string_at({"metadata", "namespace"});
  const std::string_view name = object.string_at({"metadata", "name"});
  RequestAttributes special{.is_resource = true,
                            .verb = binds ? "bind" : "escalate",
                            .group = std::string(resource.group),
                            .resource = std::string(resource.plural),
                            .ns = std::string(ns),
                            .name = std::string(name)};
  std::vector<PolicyRule> wanted;
  if (binds) {
    const Json* role_ref = object.find("roleRef");
    if (role_ref == nullptr) return {};
    special.resource = role_ref->string_at({"kind"}) == "Role" ? "roles" : "clusterroles";
    special.name = role_ref->string_at({"name"});
    const auto rules = rules_.rules_of_role(*role_ref, ns);
    if (!rules && !rules_.authorize(user, special).allowed) {
      return api::not_found_status({std::string(resource.group), special.resource}, special.name);
    }
    if (rules) wanted = *rules;
  } else if (const Json* rules = object.find("rules"); rules != nullptr && rules->if_array() != nullptr) {
    for (const Json& rule : *rules->if_array()) wanted.push_back(rule_from_json(rule));
  }
  if (rules_.authorize(user, special).allowed) return {};
  const std::vector<PolicyRule> held = rules_.rules_of(user, ns);
  for (const PolicyRule& rule : wanted) {
    if (covers(held, rule)) continue;
    return api::forbidden_status(
        resource.group_resource(), name,
        fmt::format("user \"{}\" is attempting to grant RBAC permissions not currently held: {}", user.name,
                    api::to_text(to_json(rule))));
  }
  return {};
}

}  // namespace spillway::apiserver
