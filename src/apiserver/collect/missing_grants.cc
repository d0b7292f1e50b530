#include "apiserver/collect/missing_grants.h"

#include <algorithm>
#include <string_view>
#include <utility>

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

}  // namespace

std::optional<Json> with_missing_grants(const Json& current, const Json& wanted) {
  constexpr std::string_view kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";
  if (current.string_at({"metadata", "annotations", kAutoUpdate}) == "false") return std::nullopt;
  if (current.string_at({"roleRef", "name"}) != wanted.string_at({"roleRef", "name"})) return std::nullopt;
  const auto rules = lacking(current, wanted, "rules", covers);
  const auto subjects = lacking(current, wanted, "subjects", is_same_subject);
  if (rules.empty() && subjects.empty()) return std::nullopt;
  Json whole = current;
  for (const auto& [member, missing] :
       {std::pair(std::string_view("rules"), &rules), std::pair(std::string_view("subjects"), &subjects)}) {
    if (missing->empty()) continue;
    Json::Array all = array_at(current, member);
    all.insert(all.end(), missing->begin(), missing->end());
    whole[member] = std::move(all);
  }
  return whole;
}

}  // namespace spillway::apiserver
