#include "store/sqlite/schema.h"

#include "base/file.h"
#include "base/unique_fd.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace spillway::store::sqlite {
namespace {

constexpr std::int64_t kApplicationId = 0x53707779;  // "Spwy"
constexpr std::string_view kMagic{"SQLite format 3\0", 16};

// Set before the first table, or they have no effect. A renewal rewrites the page of its lease: small pages, fewer
// bytes.
constexpr const char* kLayout = "PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL;";

constexpr const char* kTables = R"(
  CREATE TABLE current(
    key TEXT PRIMARY KEY, create_rev INTEGER NOT NULL, mod_rev INTEGER NOT NULL, version INTEGER NOT NULL,
    value BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE log(
    rev INTEGER PRIMARY KEY, key TEXT NOT NULL, create_rev INTEGER NOT NULL, deleted INTEGER NOT NULL,
    prev_rev INTEGER, prev_version INTEGER, prev_value BLOB);
  CREATE TABLE state(
    id INTEGER PRIMARY KEY CHECK(id = 1), revision INTEGER NOT NULL, compacted INTEGER NOT NULL,
    live_bytes INTEGER NOT NULL, history_bytes INTEGER NOT NULL);
  INSERT INTO state VALUES(1, 0, 0, 0, 0);
)";

/// The tables that schema 2 has besides those of schema 1.
constexpr const char* kTablesOf2 = "CREATE TABLE without_history(prefix TEXT PRIMARY KEY) WITHOUT ROWID;";

Error in_file(const std::string& path, Error error) {
  error.at = path;
  return error;
}

/// Makes the file, readable by its owner alone because objects hold secrets, or checks that it can be a database.
/// SQLite itself would notice a foreign file only after it has recovered a journal into it.
Outcome check_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return invalid(path, "cannot open the database: {}", errno_error({}, errno).message);
  struct stat found{};
  if (::fstat(file.get(), &found) != 0 || (found.st_uid != ::geteuid() && found.st_uid != 0) ||
      (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return invalid(path, "belongs to user {} with mode {:04o}; expected write permission for this process's user alone",
                   found.st_uid, found.st_mode & 07777U);
  }
  std::array<char, kMagic.size()> start{};
  const ssize_t size = ::pread(file.get(), start.data(), start.size(), 0);
  if (size < 0) return invalid(path, "cannot read the database: {}", errno_error({}, errno).message);
  if (size == 0) return {};
  if (std::string_view(start.data(), static_cast<std::size_t>(size)) != kMagic) {
    return invalid(path, "not a Spillway database");
  }
  return {};
}

Outcome check_identity(Connection& connection, const std::string& path) {
  SPILLWAY_TRY(application, connection.number("PRAGMA application_id"));
  if (application != kApplicationId) {
    return invalid(path, "the database of another program (application id {})", application);
  }
  SPILLWAY_TRY(version, connection.number("PRAGMA user_version"));
  if (version > kSchemaVersion) {
    return invalid(path, "written by a newer version of Spillway (schema {}, this one knows {})", version,
                   kSchemaVersion);
  }
  if (version < 1) return invalid(path, "schema version {} is unknown", version);
  return {};
}

/// The statements that make our tables, as SQLite keeps them.
std::vector<std::string_view> table_statements() {
  std::vector<std::string_view> statements = {kBackupTable};
  for (std::string_view text : {std::string_view(kTables), std::string_view(kTablesOf2)}) {
    for (std::size_t begin = text.find("CREATE"); begin != std::string_view::npos; begin = text.find("CREATE")) {
      text.remove_prefix(begin);
      statements.push_back(text.substr(0, text.find(';')));
      text.remove_prefix(statements.back().size());
    }
  }
  return statements;
}

/// A trigger or a view in a restored file would change, or replace, the objects of the cluster.
Outcome check_tables(Connection& connection, const std::string& path) {
  const std::vector<std::string_view> ours = table_statements();
  Result<Statement> statement = connection.prepare("SELECT type, name, ifnull(sql, '') FROM sqlite_schema");
  if (!statement) return {};  // damaged: the next read reports it
  Rows rows = statement->query();
  for (;;) {
    const Result<bool> more = rows.next();
    if (!more || !*more) return {};
    if (std::ranges::find(ours, rows.bytes(2)) != ours.end()) continue;
    return invalid(path, "has a {} \"{}\" that Spillway did not make; expected its tables alone",
                   printable_line(rows.bytes(0)), printable_line(rows.bytes(1)));
  }
}

Outcome check_integrity(Connection& connection, const std::string& path) {
  SPILLWAY_TRY(statement, connection.prepare("PRAGMA quick_check(1)"));
  Rows rows = statement.query();
  Result<bool> found = rows.next();
  const std::string finding = !found ? found.error().message : *found ? std::string(rows.bytes(0)) : "no answer";
  if (finding == "ok") return {};
  return invalid(path, "the database is damaged ({}); restore it from a backup or move it away",
                 finding.substr(0, finding.find('\n')));
}

Outcome check_revisions(Connection& connection, const std::string& path) {
  SPILLWAY_TRY(odd, connection.number("SELECT (SELECT ifnull(max(rev), 0) FROM log) > revision OR compacted > revision "
                                      "FROM state"));
  if (odd != 0) return invalid(path, "the database is damaged (its history is ahead of its revision)");
  return {};
}

/// Creates the tables in one transaction: a start that dies in the middle leaves an empty file, which the next one
/// takes.
Outcome create_tables(Connection& connection) {
  const std::string identity =
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", kApplicationId, kSchemaVersion);
  SPILLWAY_TRY_VOID(connection.exec("BEGIN IMMEDIATE"));
  SPILLWAY_TRY_VOID(connection.exec(kTables));
  SPILLWAY_TRY_VOID(connection.exec(kTablesOf2));
  SPILLWAY_TRY_VOID(connection.exec(identity.c_str()));
  return connection.exec("COMMIT");
}

Outcome upgrade(Connection& connection) {
  SPILLWAY_TRY(version, connection.number("PRAGMA user_version"));
  if (version >= kSchemaVersion) return {};
  const std::string steps =
      fmt::format("BEGIN IMMEDIATE; {} PRAGMA user_version={}; COMMIT", kTablesOf2, kSchemaVersion);
  return connection.exec(steps.c_str());
}

/// A key that has history again has none of the time when it had not.
Outcome set_without_history(Connection& connection, Prefixes wanted) {
  SPILLWAY_TRY(known, prefixes_without_history(connection));
  std::ranges::sort(wanted);
  if (known == wanted) return {};
  SPILLWAY_TRY_VOID(connection.exec("BEGIN IMMEDIATE; DELETE FROM without_history"));
  SPILLWAY_TRY(insert, connection.prepare("INSERT OR IGNORE INTO without_history VALUES(?)"));
  for (const std::string& prefix : wanted) SPILLWAY_TRY_VOID(insert.run(std::string_view(prefix)));
  if (!std::ranges::includes(wanted, known)) {
    SPILLWAY_TRY_VOID(connection.exec("UPDATE state SET compacted = revision"));
  }
  return connection.exec("COMMIT");
}

Outcome use_journal(Connection& connection, const std::string& path, const SqliteOptions& options) {
  {
    SPILLWAY_TRY(statement, connection.prepare("PRAGMA journal_mode=WAL"));
    Rows rows = statement.query();
    SPILLWAY_TRY(found, rows.next());
    if (!found || rows.bytes(0) != "wal") {
      return invalid(path, "the file system does not allow a write-ahead log; use a local disk");
    }
  }
  const std::string settings = fmt::format(
      "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint={}; PRAGMA journal_size_limit=67108864;"
      "PRAGMA cache_size=-16384",
      options.checkpoint_pages);
  return connection.exec(settings.c_str());
}

Outcome limit_size(Connection& connection, Bytes bytes_max) {
  SPILLWAY_TRY(page_bytes, connection.number("PRAGMA page_size"));
  const std::string limit = fmt::format("PRAGMA max_page_count={}", bytes_max.count() / page_bytes);
  return connection.exec(limit.c_str());
}

Outcome prepare_file(Connection& connection, const std::string& path, const SqliteOptions& options) {
  SPILLWAY_TRY_VOID(connection.exec("PRAGMA busy_timeout=5000"));
  SPILLWAY_TRY(tables, connection.number("SELECT count(*) FROM sqlite_schema"));
  SPILLWAY_TRY(application, connection.number("PRAGMA application_id"));
  const bool fresh = tables == 0 && application == 0;
  if (fresh) {
    SPILLWAY_TRY_VOID(connection.exec(kLayout));
  } else {
    SPILLWAY_TRY_VOID(check_identity(connection, path));
    SPILLWAY_TRY_VOID(check_tables(connection, path));
    SPILLWAY_TRY_VOID(check_integrity(connection, path));
  }
  SPILLWAY_TRY_VOID(use_journal(connection, path, options));
  SPILLWAY_TRY_VOID(fresh ? create_tables(connection) : upgrade(connection));
  SPILLWAY_TRY_VOID(set_without_history(connection, options.without_history));
  if (options.file_bytes_max) SPILLWAY_TRY_VOID(limit_size(connection, *options.file_bytes_max));
  return check_revisions(connection, path);
}

}  // namespace

