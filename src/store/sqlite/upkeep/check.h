// Checks a database from end to end and changes nothing: its pages, its revisions, its values.
// Thread: any that may wait for the disk. The file may be written meanwhile: one state of it is checked.
// Source: schema.h; SQLite docs, "PRAGMA integrity_check".
#pragma once

#include "base/error.h"
#include "store/sqlite/upkeep/backup.h"
#include "store/sqlite/upkeep/findings.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::store::sqlite {

/// The resource of a value, by its key, and the problem found in it.
struct CheckedValue {
  std::string resource;  // "pods", "deployments.apps"
  std::string problem;   // empty: nothing
  std::string remark;    // a remark that is no problem, but worth a line; empty: none
};

using CheckValue = std::function<CheckedValue(std::string_view key, std::string_view value)>;

struct CheckReport {
  Revision revision;
  Revision compacted;
  std::optional<Revision> backup_of;             // for a backup: the revision that was copied
  std::uint64_t history = 0;                     // changes that are kept
  std::map<std::string, std::uint64_t> objects;  // by resource
  Findings findings;
  Findings notes;
};

/// Errors: the file cannot be read, as of open_to_examine(), or `should_continue` has returned false.
Result<CheckReport> check_database(const std::string& path, const CheckValue& check_value,
                                   const ShouldContinue& should_continue);

}  // namespace spillway::store::sqlite
