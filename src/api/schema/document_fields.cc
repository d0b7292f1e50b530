#include "api/schema/document_fields.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace spillway::api {
namespace {

/// The kind of value at a path, as far as ownership is concerned.
struct Slot {
  enum class Kind : std::uint8_t { kLeaf, kStruct, kMap, kSet, kKeyedList };

  Kind kind = Kind::kLeaf;
  const Type* type = nullptr;    // kStruct
  const Field* field = nullptr;  // kMap, kKeyedList: describes the elements; null: nothing does

  bool is_leaf() const { return kind == Kind::kLeaf; }

  bool is_object() const { return kind == Kind::kStruct || kind == Kind::kMap; }
};

/// The slot of values that no schema describes: objects are owned by their members, all else as a whole.
constexpr Slot kUntold{Slot::Kind::kMap, nullptr, nullptr};

Slot slot_of_element(const Field& field) {
  if (field.kind != ValueKind::kMessage || field.message->atomic()) return {};
  return {Slot::Kind::kStruct, field.message, nullptr};
}

Slot slot_of(const Field* field) {
  if (field == nullptr || field->atomic) return {};
  switch (field->shape) {
    case Shape::kSingle:
      return slot_of_element(*field);
    case Shape::kMap:
      return {Slot::Kind::kMap, nullptr, field};
    case Shape::kList:
      switch (field->list_type) {
        case ListType::kAtomic:
          return {};
        case ListType::kSet:
          return {Slot::Kind::kSet, nullptr, field};
        case ListType::kMap:
          return {Slot::Kind::kKeyedList, nullptr, field};
      }
  }
  return {};
}

/// The slot of a member of a struct or map, or of an element of a list.
Slot below(const Slot& slot, std::string_view member) {
  switch (slot.kind) {
    case Slot::Kind::kStruct: {
      const Field* field = slot.type->find(member);
      return field == nullptr && slot.type->open() ? kUntold : slot_of(field);
    }
    case Slot::Kind::kMap:
    case Slot::Kind::kKeyedList:
      return slot.field == nullptr ? kUntold : slot_of_element(*slot.field);
    case Slot::Kind::kLeaf:
    case Slot::Kind::kSet:
      break;
  }
  return {};
}

std::string member_element(std::string_view name) {
  return std::string("f:").append(name);
}

/// Keys that a document may leave out because they have a default.
const Json* default_of_key(std::string_view key) {
  static const Json protocol("TCP");
  return key == "protocol" ? &protocol : nullptr;
}

/// The path element of a list element; by position if it has no keys.
std::string list_element(const Slot& slot, const Json& element, std::size_t position) {
  if (slot.kind == Slot::Kind::kSet) return fmt::format("v:{}", to_text(element));
  Json keys = Json::object();
  for (const std::string_view key : slot.field->list_keys) {
    const Json* value = element.find(key);
    if (value == nullptr) value = default_of_key(key);
    if (value == nullptr) return fmt::format("i:{}", position);
    keys[key] = *value;
  }
  return fmt::format("k:{}", to_text(keys));
}

bool is_empty(const Json* value) {
  if (value == nullptr || value->is_null()) return true;
  if (value->is_object()) return value->if_object()->empty();
  return value->is_array() && value->if_array()->empty();
}

/// True if the value at this place has the form of the schema. Documents are checked before; this guards the walk.
bool fits(const Slot& slot, const Json& value) {
  return slot.is_object() ? value.is_object() : value.is_array();
}

Outcome collect(const Slot& slot, const Json& value, const std::string& path, FieldSet& out) {
  if (slot.is_leaf() || is_empty(&value) || !fits(slot, value)) {
    out.own();
    return {};
  }
  if (slot.is_object()) {
    for (const auto& [name, member] : *value.if_object()) {
      SPILLWAY_TRY_VOID(
          collect(below(slot, name), member, fmt::format("{}.{}", path, name), out.child(member_element(name))));
    }
    return {};
  }
  for (std::size_t i = 0; i < value.if_array()->size(); ++i) {
    const Json& element = (*value.if_array())[i];
    const std::string name = list_element(slot, element, i);
    if (name.starts_with("i:")) {
      return make_error(ErrorCode::kBadRequest, "{}[{}]: an element without its keys ({})", path, i,
                        fmt::join(slot.field->list_keys, ", "));
    }
    if (out.find(name) != nullptr) {
      return make_error(ErrorCode::kBadRequest, "{}[{}]: duplicate entries for {}", path, i, name.substr(2));
    }
    FieldSet& one = out.child(name);
    one.own();
    const Slot inside = below(slot, {});
    if (!inside.is_leaf()) SPILLWAY_TRY_VOID(collect(inside, element, fmt::format("{}[{}]", path, i), one));
  }
  return {};
}

/// The elements of a list by their path element, in order; several may share one.
using Elements = std::map<std::string, std::vector<const Json*>>;

Elements elements_of(const Slot& slot, const Json* list) {
  Elements out;
  if (list == nullptr || !list->is_array()) return out;
  for (std::size_t i = 0; i < list->if_array()->size(); ++i) {
    const Json& element = (*list->if_array())[i];
    out[list_element(slot, element, i)].push_back(&element);
  }
  return out;
}

class Comparer {
 public:
  explicit Comparer(FieldChanges& changes) : changes_(changes) {}

