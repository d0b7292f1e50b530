#include "api/patch/strategic_merge.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kSetElementOrder = "$setElementOrder/";
constexpr std::string_view kDeleteFromPrimitiveList = "$deleteFromPrimitiveList/";

bool is_directive(std::string_view key) {
  return key == kPatch || key == kRetainKeys || key.starts_with(kSetElementOrder) ||
         key.starts_with(kDeleteFromPrimitiveList);
}

Error malformed(std::string_view path, std::string_view why) {
  return make_error(ErrorCode::kBadRequest, "{}: {}", path.empty() ? "patch" : path, why);
}

std::string child(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

using TextSet = std::set<std::string, std::less<>>;

/// The elements of a list as texts: equal texts are equal values.
TextSet texts_of(const Json::Array& list) {
  TextSet texts;
  for (const Json& one : list) texts.insert(to_text(one));
  return texts;
}

/// The way in which a list merges: by a key of its objects, as a set of primitives, or not at all.
struct ListStrategy {
  std::string_view key;
  bool set = false;
  const Type* element = nullptr;

  bool merges() const { return set || !key.empty(); }
};

ListStrategy strategy_of(const Field* field) {
  if (field == nullptr || field->shape != Shape::kList) return {};
  return {field->merge_key, field->merge_set, field->message};
}

/// The identity of an element: its key's value or, in a set, the element itself. nullptr: it has none.
const Json* identity(const Json& element, const ListStrategy& strategy) {
  return strategy.set ? &element : element.find(strategy.key);
}

/// The first position of each identity in a list.
class Positions {
 public:
  Positions(const Json::Array& list, const ListStrategy& strategy) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (const Json* id = identity(list[i], strategy)) add(*id, i);
    }
  }

  void add(const Json& id, std::size_t at) { first_.emplace(to_text(id), at); }

  std::optional<std::size_t> find(const Json* id) const {
    const auto found = id != nullptr ? first_.find(to_text(*id)) : first_.end();
    return found != first_.end() ? std::optional(found->second) : std::nullopt;
  }

 private:
  std::map<std::string, std::size_t, std::less<>> first_;
};

std::string_view directive_of(const Json& element) {
  return element.string_at({kPatch});
}

/// A value that has nothing to merge with: directives go, and so do the nulls of its objects.
Json without_directives(const Json& value) {
  if (const Json::Array* list = value.if_array()) {
    Json::Array out;
    for (const Json& element : *list) {
      if (element.is_object() && element.find(kPatch) != nullptr) continue;
      out.push_back(without_directives(element));
    }
    return Json(std::move(out));
  }
  const JsonObject* object = value.if_object();
  if (object == nullptr) return value;
  JsonObject out;
  for (const auto& [key, member] : *object) {
    if (!is_directive(key) && !member.is_null()) out[key] = without_directives(member);
  }
  return Json(std::move(out));
}

Result<JsonObject> merge_objects(const Type* type, JsonObject original, const JsonObject& patch,
                                 const std::string& path);

/// Listed elements in the order of `order`, the others in their own; two heads that both were in the original keep
/// their order there, else the listed one is first.
Json::Array arrange(Json::Array merged, const Json::Array& order, const Positions& original_positions,
                    const ListStrategy& strategy) {
  const Positions order_positions(order, strategy);
  std::vector<std::pair<std::size_t, std::size_t>> listed;  // place in the order, place in merged
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    if (const auto at = order_positions.find(identity(merged[i], strategy))) {
      listed.emplace_back(*at, i);
    } else {
      kept.push_back(i);
    }
  }
  std::sort(listed.begin(), listed.end());
  std::vector<std::optional<std::size_t>> before(merged.size());  // place in the original
  for (std::size_t i = 0; i < merged.size(); ++i) before[i] = original_positions.find(identity(merged[i], strategy));
  Json::Array out;
  auto next_listed = listed.begin();
  auto next_kept = kept.begin();
  while (next_listed != listed.end() || next_kept != kept.end()) {
    bool take_kept = next_listed == listed.end();
    if (!take_kept && next_kept != kept.end()) {
      const auto kept_at = before[*next_kept];
      const auto listed_at = before[next_listed->second];
      take_kept = kept_at && listed_at && *kept_at < *listed_at;
    }
    out.push_back(std::move(merged[take_kept ? *next_kept++ : (next_listed++)->second]));
  }
  return out;
}

/// The elements a patch sends, without those that only carry a directive.
struct SentList {
  Json::Array elements;
  Json::Array deleted;                // identities
  std::vector<const Json*> in_order;  // identities of all that is not deleted; nullptr: $patch: replace without a key
  bool replaces = false;
};

