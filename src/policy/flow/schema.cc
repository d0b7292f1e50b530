#include "policy/flow/schema.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace spillway::flow {
namespace {

constexpr std::string_view kAll = "*";
constexpr std::string_view kAccountPrefix = "system:serviceaccount:";

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::any_of(words, [&](std::string_view each) { return each == kAll || each == word; });
}

/// The user of an account is system:serviceaccount:NAMESPACE:NAME; neither part holds a colon.
bool is_account(const Subject& subject, std::string_view user) {
  if (!user.starts_with(kAccountPrefix)) return false;
  user.remove_prefix(kAccountPrefix.size());
  const std::size_t colon = user.find(':');
  if (colon == std::string_view::npos || user.substr(0, colon) != subject.ns) return false;
  return subject.name == kAll || user.substr(colon + 1) == subject.name;
}

bool is_subject(const Subject& subject, const Asked& asked) {
  switch (subject.kind) {
    case Subject::Kind::kUser:
      return subject.name == kAll || subject.name == asked.user;
    case Subject::Kind::kGroup:
      return subject.name == kAll || std::ranges::find(asked.groups, subject.name) != asked.groups.end();
    case Subject::Kind::kServiceAccount:
      return is_account(subject, asked.user);
  }
  return false;
}

bool is_resource(std::string_view pattern, const Asked& asked) {
  if (pattern == kAll) return true;
  if (asked.subresource.empty()) return pattern == asked.resource;
  return pattern.size() == asked.resource.size() + 1 + asked.subresource.size() &&
         pattern.starts_with(asked.resource) && pattern[asked.resource.size()] == '/' &&
         pattern.ends_with(asked.subresource);
}

bool matches(const ResourceRule& rule, const Asked& asked) {
  if (!has(rule.verbs, asked.verb) || !has(rule.groups, asked.group)) return false;
  if (asked.ns.empty() ? !rule.cluster_scope : !has(rule.namespaces, asked.ns)) return false;
  return std::ranges::any_of(rule.resources, [&](std::string_view pattern) { return is_resource(pattern, asked); });
}

bool is_path(std::string_view pattern, std::string_view path) {
  if (pattern == kAll || pattern == path) return true;
  return pattern.ends_with("/*") && path.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool matches(const PathRule& rule, const Asked& asked) {
  return has(rule.verbs, asked.verb) &&
         std::ranges::any_of(rule.paths, [&](std::string_view pattern) { return is_path(pattern, asked.path); });
}

bool matches(const Rule& rule, const Asked& asked) {
  if (!std::ranges::any_of(rule.subjects, [&](const Subject& each) { return is_subject(each, asked); })) return false;
  if (asked.is_resource) {
    return std::ranges::any_of(rule.resources, [&](const ResourceRule& each) { return matches(each, asked); });
  }
  return std::ranges::any_of(rule.paths, [&](const PathRule& each) { return matches(each, asked); });
}

template <typename Named>
const Named* find(const std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? nullptr : &*found;
}

template <typename Named>
Outcome check_names(const std::vector<Named>& all, std::string_view kind) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (find(all, all[i].name) != &all[i]) {
      return make_error(ErrorCode::kInvalid, "{} \"{}\" is there twice", kind, all[i].name);
    }
  }
  for (const std::string_view name : {kExempt, kCatchAll}) {
    if (find(all, name) == nullptr) return make_error(ErrorCode::kInvalid, "there is no {} \"{}\"", kind, name);
  }
  return {};
}

}  // namespace

bool matches(const Schema& schema, const Asked& asked) {
  return std::ranges::any_of(schema.rules, [&](const Rule& rule) { return matches(rule, asked); });
}

std::size_t words_of(const Schema& schema) {
  std::size_t words = 0;
  for (const Rule& rule : schema.rules) {
    words += rule.subjects.size();
    for (const ResourceRule& each : rule.resources) {
      words += each.verbs.size() + each.groups.size() + each.resources.size() + each.namespaces.size();
    }
    for (const PathRule& each : rule.paths) words += each.verbs.size() + each.paths.size();
  }
  return words;
}

bool is_heartbeat(const Asked& asked) {
  constexpr std::array<std::string_view, 4> kVerbs{"get", "create", "update", "patch"};
  if (!asked.is_resource || !asked.user.starts_with("system:node:")) return false;
  const bool is_lease = asked.group == "coordination.k8s.io" && asked.resource == "leases" &&
                        asked.ns == "kube-node-lease" && asked.subresource.empty();
  const bool is_status =
      asked.group.empty() && asked.resource == "nodes" && (asked.subresource.empty() || asked.subresource == "status");
  if (!is_lease && !is_status) return false;
  return std::ranges::find(kVerbs, asked.verb) != kVerbs.end() &&
         std::ranges::find(asked.groups, "system:nodes") != asked.groups.end();
}

std::string_view flow_name(FlowBy by, const Asked& asked) {
  switch (by) {
    case FlowBy::kNothing:
      break;
    case FlowBy::kUser:
      return asked.user;
    case FlowBy::kNamespace:
      return asked.ns;
  }
  return {};
}

Outcome arrange(Configuration& configuration) {
  SPILLWAY_TRY_VOID(check_names(configuration.levels, "priority level"));
  SPILLWAY_TRY_VOID(check_names(configuration.schemas, "flow schema"));
  for (const Schema& schema : configuration.schemas) {
    if (find(configuration.levels, schema.level) == nullptr) {
      return make_error(ErrorCode::kInvalid, "flow schema \"{}\" is of the priority level \"{}\", which does not exist",
                        schema.name, schema.level);
    }
  }
  // The catch-all schema is last: it matches requests that no other schema matches.
  std::ranges::sort(configuration.schemas, {}, [](const Schema& schema) {
    return std::tuple<bool, int, const std::string&>(schema.name == kCatchAll, schema.precedence, schema.name);
  });
  return {};
}

}  // namespace spillway::flow
