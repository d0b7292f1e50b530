#include "api/patch/apply.h"

#include "api/json/document_bounds.h"
#include "api/patch/managed_fields.h"
#include "api/schema/document_fields.h"
#include "api/schema/typed.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace spillway::api {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager of kubectl's server-side apply.
constexpr std::string_view kKubectl = "kubectl";

/// Metadata that is never owned: fields that the server sets, or that name the object.
constexpr std::string_view kUntrackedMetadata[] = {"f:name",       "f:namespace",     "f:creationTimestamp",
                                                   "f:selfLink",   "f:uid",           "f:clusterName",
                                                   "f:generation", "f:managedFields", "f:resourceVersion"};

FieldSet tracked(FieldSet set, const FieldWriter& writer) {
  set.disown();
  set.erase("f:apiVersion");
  set.erase("f:kind");
  for (const std::string_view member : writer.untracked) set.erase(fmt::format("f:{}", member));
  if (set.find("f:metadata") != nullptr) {
    FieldSet& metadata = set.child("f:metadata");
    metadata.disown();
    for (const std::string_view element : kUntrackedMetadata) metadata.erase(element);
    if (metadata.empty()) set.erase("f:metadata");
  }
  return set;
}

ManagedFieldsEntry entry_of(const Type& type, const FieldWriter& writer, FieldOperation operation) {
  ManagedFieldsEntry entry;
  entry.manager = writer.manager.empty() ? "unknown" : writer.manager;
  entry.operation = operation;
  entry.api_version = type.api_version();
  entry.subresource = writer.subresource;
  entry.time = std::chrono::floor<seconds>(writer.time);
  return entry;
}

Json without_managed_fields(Json document) {
  document.erase({"metadata", "managedFields"});
  return document;
}

/// An object of the type in which nothing is set.
Json blank(const Type& type) {
  Result<TypedDocument> typed = read_body(type, Json::object());
  return typed ? std::move(typed->object) : Json::object();
}

bool is_reset(const Json& document) {
  const Json* list = document.at({"metadata", "managedFields"});
  const Json::Array* entries = list != nullptr ? list->if_array() : nullptr;
  return entries != nullptr && entries->size() == 1 && *entries->data() == Json::object();
}

/// The owners an update starts from.
ManagedFields owners_before(const Json* before, const Json& after, const FieldWriter& writer) {
  if (writer.subresource.empty()) {
    if (is_reset(after)) return ManagedFields();
    ManagedFields sent = ManagedFields::of(after);
    if (!sent.empty()) return sent;
  }
  return before != nullptr ? ManagedFields::of(*before) : ManagedFields();
}

enum class Touched : std::uint8_t { kNo, kYes };

/// Takes changed and removed fields away from all managers.
void lose(ManagedFields& owners, const FieldChanges& changes) {
  for (ManagedFieldsEntry& entry : owners.entries()) {
    entry.fields.subtract(changes.added);
    entry.fields.subtract(changes.modified);
    entry.fields.subtract(changes.removed);
  }
}

/// Puts `self` back after lose(), with the time of its last write that changed anything.
void put_back(ManagedFields& owners, ManagedFieldsEntry self, Touched touched) {
  const ManagedFieldsEntry* last = owners.find(self);
  if (touched == Touched::kNo) self.time = last != nullptr ? last->time : std::nullopt;
  owners.put(std::move(self));
  owners.drop_empty();
}

FieldSet changed(FieldChanges changes) {
  FieldSet set = std::move(changes.added);
  set.add(changes.modified);
  return set;
}

/// Takes the fields that the manager of `self` has owned so far out of the owners.
FieldSet take_fields(ManagedFields& owners, const ManagedFieldsEntry& self) {
  for (ManagedFieldsEntry& entry : owners.entries())
    if (entry.same_manager(self)) return std::exchange(entry.fields, FieldSet());
  return FieldSet();
}

struct Conflict {
  const ManagedFieldsEntry* owner;
  FieldSet fields;
};

