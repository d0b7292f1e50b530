// The tables, and the check of a file: it is served only if it is a Spillway database, undamaged and of a known
// version.
//   current   one row per live key
//   log       one row per write since the compacted revision: the state it replaced. An undo log: with `current` it
//             gives every older state and every change, and stores each value once. Of keys without history it has
//             deletions alone
//   state     one row: the revision, the compacted revision, and the sizes that bound history
//   without_history   one row per prefix of such keys
// Thread: one at a time. Source: spec "API server contract", 22.4.
#pragma once

#include "store/sqlite/database.h"
#include "store/sqlite/options.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::store::sqlite {

/// Version of the tables; written to the file as user_version.
inline constexpr std::int64_t kSchemaVersion = 2;

/// Prefixes of keys without history.
using Prefixes = std::vector<std::string>;

bool is_below(std::string_view key, const Prefixes& prefixes);

/// The prefixes of keys without history, as the file lists them; empty for schema 1, which has no such keys.
Result<Prefixes> prefixes_without_history(Connection& file);

/// Opens `path` for writing, creating it if it is absent or empty, and brings it to this schema. kInvalid: the file is
/// foreign, damaged or newer, or has something in it that Spillway did not make, such as a trigger.
Result<Connection> open_for_writing(const std::string& path, const SqliteOptions& options);

/// The table that marks a backup.
inline constexpr std::string_view kBackupTable = "CREATE TABLE backup(revision INTEGER NOT NULL)";

/// A connection that only reads to any file: a store that may be in use, or a copy of one. kNotFound: there is none.
/// kInvalid: not a Spillway database, or a newer one, or one with tables, views, triggers or indexes that Spillway did
/// not make. The pages were not checked.
Result<Connection> open_to_examine(const std::string& path);

/// Opens another connection to a file that open_for_writing() has accepted.
Result<Connection> open_for_reading(const std::string& path);

}  // namespace spillway::store::sqlite