bool is_below(std::string_view key, const Prefixes& prefixes) {
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) { return key.starts_with(prefix); });
}

Result<Prefixes> prefixes_without_history(Connection& file) {
  SPILLWAY_TRY(version, file.number("PRAGMA user_version"));
  Prefixes found;
  if (version < 2) return found;
  SPILLWAY_TRY(statement, file.prepare("SELECT prefix FROM without_history ORDER BY prefix"));
  Rows rows = statement.query();
  for (;;) {
    SPILLWAY_TRY(more, rows.next());
    if (!more) return found;
    found.emplace_back(rows.bytes(0));
  }
}

Result<Connection> open_for_writing(const std::string& path, const SqliteOptions& options) {
  SPILLWAY_TRY_VOID(check_file(path));
  SPILLWAY_TRY(connection, Connection::open(path, Access::kReadWrite));
  const Outcome prepared = prepare_file(connection, path, options);
  if (prepared) return connection;
  if (prepared.error().code == ErrorCode::kInvalid) return prepared.error();
  if (connection.trouble() == Trouble::kDamaged) {
    return invalid(path, "the database is damaged ({}); restore it from a backup or move it away",
                   prepared.error().message);
  }
  return in_file(path, prepared.error());
}

Result<Connection> open_to_examine(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return errno_error(path, errno);
  SPILLWAY_TRY(connection, Connection::open(path, Access::kReadOnly));
  Outcome known = connection.exec("PRAGMA busy_timeout=5000");
  if (known) known = check_identity(connection, path);
  if (known) known = check_tables(connection, path);
  if (known) return connection;
  if (known.error().code == ErrorCode::kInvalid) return known.error();
  if (connection.trouble() == Trouble::kDamaged) return invalid(path, "not a Spillway database");
  return in_file(path, known.error());
}

Result<Connection> open_for_reading(const std::string& path) {
  SPILLWAY_TRY(connection, Connection::open(path, Access::kReadOnly));
  const Outcome prepared = connection.exec("PRAGMA busy_timeout=5000; PRAGMA query_only=ON; PRAGMA cache_size=-8192");
  if (!prepared) return in_file(path, prepared.error());
  return connection;
}

}  // namespace spillway::store::sqlite
