#include "store/sqlite/upkeep/check.h"

#include "store/sqlite/schema.h"
#include "store/sqlite/upkeep/history_check.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace spillway::store::sqlite {
namespace {

constexpr std::int64_t kLedgerRowBytes = 40;  // as the ledger counts them

class Checker {
 public:
  Checker(Connection& connection, const CheckValue& check_value) : connection_(connection), check_value_(check_value) {}

  CheckReport run() {
    add_unreadable("pages", check_pages());
    add_unreadable("table state", read_state());
    Result<Prefixes> prefixes = prefixes_without_history(connection_);
    if (!prefixes) add_unreadable("table without_history", prefixes.error());
    HistoryCheck history(report_.compacted, report_.revision, prefixes ? *std::move(prefixes) : Prefixes(),
                         report_.findings);
    add_unreadable("table log", check_log(history));
    history.end_of_log();
    const Outcome read = check_current(history);
    add_unreadable("table current", read);
    add_unreadable("table current", check_revisions());
    if (read) {  // otherwise unreadable rows would count as missing
      history.end();
      check_sizes();
    }
    return std::move(report_);
  }

 private:
  static Revision revision_of(const Rows& rows, int column) {
    return Revision(static_cast<std::uint64_t>(rows.integer(column)));
  }

  void add_unreadable(std::string_view where, const Outcome& outcome) {
    if (!outcome)
      report_.findings.add("{}: cannot be read to the end ({}), expected rows", where, outcome.error().message);
  }

  Outcome check_pages() {
    SPILLWAY_TRY(statement, connection_.prepare(fmt::format("PRAGMA integrity_check({})", Findings::kLinesMax)));
    Rows rows = statement.query();
    for (;;) {
      SPILLWAY_TRY(more, rows.next());
      if (!more) return {};
      std::string_view line = rows.bytes(0);
      if (line == "ok") continue;
      for (std::size_t end = 0; !line.empty(); line.remove_prefix(std::min(end + 1, line.size()))) {
        end = std::min(line.find('\n'), line.size());
        report_.findings.add("pages: {}; expected a whole database", line.substr(0, end));
      }
    }
  }

  Outcome read_state() {
    SPILLWAY_TRY(statement, connection_.prepare("SELECT revision, compacted, live_bytes, history_bytes FROM state"));
    {
      Rows rows = statement.query();
      SPILLWAY_TRY(found, rows.next());
      if (!found) return make_error(ErrorCode::kInvalid, "it is empty");
      report_.revision = revision_of(rows, 0);
      report_.compacted = revision_of(rows, 1);
      live_recorded_ = rows.integer(2);
      history_recorded_ = rows.integer(3);
    }
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() - 2 * kRevisionLead;
    if (report_.revision.number() > kMost) {
      report_.findings.add("table state: revision {}, expected at most {}", report_.revision.number(), kMost);
    }
    if (report_.compacted > report_.revision) {
      report_.findings.add("table state: compacted at revision {}, expected at most {}, the store's own",
                           report_.compacted.number(), report_.revision.number());
    }
    SPILLWAY_TRY(backup_of, backup_revision(connection_));
    report_.backup_of = backup_of;
    return {};
  }

  Outcome check_log(HistoryCheck& history) {
    SPILLWAY_TRY(statement, connection_.prepare(
                                "SELECT rev, key, create_rev, deleted, prev_rev, prev_version, prev_value FROM log "
                                "ORDER BY rev"));
    Rows rows = statement.query();
    for (;;) {
      SPILLWAY_TRY(more, rows.next());
      if (!more) return {};
      LogRow row{.revision = revision_of(rows, 0),
                 .key = std::string(rows.bytes(1)),
                 .created = revision_of(rows, 2),
                 .deleted = rows.integer(3) != 0,
                 .before = std::nullopt,
                 .version_before = static_cast<std::uint64_t>(rows.integer(5))};
      if (!rows.is_null(4)) row.before = revision_of(rows, 4);
      if (row.revision > report_.compacted) ++report_.history;
      history_bytes_ += kLedgerRowBytes + static_cast<std::int64_t>(row.key.size() + rows.bytes(6).size());
      check_former_value(row, rows);
      history.add(row);
    }
  }