  /// The two differ; at most one is nullptr.
  void compare(const Slot& slot, const Json* before, const Json* after, std::vector<std::string>& path) {
    const bool as_leaf = slot.is_leaf() || (is_empty(before) && is_empty(after)) ||
                         (!is_empty(before) && !fits(slot, *before)) || (!is_empty(after) && !fits(slot, *after));
    if (as_leaf) {
      compare_leaf(before, after, path);
      return;
    }
    if (before == nullptr) at(changes_.added, path).own();
    if (after == nullptr) at(changes_.removed, path).own();
    if (slot.is_object()) {
      compare_members(slot, before, after, path);
    } else {
      compare_elements(slot, before, after, path);
    }
  }

 private:
  static FieldSet& at(FieldSet& set, const std::vector<std::string>& path) {
    FieldSet* here = &set;
    for (const std::string& element : path) here = &here->child(element);
    return *here;
  }

  void compare_leaf(const Json* before, const Json* after, const std::vector<std::string>& path) {
    FieldSet& set = before == nullptr ? changes_.added : after == nullptr ? changes_.removed : changes_.modified;
    at(set, path).own();
  }

  void compare_members(const Slot& slot, const Json* before, const Json* after, std::vector<std::string>& path) {
    static const JsonObject nothing;
    const JsonObject& old_object = before != nullptr && before->is_object() ? *before->if_object() : nothing;
    const JsonObject& new_object = after != nullptr && after->is_object() ? *after->if_object() : nothing;
    auto o = old_object.begin();  // both sides are sorted: one walk
    auto n = new_object.begin();
    while (o != old_object.end() || n != new_object.end()) {
      const bool has_old = o != old_object.end() && (n == new_object.end() || o->key <= n->key);
      const bool has_new = n != new_object.end() && (o == old_object.end() || n->key <= o->key);
      const std::string& name = has_old ? o->key : n->key;
      if (!has_old || !has_new || o->value != n->value) {
        path.push_back(member_element(name));
        compare(below(slot, name), has_old ? &o->value : nullptr, has_new ? &n->value : nullptr, path);
        path.pop_back();
      }
      if (has_old) ++o;
      if (has_new) ++n;
    }
  }

  void compare_elements(const Slot& slot, const Json* before, const Json* after, std::vector<std::string>& path) {
    const Elements old_elements = elements_of(slot, before);
    const Elements new_elements = elements_of(slot, after);
    static const std::vector<const Json*> none;
    std::set<std::string> names;
    for (const auto& [name, elements] : old_elements) names.insert(name);
    for (const auto& [name, elements] : new_elements) names.insert(name);
    for (const std::string& name : names) {
      const auto old_found = old_elements.find(name);
      const auto new_found = new_elements.find(name);
      path.push_back(name);
      compare_element(slot, old_found != old_elements.end() ? old_found->second : none,
                      new_found != new_elements.end() ? new_found->second : none, path);
      path.pop_back();
    }
  }

  void compare_element(const Slot& slot, const std::vector<const Json*>& before, const std::vector<const Json*>& after,
                       std::vector<std::string>& path) {
    if (before.size() <= 1 && after.size() <= 1) {
      compare_one(below(slot, {}), before.empty() ? nullptr : before[0], after.empty() ? nullptr : after[0], path);
      return;
    }
    // Repeated keys (older objects may have them) count as one value.
    const auto same = [](const Json* a, const Json* b) { return *a == *b; };
    if (std::equal(before.begin(), before.end(), after.begin(), after.end(), same)) return;
    compare_leaf(before.empty() ? nullptr : before[0], after.empty() ? nullptr : after[0], path);
  }

  /// An element counts as added or removed itself, besides what it holds.
  void compare_one(const Slot& slot, const Json* before, const Json* after, std::vector<std::string>& path) {
    if (before != nullptr && after != nullptr && *before == *after) return;
    if (before == nullptr) at(changes_.added, path).own();
    if (after == nullptr) at(changes_.removed, path).own();
    compare(slot, before, after, path);
  }

