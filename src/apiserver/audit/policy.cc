#include "apiserver/audit/policy.h"

#include <algorithm>
#include <array>

namespace spillway::apiserver {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"None", "Metadata", "Request", "RequestResponse"};
constexpr std::array<std::string_view, 4> kStages = {"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"};

/// The place of `text` in `names` as a value of E.
template <typename E>
std::optional<E> parse_name(const std::array<std::string_view, 4>& names, std::string_view text) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

bool lists_word(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

/// "pods/*" and "*/status" match subresources; "pods" matches no subresource.
bool matches_resource(std::string_view pattern, const RequestAttributes& asked) {
  if (pattern == "*") return true;
  const std::size_t slash = pattern.find('/');
  if (slash == std::string_view::npos) return asked.subresource.empty() && pattern == asked.resource;
  const std::string_view resource = pattern.substr(0, slash);
  const std::string_view subresource = pattern.substr(slash + 1);
  if (subresource == "*") return resource == asked.resource;
  if (asked.subresource.empty() || subresource != asked.subresource) return false;
  return resource == "*" || resource == asked.resource;
}

bool matches_resources(const AuditResources& each, const RequestAttributes& asked) {
  if (each.group != asked.group) return false;
  if (each.resources.empty()) return true;
  if (!each.names.empty() && !lists_word(each.names, asked.name)) return false;
  return std::ranges::any_of(each.resources,
                             [&](std::string_view pattern) { return matches_resource(pattern, asked); });
}

bool matches_path(std::string_view pattern, std::string_view path) {
  if (pattern == "*" || pattern == path) return true;
  return pattern.ends_with('*') && path.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool matches_user(const AuditRule& rule, const api::UserInfo* user) {
  if (!rule.users.empty() && (user == nullptr || !lists_word(rule.users, user->name))) return false;
  if (rule.groups.empty()) return true;
  return user != nullptr &&
         std::ranges::any_of(user->groups, [&](const std::string& group) { return lists_word(rule.groups, group); });
}

bool matches(const AuditRule& rule, const api::UserInfo* user, const RequestAttributes& asked) {
  if (!matches_user(rule, user)) return false;
  if (!rule.verbs.empty() && !lists_word(rule.verbs, asked.verb)) return false;
  if (!rule.namespaces.empty() || !rule.resources.empty()) {
    if (!asked.is_resource) return false;
    if (!rule.namespaces.empty() && !lists_word(rule.namespaces, asked.ns)) return false;
    return rule.resources.empty() ||
           std::ranges::any_of(rule.resources, [&](const auto& each) { return matches_resources(each, asked); });
  }
  if (rule.paths.empty()) return true;
  return !asked.is_resource &&
         std::ranges::any_of(rule.paths, [&](std::string_view pattern) { return matches_path(pattern, asked.path); });
}

}  // namespace

std::string_view to_string(AuditLevel level) {
  return kLevels[static_cast<std::size_t>(level)];
}

std::optional<AuditLevel> parse_audit_level(std::string_view text) {
  return parse_name<AuditLevel>(kLevels, text);
}

std::string_view to_string(AuditStage stage) {
  return kStages[static_cast<std::size_t>(stage)];
}

std::optional<AuditStage> parse_audit_stage(std::string_view text) {
  return parse_name<AuditStage>(kStages, text);
}

AuditDecision decide_audit(const AuditPolicy& policy, const api::UserInfo* user, const RequestAttributes& asked) {
  for (const AuditRule& rule : policy.rules) {
    if (!matches(rule, user, asked)) continue;
    AuditDecision decision{rule.level, policy.omit_stages,
                           rule.omit_managed_fields.value_or(policy.omit_managed_fields)};
    decision.omit_stages.add(rule.omit_stages);
    return decision;
  }
  return {};
}

AuditPolicy default_audit_policy() {
  const std::vector<std::string> reads{"get", "list", "watch", "head", "options"};
  return {.rules = {
              // exec over a WebSocket is a GET, and a GET through a proxy may have any effect in the pod.
              {.level = AuditLevel::kMetadata,
               .resources = {{"",
                              {"pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy",
                               "nodes/proxy"},
                              {}}}},
              {.level = AuditLevel::kNone, .resources = {{"coordination.k8s.io", {"leases"}, {}}}},
              {.level = AuditLevel::kNone, .resources = {{"", {"events"}, {}}, {"events.k8s.io", {"events"}, {}}}},
              {.level = AuditLevel::kNone, .verbs = reads},
              {.level = AuditLevel::kMetadata},
          }};
}

}  // namespace spillway::apiserver