Result<SentList> read_sent(const Json::Array& sent, const ListStrategy& strategy, const std::string& path) {
  SentList out;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const Json& element = sent[i];
    if (strategy.set) {
      if (element.is_object() || element.is_array()) return malformed(path, "expected a list of primitives");
      out.elements.push_back(element);
      out.in_order.push_back(&element);
      continue;
    }
    if (!element.is_object()) return malformed(path, "expected a list of objects");
    const Json* directive = element.find(kPatch);
    const Json* id = identity(element, strategy);
    if (directive != nullptr && directive_of(element) == "replace") {
      out.replaces = true;
      out.in_order.push_back(id);
      continue;
    }
    if (id == nullptr) {
      return malformed(fmt::format("{}[{}]", path, i), fmt::format("no merge key {}", strategy.key));
    }
    if (directive == nullptr) {
      out.elements.push_back(element);
      out.in_order.push_back(id);
    } else if (directive_of(element) == "delete") {
      out.deleted.push_back(*id);
    } else {
      return malformed(fmt::format("{}[{}]", path, i), "$patch must be replace or delete");
    }
  }
  return out;
}

/// Checks that the sent elements occur in `order`, in that order. An element without identity matches any one entry.
Outcome check_ordered_subset(const SentList& sent, const Json::Array& order, const ListStrategy& strategy,
                             const std::string& path) {
  std::size_t from = 0;
  for (const Json* id : sent.in_order) {
    const auto matches = [&](const Json& entry) {
      const Json* other = identity(entry, strategy);
      return id == nullptr || (other != nullptr && *other == *id);
    };
    while (from < order.size() && !matches(order[from])) ++from;
    if (from == order.size()) return malformed(path, "$setElementOrder does not cover the list in its order");
    ++from;
  }
  return {};
}

Result<Json::Array> merge_lists(const ListStrategy& strategy, Json::Array original, const Json::Array& sent,
                                const Json::Array* order, const std::string& path) {
  SPILLWAY_TRY(patch, read_sent(sent, strategy, path));
  if (order != nullptr) SPILLWAY_TRY_VOID(check_ordered_subset(patch, *order, strategy, path));
  if (patch.replaces) return std::move(patch.elements);
  const Positions original_positions(original, strategy);
  Json::Array merged = std::move(original);
  if (!patch.deleted.empty()) {
    const TextSet deleted = texts_of(patch.deleted);
    std::erase_if(merged, [&](const Json& element) {
      const Json* id = identity(element, strategy);
      return id != nullptr && deleted.contains(to_text(*id));
    });
  }
  Positions positions(merged, strategy);
  for (const Json& element : patch.elements) {
    const Json* id = identity(element, strategy);
    const auto at = positions.find(id);
    if (!at) {
      positions.add(*id, merged.size());
      merged.push_back(strategy.set ? element : without_directives(element));
    } else if (!strategy.set) {
      SPILLWAY_TRY(one, merge_objects(strategy.element, std::move(*merged[*at].if_object()), *element.if_object(),
                                      fmt::format("{}[{}]", path, *at)));
      merged[*at] = Json(std::move(one));
    }
  }
  return arrange(std::move(merged), order != nullptr ? *order : patch.elements, original_positions, strategy);
}

/// $retainKeys: everything sent must be listed, everything else is removed.
Outcome retain_keys(const JsonObject& patch, JsonObject& result, const std::string& path) {
  const Json* directive = patch.find(kRetainKeys);
  if (directive == nullptr) return {};
  const Json::Array* keys = directive->if_array();
  if (keys == nullptr) return malformed(path, "$retainKeys must be a list");
  TextSet listed;
  for (const Json& key : *keys) {
    if (key.is_string()) listed.insert(*key.if_string());
  }
  for (const auto& [key, value] : patch) {
    if (is_directive(key) || value.is_null() || listed.contains(key)) continue;
    return malformed(path, fmt::format("$retainKeys does not list {}", key));
  }
  JsonObject retained;
  for (auto& [key, value] : result) {
    if (listed.contains(key)) retained[key] = std::move(value);
  }
  result = std::move(retained);
  return {};
}

Outcome delete_primitives(const JsonObject& patch, JsonObject& result, const std::string& path) {
  for (const auto& [key, value] : patch) {
    if (!key.starts_with(kDeleteFromPrimitiveList)) continue;
    if (!value.is_array()) return malformed(path, "$deleteFromPrimitiveList must be a list");
    Json* target = result.find(std::string_view(key).substr(kDeleteFromPrimitiveList.size()));
    if (target == nullptr) continue;
    Json::Array* list = target->if_array();
    if (list == nullptr) return malformed(path, "$deleteFromPrimitiveList names no list");
    const TextSet gone = texts_of(*value.if_array());
    std::erase_if(*list, [&](const Json& one) { return gone.contains(to_text(one)); });
  }
  return {};
}