std::vector<Conflict> find_conflicts(const ManagedFields& owners, const ManagedFieldsEntry& self,
                                     const FieldSet& changed_fields) {
  std::vector<Conflict> conflicts;
  for (const ManagedFieldsEntry& entry : owners.entries()) {
    if (entry.same_manager(self)) continue;
    FieldSet both = entry.fields.intersection(changed_fields);
    if (!both.empty()) conflicts.push_back({&entry, std::move(both)});
  }
  return conflicts;
}

/// `Apply failed with 1 conflict: conflict with "m": .data.a`, or a list by owner; one cause per path. At most
/// kCausesMax conflicts are listed.
Status conflict_status(const std::vector<Conflict>& conflicts) {
  StatusDetails details;
  std::map<std::string, std::vector<std::string>> paths_by_owner;
  for (const Conflict& conflict : conflicts) {
    for (std::string& path : conflict.fields.paths(kCausesMax - details.causes.size())) {
      path = complaint_path(std::move(path));
      details.causes.push_back({"FieldManagerConflict", fmt::format("conflict with {}", conflict.owner->text()), path});
      paths_by_owner[conflict.owner->text()].push_back(std::move(path));
    }
  }
  std::string message;
  if (details.causes.size() == 1) {
    message = fmt::format("Apply failed with 1 conflict: {}: {}", details.causes[0].message, details.causes[0].field);
  } else {
    message = fmt::format("Apply failed with {} conflicts: ", details.causes.size());
    std::string_view separator;
    for (const auto& [owner, paths] : paths_by_owner) {
      message += fmt::format("{}conflict{} with {}:", separator, paths.size() == 1 ? "" : "s", owner);
      for (const std::string& path : paths) message += fmt::format("\n- {}", path);
      separator = "\n";
    }
  }
  Status status(Error{ErrorCode::kConflict, std::move(message), {}});
  status.details = std::move(details);
  return status;
}

/// The fields that kubectl may take over without force: those of its client-side apply that still have the value
/// applied there.
FieldSet last_applied_fields(const Type& type, const Json& live) {
  const std::string_view text = live.string_at({"metadata", "annotations", kLastApplied});
  const Result<Json> document = text.empty() ? Result<Json>(Json()) : parse_json(text);
  if (!document || !document->is_object()) return FieldSet();
  const Result<TypedDocument> partial = read_partial(type, *document);
  if (!partial) return FieldSet();
  Result<FieldSet> fields = fields_of(type, partial->object);
  if (!fields) return FieldSet();
  const Result<TypedDocument> merged = read_body(type, merge_applied(type, live, partial->object));
  if (!merged) return FieldSet();
  fields->subtract(changed(compare_fields(type, live, merged->object)));
  return *std::move(fields);
}

bool may_take_over(const Type& type, const Json& live, const FieldWriter& writer,
                   const std::vector<Conflict>& conflicts) {
  if (writer.manager != kKubectl) return false;
  const FieldSet allowed = last_applied_fields(type, live);
  return std::all_of(conflicts.begin(), conflicts.end(), [&](const Conflict& conflict) {
    FieldSet rest = conflict.fields;
    rest.subtract(allowed);
    return rest.empty();
  });
}

/// The bytes that all annotations of an object may have together.
constexpr std::size_t kAnnotationBytesMax = 256 * 1024;

/// Updates the annotation with the configuration applied last. kubectl's client-side apply compares its input with that
/// annotation. If it exists, kubectl's server-side apply must update it, or a later client-side apply would not remove
/// the fields that are no longer given. Its owner is kept. An object without room for it loses it.
void refresh_last_applied(Json& object, Json config) {
  if (object.string_at({"metadata", "annotations", kLastApplied}).empty()) return;
  config.erase({"metadata", "annotations", kLastApplied});
  Json& annotations = object.make({"metadata", "annotations"});
  annotations[kLastApplied] = to_text(config) + "\n";
  std::size_t bytes = 0;
  for (const auto& [key, value] : std::as_const(*annotations.if_object())) {
    const std::string* text = value.if_string();
    bytes += key.size() + (text == nullptr ? 0 : text->size());
  }
  if (bytes > kAnnotationBytesMax) annotations.erase({kLastApplied});
}

