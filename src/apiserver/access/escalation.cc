#include "apiserver/access/escalation.h"

#include "api/text/identities.h"
#include "apiserver/roles/rule_cover.h"
#include "base/utf8.h"

#include <cstddef>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kAggregationRefusal = "must have cluster-admin privileges to use an aggregationRule";

/// Bytes of a rule in a message.
constexpr std::size_t kRuleBytesMax = 2U << 10U;

std::vector<const PolicyRule*> places_of(const std::vector<RuleListPtr>& lists) {
  std::vector<const PolicyRule*> places;
  for (const RuleListPtr& list : lists) {
    for (const PolicyRule& rule : list->rules()) places.push_back(&rule);
  }
  return places;
}

/// True if a write changes only members of the garbage collector and of the server. A label is more than that: it may
/// add the role's rules to another role.
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
  const std::vector<RuleListPtr> held = rules_.rules_of(user, {});
  const PolicyRule everything[]{{.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}},
                                {.verbs = {"*"}, .non_resource_urls = {"*"}}};
  return compare_rules(places_of(held), everything).answer == RuleComparison::Answer::kCovered;
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
  std::vector<PolicyRule> own;
  RuleListPtr bound;
  if (binds) {
    const Json* role_ref = object.find("roleRef");
    if (role_ref == nullptr) return {};
    special.resource = role_ref->string_at({"kind"}) == "Role" ? "roles" : "clusterroles";
    special.name = role_ref->string_at({"name"});
    bound = rules_.rules_of_role(*role_ref, ns);
    if (bound == nullptr && !rules_.authorize(user, special).allowed) {
      return api::not_found_status({std::string(resource.group), special.resource}, special.name);
    }
  } else {
    own = rules_from_json(object);
  }
  const std::vector<PolicyRule>& wanted = bound == nullptr ? own : bound->rules();
  if (rules_.authorize(user, special).allowed) return {};
  const std::vector<RuleListPtr> held = rules_.rules_of(user, ns);
  const RuleComparison comparison = compare_rules(places_of(held), wanted);
  switch (comparison.answer) {
    case RuleComparison::Answer::kCovered:
      return {};
    case RuleComparison::Answer::kTooLarge:
      return api::forbidden_status(
          resource.group_resource(), name,
          fmt::format("the rules are too many to be compared with those that user \"{}\" holds: use smaller roles",
                      user.name));
    case RuleComparison::Answer::kLacking:
      break;
  }
  return api::forbidden_status(
      resource.group_resource(), name,
      fmt::format("user \"{}\" is attempting to grant RBAC permissions not currently held: {}", user.name,
                  shortened(api::to_text(to_json(wanted[comparison.lacking])), kRuleBytesMax)));
}

}  // namespace spillway::apiserver
