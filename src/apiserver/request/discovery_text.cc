#include "apiserver/request/discovery_text.h"

#include "base/json_string.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

/// Member order of the outer document.
constexpr std::array<std::string_view, 10> kOuterMembers{"kind",   "apiVersion", "groupVersion",     "metadata",
                                                         "name",   "versions",   "preferredVersion", "resources",
                                                         "groups", "items"};
/// Member order of everything inside it. No two kinds of objects need different orders.
constexpr std::array<std::string_view, 23> kInnerMembers{"metadata",
                                                         "name",
                                                         "singularName",
                                                         "namespaced",
                                                         "group",
                                                         "groupVersion",
                                                         "version",
                                                         "versions",
                                                         "preferredVersion",
                                                         "resources",
                                                         "freshness",
                                                         "resource",
                                                         "subresource",
                                                         "responseKind",
                                                         "scope",
                                                         "singularResource",
                                                         "kind",
                                                         "verbs",
                                                         "shortNames",
                                                         "categories",
                                                         "subresources",
                                                         "storageVersionHash",
                                                         "serverAddress"};

void append_ordered(const Json& value, std::span<const std::string_view> order, std::string& out) {
  if (const Json::Array* elements = value.if_array()) {
    out += '[';
    for (std::size_t i = 0; i < elements->size(); ++i) {
      if (i > 0) out += ',';
      append_ordered((*elements)[i], kInnerMembers, out);
    }
    out += ']';
    return;
  }
  const Json::Object* object = value.if_object();
  if (object == nullptr) return api::append_text(value, out);
  std::vector<const api::JsonObject::Member*> members;
  for (const auto& member : *object) members.push_back(&member);
  const auto place = [&](const api::JsonObject::Member* member) { return std::ranges::find(order, member->key); };
  std::ranges::stable_sort(members, {}, place);  // by name before, and where there is no place
  out += '{';
  for (const auto* member : members) {
    if (member != members.front()) out += ',';
    append_json_string(member->key, out);
    out += ':';
    append_ordered(member->value, kInnerMembers, out);
  }
  out += '}';
}

}  // namespace

std::string discovery_text(const Json& document) {
  std::string out;
  append_ordered(document, kOuterMembers, out);
  return out;
}

}  // namespace spillway::apiserver
