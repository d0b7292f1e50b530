#include "api/patch/patch.h"

#include "api/json/json_patch.h"
#include "api/patch/strategic_merge.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

namespace spillway::api {
namespace {

struct TypeRow {
  PatchType type;
  std::string_view content_type;
};

constexpr std::array kTypes = {
    TypeRow{PatchType::kJson, "application/json-patch+json"},
    TypeRow{PatchType::kMerge, "application/merge-patch+json"},
    TypeRow{PatchType::kStrategicMerge, "application/strategic-merge-patch+json"},
    TypeRow{PatchType::kApply, "application/apply-patch+yaml"},
};

}  // namespace

std::optional<PatchType> parse_patch_type(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ')) content_type.remove_suffix(1);
  while (content_type.starts_with(' ')) content_type.remove_prefix(1);
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  for (const TypeRow& row : kTypes) {
    if (std::equal(content_type.begin(), content_type.end(), row.content_type.begin(), row.content_type.end(), same)) {
      return row.type;
    }
  }
  return std::nullopt;
}

std::string_view content_type_of(PatchType type) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& row) { return row.type == type; })->content_type;
}

Json merge_patch(const Json& original, const Json& patch) {
  const JsonObject* changes = patch.if_object();
  if (changes == nullptr) return patch;
  static const JsonObject nothing;
  const JsonObject* object = original.if_object();
  const JsonObject& before = object != nullptr ? *object : nothing;
  JsonObject::Members members;  // both sides are sorted: one walk
  auto old = before.begin();
  for (const auto& [key, value] : *changes) {
    while (old != before.end() && old->key < key) members.push_back(*old++);
    const Json* present = old != before.end() && old->key == key ? &(old++)->value : nullptr;
    if (!value.is_null()) members.push_back({key, merge_patch(present != nullptr ? *present : Json(), value)});
  }
  std::copy(old, before.end(), std::back_inserter(members));
  JsonObject result;
  result.assign_unsorted(std::move(members));
  return Json(std::move(result));
}

Result<Json> apply_patch(const Type& type, const Json& original, PatchType patch_type, const Json& patch) {
  switch (patch_type) {
    case PatchType::kJson:
      return json_patch(original, patch);
    case PatchType::kMerge:
      if (!patch.is_object()) return make_error(ErrorCode::kBadRequest, "a merge patch is a JSON object");
      return merge_patch(original, patch);
    case PatchType::kStrategicMerge:
      return strategic_merge(type, original, patch);
    case PatchType::kApply:
      break;
  }
  return make_error(ErrorCode::kUnsupportedMediaType, "an apply patch needs a field manager");
}

}  // namespace spillway::api