  FieldChanges& changes_;
};

Json merge(const Slot& slot, const Json* live, const Json& config);

/// Walks both lists: elements only in `live` at their place, shared ones when `config` reaches them, new ones before
/// the shared element that they precede in `config`.
Json merge_list(const Slot& slot, const Json& live, const Json& config) {
  const Json::Array& old_list = *live.if_array();
  const Json::Array& new_list = *config.if_array();
  std::vector<std::string> old_names;
  old_names.reserve(old_list.size());
  for (std::size_t i = 0; i < old_list.size(); ++i) old_names.push_back(list_element(slot, old_list[i], i));
  std::vector<std::string> new_names;
  new_names.reserve(new_list.size());
  for (std::size_t i = 0; i < new_list.size(); ++i) new_names.push_back(list_element(slot, new_list[i], i));
  std::map<std::string_view, std::size_t> old_position;
  for (std::size_t i = 0; i < old_names.size(); ++i) old_position.emplace(old_names[i], i);
  const std::set<std::string_view> sent(new_names.begin(), new_names.end());
  const auto next_shared = [&](std::size_t from) {
    while (from < new_names.size() && !old_position.contains(new_names[from])) ++from;
    return from;
  };
  const Slot inside = below(slot, {});
  Json::Array out;
  std::size_t o = 0;
  std::size_t shared = next_shared(0);
  for (std::size_t n = 0; o < old_list.size() || n < new_list.size();) {
    if (o < old_list.size()) {
      if (!sent.contains(old_names[o])) {
        out.push_back(old_list[o++]);
        continue;
      }
      if (shared >= new_names.size() || new_names[shared] != old_names[o]) {
        ++o;  // at another place in config, or there again
        continue;
      }
    }
    const auto found = old_position.find(new_names[n]);
    const Json* before = found != old_position.end() ? &old_list[found->second] : nullptr;
    out.push_back(merge(inside, before, new_list[n]));
    if (n == shared) {
      if (o < old_list.size() && old_names[o] == new_names[n]) ++o;
      shared = next_shared(n + 1);
    }
    ++n;
  }
  return Json(std::move(out));
}

Json merge(const Slot& slot, const Json* live, const Json& config) {
  if (slot.is_leaf() || live == nullptr || live->is_null() || !fits(slot, *live) || !fits(slot, config)) return config;
  if (!slot.is_object()) return merge_list(slot, *live, config);
  JsonObject::Members members;  // both sides are sorted: one walk
  auto old = live->if_object()->begin();
  const auto end = live->if_object()->end();
  for (const auto& [name, value] : *config.if_object()) {
    while (old != end && old->key < name) members.push_back(*old++);
    const Json* before = old != end && old->key == name ? &(old++)->value : nullptr;
    members.push_back({name, merge(below(slot, name), before, value)});
  }
  members.insert(members.end(), old, end);
  JsonObject out;
  out.assign_unsorted(std::move(members));
  return Json(std::move(out));
}

Json remove(const Slot& slot, const Json& document, const FieldSet& last, const FieldSet& keep) {
  static const FieldSet nothing;
  if (slot.is_leaf() || !fits(slot, document)) return document;
  // A member of a struct counts as owned when anything below it is; elements and map entries only by themselves.
  const auto counts = [&](const FieldSet& set) {
    return set.owned() || (slot.kind == Slot::Kind::kStruct && !set.empty());
  };
  const auto goes = [&](const FieldSet& mine, const FieldSet& others) { return counts(mine) && !counts(others); };
  const auto set_at = [&](const FieldSet& set, const std::string& element) -> const FieldSet& {
    const FieldSet* found = set.find(element);
    return found != nullptr ? *found : nothing;
  };
  if (slot.is_object()) {
    JsonObject out;
    for (const auto& [name, member] : *document.if_object()) {
      const std::string element = member_element(name);
      const FieldSet& mine = set_at(last, element);
      const FieldSet& others = set_at(keep, element);
      if (!goes(mine, others)) out[name] = remove(below(slot, name), member, mine, others);
    }
    return Json(std::move(out));
  }
  Json::Array out;
  for (std::size_t i = 0; i < document.if_array()->size(); ++i) {
    const Json& one = (*document.if_array())[i];
    const std::string element = list_element(slot, one, i);
    const FieldSet& mine = set_at(last, element);
    const FieldSet& others = set_at(keep, element);
    if (!goes(mine, others)) out.push_back(remove(below(slot, {}), one, mine, others));
  }
  return Json(std::move(out));
}

Slot root_slot(const Type& type) {
  return {Slot::Kind::kStruct, &type, nullptr};
}

}  // namespace

Result<FieldSet> fields_of(const Type& type, const Json& document) {
  FieldSet set;
  SPILLWAY_TRY_VOID(collect(root_slot(type), document, "", set));
  set.disown();
  return set;
}

FieldChanges compare_fields(const Type& type, const Json& before, const Json& after) {
  FieldChanges changes;
  std::vector<std::string> path;
  if (before != after) Comparer(changes).compare(root_slot(type), &before, &after, path);
  return changes;
}

Json merge_applied(const Type& type, const Json& live, const Json& config) {
  return merge(root_slot(type), &live, config);
}

Json remove_fields(const Type& type, const Json& document, const FieldSet& last, const FieldSet& keep) {
  return remove(root_slot(type), document, last, keep);
}

}  // namespace spillway::api