  void check_former_value(const LogRow& row, const Rows& rows) {
    if (row.before.has_value() == rows.is_null(6)) {
      report_.findings.add("history: revision {} of {} {} a former value, expected {}", row.revision.number(), row.key,
                           row.before ? "lacks" : "has", row.before ? "one" : "none");
    }
    if (!row.before || rows.is_null(6)) return;
    const CheckedValue value = check_value_(row.key, rows.bytes(6));
    if (!value.problem.empty()) {
      report_.findings.add("{} as of revision {}: {}", row.key, row.before->number(), value.problem);
    }
  }

  Outcome check_current(HistoryCheck& history) {
    SPILLWAY_TRY(statement,
                 connection_.prepare("SELECT key, create_rev, mod_rev, version, value FROM current ORDER BY key"));
    Rows rows = statement.query();
    for (;;) {
      SPILLWAY_TRY(more, rows.next());
      if (!more) return {};
      const CurrentRow row{.key = std::string(rows.bytes(0)),
                           .created = revision_of(rows, 1),
                           .modified = revision_of(rows, 2),
                           .version = static_cast<std::uint64_t>(rows.integer(3))};
      live_bytes_ += kLedgerRowBytes + static_cast<std::int64_t>(row.key.size() + rows.bytes(4).size());
      history.add(row);
      const CheckedValue value = check_value_(row.key, rows.bytes(4));
      ++report_.objects[value.resource];
      if (!value.problem.empty()) report_.findings.add("{}: {}", row.key, value.problem);
      if (!value.remark.empty()) report_.notes.add("{}: {}", row.key, value.remark);
    }
  }

  /// Checks that each revision wrote one object. SQLite sorts them, on the disk if they are many.
  Outcome check_revisions() {
    SPILLWAY_TRY(statement, connection_.prepare("SELECT mod_rev, min(key), max(key) FROM current GROUP BY mod_rev "
                                                "HAVING count(*) > 1"));
    Rows rows = statement.query();
    for (;;) {
      SPILLWAY_TRY(more, rows.next());
      if (!more) return {};
      report_.findings.add("{}: changed at revision {}, expected one of its own: it is that of {}", rows.bytes(2),
                           rows.integer(0), rows.bytes(1));
    }
  }

  void check_sizes() {
    if (live_bytes_ != live_recorded_) {
      report_.findings.add(
          "table state: {} bytes of objects, expected {}, as there are: objects are missing or were changed",
          live_recorded_, live_bytes_);
    }
    if (history_bytes_ != history_recorded_) {
      report_.findings.add("table state: {} bytes of history, expected {}, as there are", history_recorded_,
                           history_bytes_);
    }
  }

  Connection& connection_;
  const CheckValue& check_value_;
  CheckReport report_;
  std::int64_t live_recorded_ = 0;
  std::int64_t history_recorded_ = 0;
  std::int64_t live_bytes_ = 0;
  std::int64_t history_bytes_ = 0;
};

}  // namespace

Result<CheckReport> check_database(const std::string& path, const CheckValue& check_value,
                                   const ShouldContinue& should_continue) {
  SPILLWAY_TRY(connection, open_to_examine(path));
  bool stopped = false;
  connection.set_progress_handler([&] { return !(stopped = stopped || !should_continue(0)); });
  SPILLWAY_TRY_VOID(connection.exec("BEGIN"));
  CheckReport report = Checker(connection, check_value).run();
  if (stopped) return Error{ErrorCode::kServiceUnavailable, "interrupted", path};
  return report;
}

}  // namespace spillway::store::sqlite
