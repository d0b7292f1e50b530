#include "apiserver/roles/missing_grants.h"

#include "apiserver/roles/rule_cover.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {
namespace {

using api::Json;

const Json::Array& array_at(const Json& object, std::string_view member) {
  static const Json::Array kNone;
  const Json* const found = object.find(member);
  const Json::Array* const array = found == nullptr ? nullptr : found->if_array();
  return array == nullptr ? kNone : *array;
}

bool covers_texts(const Json& rule, const Json& wanted, std::string_view member, bool star_is_all) {
  const Json::Array& has = array_at(rule, member);
  if (star_is_all && std::ranges::find(has, Json("*")) != has.end()) return true;
  return std::ranges::all_of(array_at(wanted, member),
                             [&has](const Json& text) { return std::ranges::find(has, text) != has.end(); });
}

/// A rule without `resourceNames` is for all names; one that has some does not cover a rule for all.
bool covers_names(const Json& rule, const Json& wanted) {
  const Json::Array& names = array_at(rule, "resourceNames");
  return names.empty() ||
         (!array_at(wanted, "resourceNames").empty() && covers_texts(rule, wanted, "resourceNames", false));
}

bool covers(const Json& rule, const Json& wanted) {
  return covers_texts(rule, wanted, "verbs", true) && covers_texts(rule, wanted, "apiGroups", true) &&
         covers_texts(rule, wanted, "resources", true) && covers_texts(rule, wanted, "nonResourceURLs", true) &&
         covers_names(rule, wanted);
}

bool is_same_subject(const Json& subject, const Json& wanted) {
  return std::ranges::all_of(
      std::initializer_list<std::string_view>{"kind", "apiGroup", "name", "namespace"},
      [&](std::string_view member) { return subject.string_at({member}) == wanted.string_at({member}); });
}

Json::Array lacking(const Json& current, const Json& wanted, std::string_view member,
                    bool (*is_there)(const Json& has, const Json& wants)) {
  Json::Array missing;
  for (const Json& wants : array_at(wanted, member)) {
    const auto& has = array_at(current, member);
    if (std::ranges::none_of(has, [&](const Json& each) { return is_there(each, wants); })) missing.push_back(wants);
  }
  return missing;
}

void append(Json& whole, std::initializer_list<std::string_view> path, const Json& current,
            const Json::Array& missing) {
  if (missing.empty()) return;
  const Json* const there = current.at(path);
  Json::Array all = there != nullptr && there->if_array() != nullptr ? *there->if_array() : Json::Array();
  all.insert(all.end(), missing.begin(), missing.end());
  whole.make(path) = std::move(all);
}

/// Adds the labels or annotations that are absent.
void add_marks(Json& whole, const Json& wanted, std::string_view member) {
  const Json* const marks = wanted.at({"metadata", member});
  if (marks == nullptr || marks->if_object() == nullptr) return;
  for (const auto& [key, value] : *marks->if_object()) {
    if (whole.at({"metadata", member, key}) == nullptr) whole.make({"metadata", member, key}) = value;
  }
}

/// Adds a role's missing rules; `whole` is the stored role.
void add_rules(Json& whole, const Json& current, const Json& wanted) {
  const Json* const gathers = wanted.find("aggregationRule");
  if (gathers == nullptr) {
    whole.erase({"aggregationRule"});
    return append(whole, {"rules"}, current, lacking(current, wanted, "rules", covers));
  }
  const Json* const gathered = current.find("aggregationRule");
  const auto is_same = [](const Json& has, const Json& wants) { return has == wants; };
  append(whole, {"aggregationRule", "clusterRoleSelectors"}, current,
         lacking(gathered == nullptr ? Json() : *gathered, *gathers, "clusterRoleSelectors", is_same));
}

}  // namespace

std::optional<Json> with_missing_grants(const Json& current, const Json& wanted) {
  constexpr std::string_view kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";
  if (current.string_at({"metadata", "annotations", kAutoUpdate}) == "false") return std::nullopt;
  Json whole = current;
  const Json* const role = wanted.find("roleRef");
  const auto is_other = [&](std::string_view member) {
    return current.string_at({"roleRef", member}) != role->string_at({member});
  };
  if (role != nullptr && (is_other("name") || is_other("kind"))) {
    whole["roleRef"] = *role;
    const Json* const subjects = wanted.find("subjects");
    whole["subjects"] = subjects == nullptr ? Json() : *subjects;
  } else if (role != nullptr) {
    append(whole, {"subjects"}, current, lacking(current, wanted, "subjects", is_same_subject));
  } else {
    add_rules(whole, current, wanted);
  }
  add_marks(whole, wanted, "labels");
  add_marks(whole, wanted, "annotations");
  if (whole == current) return std::nullopt;
  return whole;
}

Json with_rules_of_old(Json wanted, const Json& gatherer, const Json::Array& gathered) {
  if (gatherer.find("aggregationRule") != nullptr) return wanted;
  Json::Array missing;
  std::vector<PolicyRule> held;
  for (const Json& rule : gathered) held.push_back(rule_from_json(rule));
  for (const Json& rule : array_at(gatherer, "rules")) {
    const PolicyRule wants[]{rule_from_json(rule)};
    if (!are_covered(held, wants)) missing.push_back(rule);
  }
  const Json before = wanted;
  append(wanted, {"rules"}, before, missing);
  return wanted;
}

}  // namespace spillway::apiserver
