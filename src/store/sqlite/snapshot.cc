#include "store/sqlite/snapshot.h"

#include <algorithm>
#include <utility>

namespace spillway::store::sqlite {
namespace {

Revision revision_at(const Rows& rows, int column) {
  return Revision(static_cast<std::uint64_t>(rows.integer(column)));
}

/// Row of `list_`: key, value, create_rev, mod_rev, version.
Entry entry_of(const Rows& row) {
  return Entry{std::string(row.bytes(0)), std::make_shared<const std::string>(row.bytes(1)), revision_at(row, 2),
               revision_at(row, 3), static_cast<std::uint64_t>(row.integer(4))};
}

bool has_room(const Range& range, const RangeResult& result) {
  return range.limit == 0 || result.entries.size() < range.limit;
}

}  // namespace

Result<Snapshot> Snapshot::open(Connection& connection) {
  Snapshot out;
  const std::pair<Statement*, std::string_view> statements[] = {
      {&out.begin_, "BEGIN"},
      {&out.end_, "COMMIT"},
      {&out.state_, "SELECT revision, compacted FROM state"},
      {&out.list_, "SELECT key, value, create_rev, mod_rev, version FROM current WHERE key >= ? ORDER BY key"},
      {&out.changes_, "SELECT rev, key, ifnull(prev_rev, 0), create_rev FROM log WHERE rev > ? ORDER BY rev"},
      {&out.log_row_, "SELECT prev_value, create_rev, prev_rev, prev_version FROM log WHERE rev = ?"},
  };
  for (const auto& [slot, sql] : statements) {
    SPILLWAY_TRY(statement, connection.prepare(sql));
    *slot = std::move(statement);
  }
  return out;
}

Result<RangeResult> Snapshot::read(const Range& range) {
  SPILLWAY_TRY_VOID(begin_.run());
  Result<RangeResult> result = read_in_transaction(range);
  SPILLWAY_TRY_VOID(end_.run());
  return result;
}

Result<RangeResult> Snapshot::read_in_transaction(const Range& range) {
  RangeResult result;
  bool past = false;
  {
    Rows state = state_.query();
    SPILLWAY_TRY(found, state.next());
    if (!found) return make_error(ErrorCode::kInternalError, "the database is damaged (table state is empty)");
    const Revision head = revision_at(state, 0);
    const Revision compacted = revision_at(state, 1);
    result.revision = range.at.value_or(head);
    if (result.revision > head) {
      return make_error(ErrorCode::kTimeout, "revision {} is not reached yet, the store is at {}",
                        result.revision.number(), head.number());
    }
    if (result.revision < compacted) {
      return make_error(ErrorCode::kExpired, "revision {} is compacted, the oldest is {}", result.revision.number(),
                        compacted.number());
    }
    past = result.revision < head;
  }
  if (past) SPILLWAY_TRY_VOID(extend_overlay(range, result.revision));
  const std::string first_key = range.start_after < range.prefix ? range.prefix : range.start_after + '\0';
  SPILLWAY_TRY_VOID(past ? read_past(range, first_key, result) : read_present(range, first_key, result));
  return result;
}

Outcome Snapshot::read_present(const Range& range, std::string_view first_key, RangeResult& result) {
  Rows rows = list_.query(first_key);
  for (;;) {
    SPILLWAY_TRY(more, rows.next());
    if (!more || !rows.bytes(0).starts_with(range.prefix)) return {};
    if (has_room(range, result)) {
      result.entries.push_back(entry_of(rows));
    } else {
      ++result.remaining;
    }
  }
}

/// Merges the present state with the overlay, both in key order; the overlay wins. The past value of a key without
/// history is known if the key has not changed since, or did not exist yet.
Outcome Snapshot::read_past(const Range& range, std::string_view first_key, RangeResult& result) {
  Rows rows = list_.query(first_key);
  SPILLWAY_TRY(more, rows.next());
  auto change = overlay_.first_changes.lower_bound(first_key);
  for (;;) {
    const bool row_left = more && rows.bytes(0).starts_with(range.prefix);
    const bool change_left = change != overlay_.first_changes.end();
    if (!row_left && !change_left) return {};
    const bool overlaid = change_left && (!row_left || change->first <= rows.bytes(0));
    const bool row_used = row_left && (!overlaid || change->first == rows.bytes(0));
    const bool existed = overlaid ? change->second.existed : revision_at(rows, 2) <= result.revision;
    const bool known = overlaid ? change->second.known : revision_at(rows, 3) <= result.revision;
    if (existed && !known && !range.known_only) {
      return make_error(ErrorCode::kExpired, "the value of {} at revision {} is not kept",
                        overlaid ? std::string_view(change->first) : rows.bytes(0), result.revision.number());
    }
    const bool shown = existed && known;
    if (shown && !has_room(range, result)) {
      ++result.remaining;
    } else if (shown && overlaid) {
      SPILLWAY_TRY(entry, entry_before(change->first, change->second.revision));
      result.entries.push_back(std::move(entry));
    } else if (shown) {
      result.entries.push_back(entry_of(rows));
    }
    if (overlaid) ++change;
    if (row_used) {
      SPILLWAY_TRY(next, rows.next());
      more = next;
    }
  }
}

Outcome Snapshot::extend_overlay(const Range& range, Revision at) {
  if (overlay_.at != at || overlay_.prefix != range.prefix) overlay_ = Overlay{range.prefix, at, at, {}};
  Rows rows = changes_.query(overlay_.scanned.number());
  for (;;) {
    SPILLWAY_TRY(more, rows.next());
    if (!more) return {};
    const std::string_view key = rows.bytes(1);
    overlay_.scanned = revision_at(rows, 0);
    if (!key.starts_with(range.prefix) || overlay_.first_changes.contains(key)) continue;
    const Revision before = revision_at(rows, 2);
    const bool existed = before != Revision() && revision_at(rows, 3) <= at;
    overlay_.first_changes.emplace(key, FirstChange{overlay_.scanned, existed, before <= at});
  }
}

Result<Entry> Snapshot::entry_before(const std::string& key, Revision change) {
  Rows row = log_row_.query(change.number());
  SPILLWAY_TRY(found, row.next());
  if (!found) {
    return make_error(ErrorCode::kInternalError, "the database is damaged (log row {} is missing)", change.number());
  }
  return Entry{key, std::make_shared<const std::string>(row.bytes(0)), revision_at(row, 1), revision_at(row, 2),
               static_cast<std::uint64_t>(row.integer(3))};
}

}  // namespace spillway::store::sqlite