/// The list $setElementOrder gives for a member; nullptr if there is none.
Result<const Json::Array*> order_of(const JsonObject& patch, std::string_view member, const std::string& path) {
  const Json* order = patch.find(fmt::format("{}{}", kSetElementOrder, member));
  if (order == nullptr) return nullptr;
  if (!order->is_array()) return malformed(path, "$setElementOrder must be a list");
  return order->if_array();
}

/// `before` is consumed; nullptr: the member is new.
Result<Json> merge_member(const Type* type, std::string_view name, Json* before, const Json& sent,
                          const Json::Array* order, const std::string& path) {
  const Field* field = type != nullptr ? type->find(name) : nullptr;
  const ListStrategy strategy = strategy_of(field);
  if (before == nullptr) {
    if (order != nullptr && strategy.merges() && sent.is_array()) {
      SPILLWAY_TRY(list, merge_lists(strategy, {}, *sent.if_array(), order, path));
      return Json(std::move(list));
    }
    return without_directives(sent);
  }
  if (before->is_object() && sent.is_object()) {
    if (field != nullptr && field->replace) return sent;
    const Type* below = field != nullptr && field->shape == Shape::kSingle ? field->message : nullptr;
    SPILLWAY_TRY(object, merge_objects(below, std::move(*before->if_object()), *sent.if_object(), path));
    return Json(std::move(object));
  }
  if (before->is_array() && sent.is_array() && strategy.merges()) {
    SPILLWAY_TRY(list, merge_lists(strategy, std::move(*before->if_array()), *sent.if_array(), order, path));
    return Json(std::move(list));
  }
  return sent;
}

/// $setElementOrder/F without a list F: the list that is there is arranged.
Outcome arrange_unsent(const Type* type, const JsonObject& patch, JsonObject& result, const std::string& path) {
  for (const auto& [key, value] : patch) {
    if (!key.starts_with(kSetElementOrder)) continue;
    const std::string_view member = std::string_view(key).substr(kSetElementOrder.size());
    Json* list = patch.contains(member) ? nullptr : result.find(member);
    const ListStrategy strategy = strategy_of(type != nullptr ? type->find(member) : nullptr);
    if (list == nullptr || !list->is_array() || !strategy.merges()) continue;
    SPILLWAY_TRY(order, order_of(patch, member, child(path, member)));
    Json::Array original = std::move(*list->if_array());
    const Positions original_positions(original, strategy);
    *list = Json(arrange(std::move(original), *order, original_positions, strategy));
  }
  return {};
}

Result<JsonObject> merge_objects(const Type* type, JsonObject before, const JsonObject& patch,
                                 const std::string& path) {
  if (const Json* directive = patch.find(kPatch)) {
    if (*directive == Json("delete")) return JsonObject();
    if (*directive != Json("replace")) return malformed(path, "$patch must be replace or delete");
    JsonObject whole = patch;
    whole.erase(kPatch);
    return whole;
  }
  SPILLWAY_TRY_VOID(retain_keys(patch, before, path));
  SPILLWAY_TRY_VOID(delete_primitives(patch, before, path));
  JsonObject::Members members;  // both sides are sorted: one walk
  auto old = before.begin();
  for (const auto& [key, value] : patch) {
    if (is_directive(key)) continue;
    while (old != before.end() && old->key < key) members.push_back(std::move(*old++));
    Json* present = old != before.end() && old->key == key ? &(old++)->value : nullptr;
    const std::string below = child(path, key);
    SPILLWAY_TRY(order, order_of(patch, key, below));
    if (value.is_null()) {
      if (order != nullptr) return malformed(below, "$setElementOrder of a list that is deleted");
      continue;
    }
    SPILLWAY_TRY(merged, merge_member(type, key, present, value, order, below));
    members.push_back({key, std::move(merged)});
  }
  std::move(old, before.end(), std::back_inserter(members));
  JsonObject result;
  result.assign_unsorted(std::move(members));
  SPILLWAY_TRY_VOID(arrange_unsent(type, patch, result, path));
  return result;
}

}  // namespace

Result<Json> strategic_merge(const Type& type, const Json& original, const Json& patch) {
  if (!patch.is_object()) return make_error(ErrorCode::kBadRequest, "a strategic merge patch is a JSON object");
  if (!original.is_object()) return make_error(ErrorCode::kInternalError, "the object to patch is no JSON object");
  SPILLWAY_TRY(merged, merge_objects(&type, *original.if_object(), *patch.if_object(), ""));
  return Json(std::move(merged));
}

}  // namespace spillway::api
