#include "store/sqlite/ledger.h"

#include <algorithm>
#include <utility>

namespace spillway::store::sqlite {
namespace {

/// Bytes of a row besides key and value: numbers, headers, its share of the tree. Only bounds history.
constexpr std::int64_t kRowBytes = 40;

Bytes row_bytes(const std::string& key, const Value& value) {
  return Bytes{kRowBytes + static_cast<std::int64_t>(key.size() + (value ? value->size() : 0))};
}

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::open(Connection connection) {
  std::unique_ptr<Ledger> ledger(new Ledger(std::move(connection)));
  SPILLWAY_TRY_VOID(ledger->prepare());
  SPILLWAY_TRY_VOID(ledger->load());
  return ledger;
}

Outcome Ledger::prepare() {
  const std::pair<Statement*, std::string_view> statements[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&rollback_, "ROLLBACK"},
      {&find_, "SELECT value, create_rev, mod_rev, version FROM current WHERE key = ?"},
      {&insert_, "INSERT INTO current(key, create_rev, mod_rev, version, value) VALUES(?, ?, ?, 1, ?)"},
      {&update_, "UPDATE current SET mod_rev = ?, version = ?, value = ? WHERE key = ?"},
      {&erase_, "DELETE FROM current WHERE key = ?"},
      {&log_,
       "INSERT INTO log(rev, key, create_rev, deleted, prev_rev, prev_version, prev_value) VALUES(?, ?, ?, ?, ?, ?, "
       "?)"},
      {&log_bytes_,
       "SELECT ifnull(sum(length(CAST(key AS BLOB)) + ifnull(length(prev_value), 0)), 0), count(*), ifnull(max(rev), "
       "0) "
       "FROM (SELECT rev, key, prev_value FROM log WHERE rev <= ? ORDER BY rev LIMIT ?)"},
      {&trim_, "DELETE FROM log WHERE rev < ?"},
      {&save_, "UPDATE state SET revision = ?, compacted = ?, live_bytes = ?, history_bytes = ?"},
  };
  for (const auto& [slot, sql] : statements) {
    SPILLWAY_TRY(statement, connection_.prepare(sql));
    *slot = std::move(statement);
  }
  return {};
}

Outcome Ledger::load() {
  SPILLWAY_TRY(statement, connection_.prepare("SELECT revision, compacted, live_bytes, history_bytes, "
                                              "ifnull((SELECT min(rev) FROM log), revision + 1) FROM state"));
  Rows rows = statement.query();
  SPILLWAY_TRY(found, rows.next());
  if (!found) return make_error(ErrorCode::kInvalid, "the database is damaged (table state is empty)");
  state_.head = Revision(static_cast<std::uint64_t>(rows.integer(0)));
  state_.compacted = Revision(static_cast<std::uint64_t>(rows.integer(1)));
  state_.live_bytes = Bytes{rows.integer(2)};
  state_.history_bytes = Bytes{rows.integer(3)};
  state_.log_first = Revision(static_cast<std::uint64_t>(rows.integer(4)));
  before_ = state_;
  SPILLWAY_TRY(prefixes, prefixes_without_history(connection_));
  without_history_ = std::move(prefixes);
  return {};
}

Outcome Ledger::begin() {
  before_ = state_;
  return begin_.run();
}

Result<WriteResult> Ledger::apply(const Write& write, std::vector<Change>& changes) {
  SPILLWAY_TRY(before, find(write.key));
  const Revision present = before ? before->mod_revision : Revision();
  const bool holds = !write.expected || *write.expected == present;
  const bool deletes_nothing = !write.value && !before;
  if (!holds || deletes_nothing) return WriteResult{false, state_.head, std::move(before)};

  const Revision revision(state_.head.number() + 1);
  SPILLWAY_TRY_VOID(store_entry(write, before, revision));
  const bool logged = !write.value || !is_below(write.key, without_history_);
  if (logged) SPILLWAY_TRY_VOID(append_log(write, before, revision));
  state_.head = revision;
  if (before) state_.live_bytes -= row_bytes(write.key, before->value);
  if (write.value) state_.live_bytes += row_bytes(write.key, write.value);
  if (logged) state_.history_bytes += row_bytes(write.key, before ? before->value : nullptr);

  changes.push_back(Change{write.key, revision, before ? before->create_revision : revision, write.value,
                           before ? before->value : nullptr});
  if (write.value) before.reset();
  return WriteResult{true, revision, std::move(before)};
}

Result<std::optional<Entry>> Ledger::find(const std::string& key) {
  Rows rows = find_.query(std::string_view(key));
  SPILLWAY_TRY(found, rows.next());
  if (!found) return std::nullopt;
  return Entry{key, std::make_shared<const std::string>(rows.bytes(0)),
               Revision(static_cast<std::uint64_t>(rows.integer(1))),
               Revision(static_cast<std::uint64_t>(rows.integer(2))), static_cast<std::uint64_t>(rows.integer(3))};
}

Outcome Ledger::store_entry(const Write& write, const std::optional<Entry>& before, Revision revision) {
  const std::string_view key = write.key;
  if (!write.value) return erase_.run(key);
  const Blob value{*write.value};
  if (before) return update_.run(revision.number(), before->version + 1, value, key);
  return insert_.run(key, revision.number(), revision.number(), value);
}

Outcome Ledger::append_log(const Write& write, const std::optional<Entry>& before, Revision revision) {
  const std::string_view key = write.key;
  const auto deleted = static_cast<std::int64_t>(!write.value);
  if (!before) return log_.run(revision.number(), key, revision.number(), deleted, nullptr, nullptr, nullptr);
  return log_.run(revision.number(), key, before->create_revision.number(), deleted, before->mod_revision.number(),
                  before->version, Blob{*before->value});
}

void Ledger::compact(Revision revision) {
  state_.compacted = std::max(state_.compacted, std::min(revision, state_.head));
}

std::uint64_t Ledger::rows_to_trim() const {
  const std::uint64_t end = state_.compacted.number() + 1;
  return end > state_.log_first.number() ? end - state_.log_first.number() : 0;
}

Result<std::uint64_t> Ledger::trim(std::uint64_t rows) {
  rows = std::min(rows, rows_to_trim());
  if (rows == 0) return std::uint64_t{0};
  std::uint64_t count = 0;
  Revision first_kept;
  {
    Rows sums = log_bytes_.query(state_.compacted.number(), rows);
    SPILLWAY_TRY(found, sums.next());
    if (!found) return make_error(ErrorCode::kInternalError, "the size of history is unknown");
    count = static_cast<std::uint64_t>(sums.integer(1));
    state_.history_bytes -= Bytes{sums.integer(0) + sums.integer(1) * kRowBytes};
    const auto last = static_cast<std::uint64_t>(sums.integer(2));
    first_kept = Revision(1 + (count < rows ? state_.compacted.number() : last));
  }
  if (count != 0) SPILLWAY_TRY_VOID(trim_.run(first_kept.number()));
  state_.log_first = first_kept;
  if (count == 0) before_.log_first = first_kept;  // true whatever becomes of the transaction
  return count;
}

Outcome Ledger::commit() {
  SPILLWAY_TRY_VOID(save_.run(state_.head.number(), state_.compacted.number(), state_.live_bytes.count(),
                              state_.history_bytes.count()));
  return commit_.run();
}

void Ledger::rollback() {
  state_ = before_;
  // SQLite rolls back by itself after some failures.
  if (connection_.in_transaction()) ignored(rollback_.run(), "the next begin() fails if this did");
}

}  // namespace spillway::store::sqlite
