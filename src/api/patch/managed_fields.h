// metadata.managedFields: the owners of an object's fields, one entry per manager, operation and subresource.
// Thread: any (plain value). Source: Kubernetes docs, "Server-Side Apply", field management;
// spec "API server contract", 7.6, 10.5.
#pragma once

#include "api/json/json.h"
#include "api/schema/field_set.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::api {

enum class FieldOperation : std::uint8_t { kApply, kUpdate };

struct ManagedFieldsEntry {
  std::string manager;
  FieldOperation operation = FieldOperation::kUpdate;
  std::string api_version;
  std::string subresource;
  std::optional<WallTime> time;
  FieldSet fields;

  friend bool operator==(const ManagedFieldsEntry&, const ManagedFieldsEntry&) = default;

  /// True if both entries belong to the same manager. Apply entries of one manager are one whatever their apiVersion.
  bool same_manager(const ManagedFieldsEntry& other) const;
  /// `"m"`, `"m" with subresource "status" using v1`: how conflicts name it.
  std::string text() const;
};

class ManagedFields {
 public:
  /// Parses the list in metadata. kBadRequest: an entry that is not FieldsV1 or has an unknown operation.
  static Result<ManagedFields> parse(const Json& list);
  /// Parses the owners of a whole document; empty if it has none or if they cannot be read.
  static ManagedFields of(const Json& document);

  /// Apply before Update entries, each by time (none, then older first), then manager. Null if there are none.
  Json to_json() const;
  /// Writes the list into metadata of the document, or removes it.
  void write_to(Json& document) const;

  bool empty() const { return entries_.empty(); }

  const std::vector<ManagedFieldsEntry>& entries() const& { return entries_; }

  std::vector<ManagedFieldsEntry>& entries() & { return entries_; }

  std::vector<ManagedFieldsEntry> entries() && { return std::move(entries_); }

  /// nullptr if there is none of the same manager.
  const ManagedFieldsEntry* find(const ManagedFieldsEntry& like) const;
  /// Adds the entry, in place of that of the same manager, if there is one. An entry without fields is not kept.
  void put(ManagedFieldsEntry entry);
  void drop_empty();
  /// Folds the oldest Update entries into the manager "ancient-changes" until no more than ten are left.
  void cap_updates();

 private:
  std::vector<ManagedFieldsEntry> entries_;
};

}  // namespace spillway::api
