#include "apiserver/audit/policy_file.h"

#include "yaml/place.h"

#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {
namespace {

using yaml::Place;

constexpr std::string_view kApiVersion = "audit.k8s.io/v1";
constexpr std::string_view kKind = "Policy";

Result<AuditStages> read_stages(const Place& around) {
  AuditStages stages;
  SPILLWAY_TRY_VOID(around.for_each("omitStages", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(name, each.text());
    const std::optional<AuditStage> stage = parse_audit_stage(name);
    if (!stage) return each.wrong("expected RequestReceived, ResponseStarted, ResponseComplete or Panic");
    stages.add(*stage);
    return {};
  }));
  return stages;
}

Result<AuditResources> read_resources(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"group", "resources", "resourceNames"}));
  AuditResources out;
  SPILLWAY_TRY(group, place.optional_text("group"));
  out.group = std::move(group);
  SPILLWAY_TRY(resources, place.words("resources"));
  SPILLWAY_TRY(names, place.words("resourceNames"));
  if (!names.empty() && resources.empty()) return place.wrong("resourceNames need at least one of resources");
  out.resources = std::move(resources);
  out.names = std::move(names);
  return out;
}

Outcome check_path(const Place& place, std::string_view path) {
  if (path == "*") return {};
  if (!path.starts_with('/')) return place.wrong("expected a path that begins with /, or *");
  if (path.find('*') < path.size() - 1) return place.wrong("* may only be the last character of a path");
  return {};
}

Result<AuditRule> read_rule(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"level", "users", "userGroups", "verbs", "resources", "namespaces",
                                         "nonResourceURLs", "omitStages", "omitManagedFields"}));
  AuditRule rule;
  const Place level = place.member("level");
  const auto name = level.text();
  const auto known = name ? parse_audit_level(*name) : std::nullopt;
  if (!known) return level.wrong("expected None, Metadata, Request or RequestResponse");
  rule.level = *known;
  SPILLWAY_TRY(users, place.words("users"));
  SPILLWAY_TRY(groups, place.words("userGroups"));
  SPILLWAY_TRY(verbs, place.words("verbs"));
  SPILLWAY_TRY(namespaces, place.words("namespaces"));
  SPILLWAY_TRY(stages, read_stages(place));
  SPILLWAY_TRY(omit_managed_fields, place.flag("omitManagedFields"));
  SPILLWAY_TRY_VOID(place.for_each("resources", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(resources, read_resources(each));
    rule.resources.push_back(std::move(resources));
    return {};
  }));
  SPILLWAY_TRY_VOID(place.for_each("nonResourceURLs", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(path, each.text());
    SPILLWAY_TRY_VOID(check_path(each, path));
    rule.paths.push_back(std::move(path));
    return {};
  }));
  if (!rule.paths.empty() && (!rule.resources.empty() || !namespaces.empty())) {
    return place.wrong("a rule is either for resources and namespaces or for nonResourceURLs");
  }
  rule.users = std::move(users);
  rule.groups = std::move(groups);
  rule.verbs = std::move(verbs);
  rule.namespaces = std::move(namespaces);
  rule.omit_stages = stages;
  rule.omit_managed_fields = omit_managed_fields;
  return rule;
}

}  // namespace

Result<AuditPolicy> parse_audit_policy(const std::string& file, const yaml::Document& document) {
  const Place top(file, document);
  SPILLWAY_TRY_VOID(top.check_members({"apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"}));
  SPILLWAY_TRY_VOID(top.expect("apiVersion", kApiVersion));
  SPILLWAY_TRY_VOID(top.expect("kind", kKind));
  AuditPolicy policy;
  SPILLWAY_TRY(stages, read_stages(top));
  policy.omit_stages = stages;
  SPILLWAY_TRY(omit_managed_fields, top.flag("omitManagedFields"));
  policy.omit_managed_fields = omit_managed_fields.value_or(false);
  SPILLWAY_TRY_VOID(top.for_each("rules", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(rule, read_rule(each));
    policy.rules.push_back(std::move(rule));
    return {};
  }));
  if (policy.rules.empty()) return top.wrong("rules are missing: nothing would be written down");
  return policy;
}

Result<AuditPolicy> read_audit_policy(const std::string& file) {
  auto document = yaml::read_file(file);
  if (!document) return invalid(document.error().at, "{}", document.error().message);
  return parse_audit_policy(file, *document);
}

}  // namespace spillway::apiserver
