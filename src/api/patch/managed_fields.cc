#include "api/patch/managed_fields.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "base/json_string.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::string_view kFieldsV1 = "FieldsV1";
constexpr std::string_view kAncient = "ancient-changes";
constexpr std::ptrdiff_t kUpdatesMax = 10;

Result<ManagedFieldsEntry> parse_entry(const Json& document) {
  ManagedFieldsEntry entry;
  const std::string_view operation = document.string_at({"operation"});
  if (operation != "Apply" && operation != "Update") {
    return make_error(ErrorCode::kBadRequest, "operation: expected Apply or Update, got \"{}\"", operation);
  }
  if (document.string_at({"fieldsType"}) != kFieldsV1) {
    return make_error(ErrorCode::kBadRequest, "fieldsType: expected {}", kFieldsV1);
  }
  const Json* fields = document.find("fieldsV1");
  if (fields == nullptr) return make_error(ErrorCode::kBadRequest, "fieldsV1: required");
  SPILLWAY_TRY(set, FieldSet::parse(*fields));
  entry.operation = operation == "Apply" ? FieldOperation::kApply : FieldOperation::kUpdate;
  entry.manager = document.string_at({"manager"});
  entry.api_version = document.string_at({"apiVersion"});
  entry.subresource = document.string_at({"subresource"});
  entry.fields = std::move(set);
  const Json* time = document.find("time");
  if (time != nullptr && time->is_string()) {
    SPILLWAY_TRY(parsed, parse_time(*time->if_string()));
    entry.time = parsed;
  }
  return entry;
}

Json entry_json(const ManagedFieldsEntry& entry) {
  Json out = Json::object({{"operation", entry.operation == FieldOperation::kApply ? "Apply" : "Update"},
                           {"fieldsType", kFieldsV1},
                           {"fieldsV1", entry.fields.to_json()}});
  if (!entry.manager.empty()) out["manager"] = entry.manager;
  if (!entry.api_version.empty()) out["apiVersion"] = entry.api_version;
  if (!entry.subresource.empty()) out["subresource"] = entry.subresource;
  if (entry.time) out["time"] = format_time(*entry.time);
  return out;
}

/// A total order: entries that compare equal here belong to the same manager.
auto order_of(const ManagedFieldsEntry& entry) {
  return std::tuple(entry.operation == FieldOperation::kUpdate, entry.time.value_or(WallTime{}),
                    std::string_view(entry.manager), std::string_view(entry.api_version),
                    std::string_view(entry.subresource));
}

}  // namespace

bool ManagedFieldsEntry::same_manager(const ManagedFieldsEntry& other) const {
  return manager == other.manager && operation == other.operation && subresource == other.subresource &&
         (operation == FieldOperation::kApply || api_version == other.api_version);
}

std::string ManagedFieldsEntry::text() const {
  std::string out;
  append_json_string(manager, out);
  if (!subresource.empty()) {
    out += " with subresource ";
    append_json_string(subresource, out);
  }
  if (operation == FieldOperation::kUpdate) out += fmt::format(" using {}", api_version);
  return out;
}

Result<ManagedFields> ManagedFields::parse(const Json& list) {
  ManagedFields managed;
  if (list.is_null()) return managed;
  const Json::Array* entries = list.if_array();
  if (entries == nullptr) return make_error(ErrorCode::kBadRequest, "metadata.managedFields: expected a list");
  for (std::size_t i = 0; i < entries->size(); ++i) {
    Result<ManagedFieldsEntry> entry = parse_entry((*entries)[i]);
    if (!entry) {
      return make_error(ErrorCode::kBadRequest, "metadata.managedFields[{}]: {}", i, entry.error().message);
    }
    managed.entries_.push_back(*std::move(entry));
  }
  return managed;
}

ManagedFields ManagedFields::of(const Json& document) {
  const Json* list = document.at({"metadata", "managedFields"});
  Result<ManagedFields> managed = list != nullptr ? parse(*list) : Result<ManagedFields>(ManagedFields());
  return managed ? *std::move(managed) : ManagedFields();
}

Json ManagedFields::to_json() const {
  if (entries_.empty()) return Json();
  std::vector<const ManagedFieldsEntry*> sorted;
  sorted.reserve(entries_.size());
  for (const ManagedFieldsEntry& entry : entries_) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return order_of(*a) < order_of(*b); });
  Json::Array list;
  for (const ManagedFieldsEntry* entry : sorted) list.push_back(entry_json(*entry));
  return Json(std::move(list));
}

void ManagedFields::write_to(Json& document) const {
  if (entries_.empty()) {
    document.erase({"metadata", "managedFields"});
  } else {
    document.make({"metadata", "managedFields"}) = to_json();
  }
}

const ManagedFieldsEntry* ManagedFields::find(const ManagedFieldsEntry& like) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.same_manager(like); });
  return found != entries_.end() ? &*found : nullptr;
}

void ManagedFields::put(ManagedFieldsEntry entry) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& other) { return other.same_manager(entry); });
  if (found == entries_.end()) {
    if (!entry.fields.empty()) entries_.push_back(std::move(entry));
    return;
  }
  *found = std::move(entry);
  drop_empty();
}

void ManagedFields::drop_empty() {
  std::erase_if(entries_, [](const ManagedFieldsEntry& entry) { return entry.fields.empty(); });
}

void ManagedFields::cap_updates() {
  const auto is_update = [](const ManagedFieldsEntry& entry) { return entry.operation == FieldOperation::kUpdate; };
  if (std::count_if(entries_.begin(), entries_.end(), is_update) <= kUpdatesMax) return;
  std::vector<ManagedFieldsEntry> others;  // and the buckets
  std::vector<ManagedFieldsEntry> updates;
  for (ManagedFieldsEntry& entry : entries_) {
    (is_update(entry) && entry.manager != kAncient ? updates : others).push_back(std::move(entry));
  }
  entries_ = std::move(others);
  std::sort(updates.begin(), updates.end(), [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
  // The oldest entry is merged into the bucket of its version and subresource; a new bucket counts as well.
  std::map<std::pair<std::string, std::string>, std::size_t> buckets;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_update(entries_[i])) buckets.emplace(std::pair(entries_[i].api_version, entries_[i].subresource), i);
  }
  auto kept = std::count_if(entries_.begin(), entries_.end(), is_update) + std::ssize(updates);
  auto oldest = updates.begin();
  for (; oldest != updates.end() && kept > kUpdatesMax; ++oldest) {
    oldest->manager = kAncient;
    const auto [bucket, is_new] = buckets.emplace(std::pair(oldest->api_version, oldest->subresource), entries_.size());
    if (is_new) {
      entries_.push_back(std::move(*oldest));
      continue;
    }
    --kept;
    entries_[bucket->second].fields.add(oldest->fields);
    entries_[bucket->second].time = oldest->time;
  }
  std::move(oldest, updates.end(), std::back_inserter(entries_));
}

}  // namespace spillway::api
