#include "apiserver/roles/aggregation.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace spillway::apiserver {
namespace {

using api::Json;

const Json::Array& members_at(const Json& object, std::string_view member) {
  static const Json::Array kNone;
  const Json* const found = object.find(member);
  const Json::Array* const list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNone : *list;
}

api::StringMap labels_of(const Json& role) {
  api::StringMap labels;
  const Json* const found = role.at({"metadata", "labels"});
  if (found == nullptr || found->if_object() == nullptr) return labels;
  for (const auto& [key, value] : *found->if_object()) labels.emplace(key, value.string_at({}));
  return labels;
}

std::string_view role_name(const Json& role) {
  return role.string_at({"metadata", "name"});
}

}  // namespace

std::string rule_identity(const Json& rule) {
  Json::Array parts;
  for (const std::string_view member :
       std::initializer_list<std::string_view>{"apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs"}) {
    parts.emplace_back(members_at(rule, member));
  }
  return api::to_text(Json(std::move(parts)));
}

std::vector<api::LabelSelector> aggregation_selectors(const Json& role) {
  std::vector<api::LabelSelector> out;
  const Json* const aggregation = role.find("aggregationRule");
  if (aggregation == nullptr) return out;
  for (const Json& each : members_at(*aggregation, "clusterRoleSelectors")) {
    if (auto selector = api::label_selector_from_json(&each)) out.push_back(*std::move(selector));
  }
  return out;
}

std::optional<Json> aggregated_rules(const Json& role, std::span<const GatheredRole> by_name, std::size_t bytes_max) {
  Json::Array rules;
  std::set<std::string, std::less<>> known;
  std::size_t bytes = 0;
  for (const api::LabelSelector& selector : aggregation_selectors(role)) {
    for (const GatheredRole& each : by_name) {
      if (each.name == role_name(role) || !selector.matches(*each.labels)) continue;
      const api::DocumentPtr document = each.document();
      for (const Json& rule : members_at(*document, "rules")) {
        const auto [identity, is_new] = known.insert(rule_identity(rule));
        if (!is_new) continue;
        bytes += identity->size();
        if (bytes > bytes_max) return std::nullopt;
        rules.push_back(rule);
      }
    }
  }
  return rules.empty() ? Json() : Json(std::move(rules));
}

Json aggregated_rules(const Json& role, std::span<const Json> roles) {
  std::map<std::string, std::pair<api::StringMap, const Json*>, std::less<>> sorted;
  for (const Json& each : roles) {
    if (each.string_at({"kind"}) == "ClusterRole") sorted.emplace(role_name(each), std::pair(labels_of(each), &each));
  }
  std::vector<GatheredRole> by_name;
  for (const auto& [name, each] : sorted) {
    by_name.push_back(
        {name, &each.first, [document = each.second] { return std::make_shared<const Json>(*document); }});
  }
  return *aggregated_rules(role, by_name, std::numeric_limits<std::size_t>::max());
}

bool are_same_rules(const Json* some, const Json* others) {
  static const Json::Array kNone;
  const auto list = [](const Json* rules) -> const Json::Array& {
    return rules == nullptr || rules->if_array() == nullptr ? kNone : *rules->if_array();
  };
  return std::ranges::equal(list(some), list(others), {}, rule_identity, rule_identity);
}

}  // namespace spillway::apiserver
