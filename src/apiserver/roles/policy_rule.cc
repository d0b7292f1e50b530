#include "apiserver/roles/policy_rule.h"

namespace spillway::apiserver {

namespace {

using api::Json;

std::vector<std::string> words_of(const Json* list) {
  std::vector<std::string> out;
  if (list == nullptr || list->if_array() == nullptr) return out;
  for (const Json& text : *list->if_array()) out.emplace_back(text.string_at({}));
  return out;
}

Json json_list(const std::vector<std::string>& texts) {
  return Json::Array(texts.begin(), texts.end());
}

}  // namespace

PolicyRule rule_from_json(const Json& rule) {
  return {words_of(rule.find("verbs")), words_of(rule.find("apiGroups")), words_of(rule.find("resources")),
          words_of(rule.find("resourceNames")), words_of(rule.find("nonResourceURLs"))};
}

std::vector<PolicyRule> rules_from_json(const Json& role) {
  std::vector<PolicyRule> rules;
  const Json* const list = role.find("rules");
  if (list == nullptr || list->if_array() == nullptr) return rules;
  for (const Json& rule : *list->if_array()) rules.push_back(rule_from_json(rule));
  return rules;
}

Json to_json(const PolicyRule& rule) {
  Json out = Json::object({{"verbs", json_list(rule.verbs)}});
  if (!rule.non_resource_urls.empty()) {
    out["nonResourceURLs"] = json_list(rule.non_resource_urls);
    return out;
  }
  out["apiGroups"] = json_list(rule.api_groups);
  out["resources"] = json_list(rule.resources);
  if (!rule.resource_names.empty()) out["resourceNames"] = json_list(rule.resource_names);
  return out;
}

}  // namespace spillway::apiserver
