#include "store/version_table.h"

#include "base/check.h"

#include <memory>
#include <utility>
#include <vector>

namespace spillway::store {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result) check_failed(result.error().message, __FILE__, __LINE__);
  return std::move(*result);
}

void must(const Outcome& outcome) {
  if (!outcome) check_failed(outcome.error().message, __FILE__, __LINE__);
}

}  // namespace

VersionTable::VersionTable(const std::string& path)
    : connection_(must(sqlite::Connection::open(path, sqlite::Access::kReadWrite))) {
  must(connection_.exec(R"(
    PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-16384;
    CREATE TABLE versions(
      id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, created INTEGER, deleted INTEGER, create_revision INTEGER,
      prev_revision INTEGER, lease INTEGER, value BLOB, old_value BLOB);
    CREATE INDEX versions_name ON versions(name);
    CREATE INDEX versions_name_id ON versions(name, id);
    CREATE UNIQUE INDEX versions_name_prev ON versions(name, prev_revision);
  )"));
  newest_ =
      must(connection_.prepare("SELECT id, create_revision, value FROM versions WHERE name = ? "
                               "ORDER BY id DESC LIMIT 1"));
  insert_ = must(connection_.prepare(
      "INSERT INTO versions(name, created, deleted, create_revision, prev_revision, lease, value, old_value) "
      "VALUES(?, ?, 0, ?, ?, 0, ?, ?)"));
  list_ = must(connection_.prepare(
      "SELECT v.name, v.value, v.create_revision, v.id FROM versions v JOIN (SELECT max(id) AS id FROM versions "
      "WHERE name >= ? AND name < ? GROUP BY name) newest ON v.id = newest.id WHERE v.deleted = 0 ORDER BY v.name"));
}

void VersionTable::begin() {
  must(connection_.exec("BEGIN IMMEDIATE"));
}

void VersionTable::put(std::string_view name, std::string_view value) {
  sqlite::Rows before = newest_.query(name);
  const bool exists = must(before.next());
  const std::int64_t previous = exists ? before.integer(0) : 0;
  const std::int64_t created = exists ? before.integer(1) : 0;
  const std::string old_value(exists ? before.bytes(2) : std::string_view());
  must(insert_.run(name, static_cast<std::int64_t>(!exists), created, previous, sqlite::Blob{value},
                   sqlite::Blob{old_value}));
}

void VersionTable::commit() {
  must(connection_.exec("COMMIT"));
}

std::size_t VersionTable::list(std::string_view prefix, std::string_view prefix_end) {
  sqlite::Rows rows = list_.query(prefix, prefix_end);
  std::vector<std::pair<std::string, std::shared_ptr<const std::string>>> entries;
  while (must(rows.next())) {
    entries.emplace_back(rows.bytes(0), std::make_shared<const std::string>(rows.bytes(1)));
  }
  return entries.size();
}

}  // namespace spillway::store