Result<Json> read_config(const Type& type, const Json& config, const FieldWriter& writer) {
  for (const std::string_view key : {"apiVersion", "kind"}) {
    if (config.string_at({key}).empty()) return make_error(ErrorCode::kBadRequest, "{} must be set", key);
  }
  const Json* managed = config.at({"metadata", "managedFields"});
  if (managed != nullptr && !managed->is_null()) {
    return make_error(ErrorCode::kBadRequest, "metadata.managedFields must be nil");
  }
  SPILLWAY_TRY(partial, read_partial(type, config));
  if (!partial.unknown_fields.empty()) {
    return make_error(ErrorCode::kBadRequest, "failed to create typed patch object: .{}: field not declared in schema",
                      fmt::join(partial.unknown_fields, ", ."));
  }
  for (const std::string_view member : writer.untracked) partial.object.erase({member});
  return std::move(partial.object);
}

/// The owners of an object that was never applied before: all of its fields belong to the manager before-first-apply.
ManagedFields owners_before_first_apply(const Type& type, const Json& live, const FieldWriter& writer) {
  ManagedFieldsEntry entry = entry_of(type, writer, FieldOperation::kUpdate);
  entry.manager = "before-first-apply";
  entry.subresource.clear();
  entry.fields = tracked(changed(compare_fields(type, blank(type), live)), writer);
  ManagedFields owners;
  owners.put(std::move(entry));
  return owners;
}

}  // namespace

StatusResult<Json> apply_config(const Type& type, const Json* live, const Json& config, const FieldWriter& writer,
                                Force force) {
  SPILLWAY_TRY(sent, read_config(type, config, writer));
  SPILLWAY_TRY(sent_fields, fields_of(type, sent));
  const Json before = live != nullptr ? without_managed_fields(*live) : blank(type);
  ManagedFields owners = live != nullptr ? ManagedFields::of(*live) : ManagedFields();
  if (live != nullptr && owners.empty()) owners = owners_before_first_apply(type, before, writer);
  ManagedFieldsEntry self = entry_of(type, writer, FieldOperation::kApply);

  Json merged = merge_applied(type, before, sent);
  if (const ManagedFieldsEntry* last = owners.find(self)) {
    FieldSet keep = sent_fields;
    for (const ManagedFieldsEntry& entry : owners.entries()) {
      if (&entry != last) keep.add(entry.fields);
    }
    merged = remove_fields(type, merged, last->fields, keep);
  }
  SPILLWAY_TRY(typed, read_patched(type, merged));

  const FieldChanges changes = compare_fields(type, before, typed.object);
  const std::vector<Conflict> conflicts = find_conflicts(owners, self, changed(changes));
  if (!conflicts.empty() && force == Force::kNo && !may_take_over(type, before, writer, conflicts)) {
    return conflict_status(conflicts);
  }
  self.fields = tracked(std::move(sent_fields), writer);
  if (writer.manager == kKubectl) refresh_last_applied(typed.object, config);
  const bool same = live != nullptr && typed.object == before;
  lose(owners, changes);
  put_back(owners, std::move(self), same ? Touched::kNo : Touched::kYes);
  owners.write_to(typed.object);
  return std::move(typed.object);
}

Json track_update(const Type& type, const Json* before, Json after, const FieldWriter& writer) {
  ManagedFields owners = owners_before(before, after, writer);
  after = without_managed_fields(std::move(after));
  if (before != nullptr && owners.empty()) return after;
  // The list of owners itself may differ; it has no owner and is left out of the comparison.
  FieldChanges changes = compare_fields(type, before != nullptr ? *before : blank(type), after);
  ManagedFieldsEntry self = entry_of(type, writer, FieldOperation::kUpdate);
  self.fields = take_fields(owners, self);
  self.fields.subtract(changes.removed);
  lose(owners, changes);
  FieldSet taken = tracked(changed(std::move(changes)), writer);
  const Touched touched = taken.empty() ? Touched::kNo : Touched::kYes;
  if (self.fields.empty()) {
    self.fields = std::move(taken);
  } else {
    self.fields.add(taken);
  }
  put_back(owners, std::move(self), touched);
  owners.cap_updates();
  owners.write_to(after);
  return after;
}

}  // namespace spillway::api
