#include "policy/flow/documents.h"

#include "base/check.h"
#include "policy/flow/built_in.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace spillway::flow {
namespace {

using api::Json;

const Json::Array& items_of(const Json& object, std::string_view key) {
  static const Json::Array kNoItems;
  const Json* found = object.find(key);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNoItems : *list;
}

std::vector<std::string> texts_of(const Json& object, std::string_view key) {
  std::vector<std::string> out;
  for (const Json& each : items_of(object, key)) {
    if (const std::string* text = each.if_string()) out.push_back(*text);
  }
  return out;
}

std::optional<int> number_at(const Json* object, std::string_view key) {
  const Json* found = object == nullptr ? nullptr : object->find(key);
  const auto value = found == nullptr ? std::nullopt : found->if_int64();
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

Subject subject_from(const Json& object) {
  const std::string_view kind = object.string_at({"kind"});
  if (kind == "Group") return {Subject::Kind::kGroup, std::string(object.string_at({"group", "name"}))};
  if (kind == "ServiceAccount") {
    return {Subject::Kind::kServiceAccount, std::string(object.string_at({"serviceAccount", "name"})),
            std::string(object.string_at({"serviceAccount", "namespace"}))};
  }
  return {Subject::Kind::kUser, std::string(object.string_at({"user", "name"}))};
}

ResourceRule resource_rule_from(const Json& object) {
  const Json* cluster = object.find("clusterScope");
  return {.verbs = texts_of(object, "verbs"),
          .groups = texts_of(object, "apiGroups"),
          .resources = texts_of(object, "resources"),
          .namespaces = texts_of(object, "namespaces"),
          .cluster_scope = cluster != nullptr && cluster->if_bool().value_or(false)};
}

Rule rule_from(const Json& object) {
  Rule rule;
  for (const Json& each : items_of(object, "subjects")) rule.subjects.push_back(subject_from(each));
  for (const Json& each : items_of(object, "resourceRules")) rule.resources.push_back(resource_rule_from(each));
  for (const Json& each : items_of(object, "nonResourceRules")) {
    rule.paths.push_back({.verbs = texts_of(each, "verbs"), .paths = texts_of(each, "nonResourceURLs")});
  }
  return rule;
}

Json list_of(const std::vector<std::string>& texts) {
  Json::Array list;
  for (const std::string& each : texts) list.emplace_back(each);
  return list;
}

Json object_from(const Subject& subject) {
  switch (subject.kind) {
    case Subject::Kind::kGroup:
      return Json::object({{"kind", "Group"}, {"group", Json::object({{"name", subject.name}})}});
    case Subject::Kind::kServiceAccount:
      return Json::object({{"kind", "ServiceAccount"},
                           {"serviceAccount", Json::object({{"namespace", subject.ns}, {"name", subject.name}})}});
    case Subject::Kind::kUser:
      break;
  }
  return Json::object({{"kind", "User"}, {"user", Json::object({{"name", subject.name}})}});
}

Json object_from(const ResourceRule& rule) {
  Json out = Json::object(
      {{"verbs", list_of(rule.verbs)}, {"apiGroups", list_of(rule.groups)}, {"resources", list_of(rule.resources)}});
  if (rule.cluster_scope) out["clusterScope"] = true;
  out["namespaces"] = list_of(rule.namespaces);
  return out;
}

Json object_from(const Rule& rule) {
  Json out = Json::object();
  Json::Array subjects;
  for (const Subject& each : rule.subjects) subjects.push_back(object_from(each));
  out["subjects"] = std::move(subjects);
  Json::Array resources;
  for (const ResourceRule& each : rule.resources) resources.push_back(object_from(each));
  if (!resources.empty()) out["resourceRules"] = std::move(resources);
  Json::Array paths;
  for (const PathRule& each : rule.paths) {
    paths.push_back(Json::object({{"verbs", list_of(each.verbs)}, {"nonResourceURLs", list_of(each.paths)}}));
  }
  if (!paths.empty()) out["nonResourceRules"] = std::move(paths);
  return out;
}

Json object_named(std::string_view kind, std::string_view name, Json spec) {
  return Json::object({{"apiVersion", kFlowApi},
                       {"kind", kind},
                       {"metadata", Json::object({{"name", name}})},
                       {"spec", std::move(spec)}});
}

template <typename Named>
Named* find_named(std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? nullptr : &*found;
}

const Configuration& built_in() {
  static const Configuration kBuiltIn = built_in_configuration();
  return kBuiltIn;
}

template <typename Named>
bool is_of_table(const std::vector<Named>& table, std::string_view name) {
  return std::ranges::find(table, name, &Named::name) != table.end();
}

/// Puts those that are built in first, each part by name, without repetitions, and keeps `most`.
template <typename Named>
void keep_first(std::vector<Named>& all, const std::vector<Named>& table, std::size_t most) {
  std::ranges::stable_sort(all, {}, [&](const Named& each) {
    return std::pair<bool, std::string_view>(!is_of_table(table, each.name), each.name);
  });
  const auto again = std::ranges::unique(all, {}, &Named::name);
  all.erase(again.begin(), again.end());
  if (all.size() > most) all.erase(all.begin() + static_cast<std::ptrdiff_t>(most), all.end());
}

/// The fixed levels "exempt" and "catch-all", with the members that clients may choose.
Level fixed_level(const Level& fixed, const Level* chosen) {
  Level out = fixed;
  if (chosen == nullptr) return out;
  out.uid = chosen->uid;
  if (fixed.name == kExempt && chosen->limit == Level::Limit::kExempt) {
    out.shares = chosen->shares;
    out.lendable_percent = chosen->lendable_percent;
  }
  return out;
}

/// The level of node heartbeats, whose floor does not depend on its object.
Level node_level(const Level& fixed, const Level* chosen) {
  Level out = chosen == nullptr ? fixed : *chosen;
  out.limit = Level::Limit::kQueue;
  out.floor_percent = fixed.floor_percent;
  out.queues = std::max(out.queues, fixed.queues);
  out.queue_length = std::max(out.queue_length, fixed.queue_length);
  return out;
}

void bound_queues(Level& level) {
  level.queue_length = std::clamp(level.queue_length, 1, kFlowWaitsMax);
  level.queues = std::clamp(level.queues, 1, std::max(1, kLevelWaitsMax / level.queue_length));
}

std::vector<Level> complete_levels(std::vector<Level> levels) {
  for (const Level& fixed : built_in().levels) {
    const bool is_fixed = fixed.name == kExempt || fixed.name == kCatchAll;
    if (!is_fixed && fixed.name != kNodeHigh) continue;
    Level* chosen = find_named(levels, fixed.name);
    Level out = is_fixed ? fixed_level(fixed, chosen) : node_level(fixed, chosen);
    if (chosen != nullptr) {
      *chosen = std::move(out);
    } else {
      levels.push_back(std::move(out));
    }
  }
  std::ranges::for_each(levels, bound_queues);
  // Only the level of that name has no limit.
  std::erase_if(levels, [](const Level& each) { return each.limit == Level::Limit::kExempt && each.name != kExempt; });
  return levels;
}

void complete_schemas(std::vector<Schema>& schemas) {
  for (const Schema& fixed : built_in().schemas) {
    if (fixed.name != kExempt && fixed.name != kCatchAll) continue;
    Schema* chosen = find_named(schemas, fixed.name);
    if (chosen == nullptr) {
      schemas.push_back(fixed);
    } else {
      std::string uid = std::move(chosen->uid);
      *chosen = fixed;
      chosen->uid = std::move(uid);
    }
  }
}

/// Leaves out schemas beyond the allowed number of words; built-in ones come first.
void bound_words(std::vector<Schema>& schemas) {
  std::size_t all = 0;
  std::erase_if(schemas, [&all](const Schema& each) {
    const std::size_t words = words_of(each);
    if (words > kSchemaWordsMax || all + words > kWordsMax) return true;
    all += words;
    return false;
  });
}

}  // namespace

Schema schema_of(const Json& object) {
  Schema out{.name = std::string(object.string_at({"metadata", "name"})),
             .level = std::string(object.string_at({"spec", "priorityLevelConfiguration", "name"})),
             .rules = {},
             .uid = std::string(object.string_at({"metadata", "uid"}))};
  const Json* spec = object.find("spec");
  if (spec == nullptr) return out;
  if (const auto precedence = number_at(spec, "matchingPrecedence")) out.precedence = *precedence;
  const std::string_view by = spec->string_at({"distinguisherMethod", "type"});
  if (by == "ByUser") out.by = FlowBy::kUser;
  if (by == "ByNamespace") out.by = FlowBy::kNamespace;
  for (const Json& each : items_of(*spec, "rules")) out.rules.push_back(rule_from(each));
  return out;
}

Level level_of(const Json& object) {
  Level out{.name = std::string(object.string_at({"metadata", "name"})),
            .uid = std::string(object.string_at({"metadata", "uid"}))};
  if (object.string_at({"spec", "type"}) == "Exempt") {
    const Json* exempt = object.at({"spec", "exempt"});
    out.limit = Level::Limit::kExempt;
    out.shares = number_at(exempt, "nominalConcurrencyShares").value_or(0);
    out.lendable_percent = number_at(exempt, "lendablePercent").value_or(0);
    return out;
  }
  const Json* limited = object.at({"spec", "limited"});
  out.shares = number_at(limited, "nominalConcurrencyShares").value_or(out.shares);
  out.lendable_percent = number_at(limited, "lendablePercent").value_or(0);
  out.borrowing_limit_percent = number_at(limited, "borrowingLimitPercent");
  if (object.string_at({"spec", "limited", "limitResponse", "type"}) != "Queue") return out;
  const Json* queuing = object.at({"spec", "limited", "limitResponse", "queuing"});
  out.limit = Level::Limit::kQueue;
  out.queues = number_at(queuing, "queues").value_or(out.queues);
  out.hand_size = number_at(queuing, "handSize").value_or(out.hand_size);
  out.queue_length = number_at(queuing, "queueLengthLimit").value_or(out.queue_length);
  return out;
}

Json document_of(const Schema& schema) {
  Json spec = Json::object({{"priorityLevelConfiguration", Json::object({{"name", schema.level}})},
                            {"matchingPrecedence", std::int64_t{schema.precedence}}});
  if (schema.by != FlowBy::kNothing) {
    spec["distinguisherMethod"] = Json::object({{"type", schema.by == FlowBy::kUser ? "ByUser" : "ByNamespace"}});
  }
  Json::Array rules;
  for (const Rule& each : schema.rules) rules.push_back(object_from(each));
  if (!rules.empty()) spec["rules"] = std::move(rules);
  return object_named(kSchemaKind, schema.name, std::move(spec));
}

Json document_of(const Level& level) {
  if (level.limit == Level::Limit::kExempt) {
    return object_named(
        kLevelKind, level.name,
        Json::object({{"type", "Exempt"},
                      {"exempt", Json::object({{"nominalConcurrencyShares", std::int64_t{level.shares}},
                                               {"lendablePercent", std::int64_t{level.lendable_percent}}})}}));
  }
  Json response = Json::object({{"type", level.limit == Level::Limit::kQueue ? "Queue" : "Reject"}});
  if (level.limit == Level::Limit::kQueue) {
    response["queuing"] = Json::object({{"queues", std::int64_t{level.queues}},
                                        {"handSize", std::int64_t{level.hand_size}},
                                        {"queueLengthLimit", std::int64_t{level.queue_length}}});
  }
  Json limited = Json::object({{"nominalConcurrencyShares", std::int64_t{level.shares}},
                               {"limitResponse", std::move(response)},
                               {"lendablePercent", std::int64_t{level.lendable_percent}}});
  if (level.borrowing_limit_percent) {
    limited["borrowingLimitPercent"] = std::int64_t{*level.borrowing_limit_percent};
  }
  return object_named(kLevelKind, level.name, Json::object({{"type", "Limited"}, {"limited", std::move(limited)}}));
}

bool is_built_in(std::string_view name) {
  return is_of_table(built_in().schemas, name) || is_of_table(built_in().levels, name);
}

Configuration assemble(std::vector<Schema> schemas, std::vector<Level> levels) {
  Configuration out;
  out.levels = complete_levels(std::move(levels));
  keep_first(out.levels, built_in().levels, kLevelsMax);
  std::erase_if(schemas, [&out](const Schema& each) { return find_named(out.levels, each.level) == nullptr; });
  complete_schemas(schemas);
  keep_first(schemas, built_in().schemas, kSchemasMax);
  bound_words(schemas);
  out.schemas = std::move(schemas);
  const Outcome arranged = arrange(out);
  SPILLWAY_CHECK(arranged.has_value());
  const bool has_heartbeats = std::ranges::any_of(out.schemas, [](const Schema& each) {
    return each.name == kHeartbeats && each.level == kNodeHigh && each.by == FlowBy::kUser;
  });
  if (!has_heartbeats) {
    const Schema* own = find_named(out.schemas, kHeartbeats);
    out.schemas.insert(std::prev(out.schemas.end()), {.name = std::string(kHeartbeats),
                                                      .level = std::string(kNodeHigh),
                                                      .by = FlowBy::kUser,
                                                      .rules = {},
                                                      .uid = own == nullptr ? std::string() : own->uid});
  }
  return out;
}

}  // namespace spillway::flow
