#include "store/sqlite/history.h"

#include "store/too_old.h"

#include <algorithm>
#include <map>
#include <utility>

namespace spillway::store::sqlite {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1024} * 1024;

Error damaged(Revision revision) {
  return make_error(ErrorCode::kInternalError, "the database is damaged (change {} is incomplete)", revision.number());
}

std::size_t size_of(const Change& change) {
  return sizeof(Change) + change.key.size() + (change.value ? change.value->size() : 0) +
         (change.previous ? change.previous->size() : 0);
}

}  // namespace

Result<History> History::open(Connection& connection) {
  History out;
  const std::pair<Statement*, std::string_view> statements[] = {
      {&out.begin_, "BEGIN"},
      {&out.end_, "COMMIT"},
      {&out.compacted_, "SELECT compacted FROM state"},
      {&out.keys_, "SELECT rev, key FROM log WHERE rev > ? ORDER BY rev"},
      {&out.row_, "SELECT key, create_rev, deleted, prev_value FROM log WHERE rev = ?"},
      {&out.replaced_, "SELECT prev_value, prev_rev FROM log WHERE rev = ?"},
      {&out.current_, "SELECT value, mod_rev, create_rev FROM current WHERE key = ?"},
      {&out.written_, "SELECT mod_rev, key FROM current WHERE key >= ? ORDER BY key"},
      {&out.oldest_,
       "SELECT max(compacted, ifnull((SELECT rev FROM log ORDER BY rev DESC LIMIT 1 OFFSET ?), 0)) FROM state"},
  };
  for (const auto& [slot, sql] : statements) {
    SPILLWAY_TRY(statement, connection.prepare(sql));
    *slot = std::move(statement);
  }
  SPILLWAY_TRY(prefixes, prefixes_without_history(connection));
  out.without_history_ = std::move(prefixes);
  return out;
}

Outcome History::replay(std::string_view prefix, Revision after, Revision upto, const Sink& sink) {
  SPILLWAY_TRY_VOID(begin_.run());
  Outcome outcome = replay_in_transaction(prefix, after, upto, sink);
  SPILLWAY_TRY_VOID(end_.run());
  return outcome;
}

Outcome History::replay_in_transaction(std::string_view prefix, Revision after, Revision upto, const Sink& sink) {
  {
    Rows state = compacted_.query();
    SPILLWAY_TRY(found, state.next());
    const Revision compacted(found ? static_cast<std::uint64_t>(state.integer(0)) : 0);
    if (after < compacted) {
      return too_old(after, compacted);
    }
  }
  SPILLWAY_TRY(found_steps, steps(prefix, after, upto));
  std::vector<Change> piece;
  std::size_t bytes = 0;
  for (const Step& step : found_steps) {
    SPILLWAY_TRY(change, step.key.empty() ? change_of(step) : unlogged_change(step));
    if (!change) continue;
    bytes += size_of(*change);
    piece.push_back(*std::move(change));
    if (bytes < kPieceBytes) continue;
    sink(std::exchange(piece, {}));
    bytes = 0;
  }
  if (!piece.empty()) sink(std::move(piece));
  return {};
}

Result<std::vector<History::Step>> History::steps(std::string_view prefix, Revision after, Revision upto) {
  std::vector<Step> out;
  std::map<std::string, std::size_t, std::less<>> last_step;
  Rows rows = keys_.query(after.number());
  for (;;) {
    SPILLWAY_TRY(more, rows.next());
    if (!more) break;
    const std::string_view key = rows.bytes(1);
    if (!key.starts_with(prefix)) continue;
    const Revision revision(static_cast<std::uint64_t>(rows.integer(0)));
    const auto last = last_step.find(key);
    if (last != last_step.end()) {
      out[last->second].next = revision;
      last_step.erase(last);
    }
    if (revision > upto) continue;
    last_step.emplace(key, out.size());
    out.push_back(Step{revision, std::nullopt});
  }
  SPILLWAY_TRY_VOID(add_unlogged(prefix, after, upto, out));
  return out;
}

Outcome History::add_unlogged(std::string_view prefix, Revision after, Revision upto, std::vector<Step>& steps) {
  const auto logged = static_cast<std::ptrdiff_t>(steps.size());
  for (const std::string& below : without_history_) {
    const bool narrower = below.starts_with(prefix);
    if (!narrower && !prefix.starts_with(below)) continue;
    SPILLWAY_TRY_VOID(add_unlogged_below(narrower ? std::string_view(below) : prefix, after, upto, steps));
  }
  const auto middle = steps.begin() + logged;
  std::sort(middle, steps.end(), [](const Step& a, const Step& b) { return a.revision < b.revision; });
  std::inplace_merge(steps.begin(), middle, steps.end(),
                     [](const Step& a, const Step& b) { return a.revision < b.revision; });
  // A deletion from the time when the key had history is in the log as well.
  const auto repeated =
      std::ranges::unique(steps, [](const Step& a, const Step& b) { return a.revision == b.revision; });
  steps.erase(repeated.begin(), repeated.end());
  return {};
}

Outcome History::add_unlogged_below(std::string_view prefix, Revision after, Revision upto, std::vector<Step>& steps) {
  Rows rows = written_.query(prefix);
  for (;;) {
    SPILLWAY_TRY(more, rows.next());
    if (!more || !rows.bytes(1).starts_with(prefix)) return {};
    const Revision revision(static_cast<std::uint64_t>(rows.integer(0)));
    if (revision > after && revision <= upto) steps.push_back(Step{revision, std::nullopt, std::string(rows.bytes(1))});
  }
}

Result<std::optional<Change>> History::unlogged_change(const Step& step) {
  Rows row = current_.query(std::string_view(step.key));
  SPILLWAY_TRY(found, row.next());
  if (!found) return damaged(step.revision);
  return Change{step.key, step.revision, Revision(static_cast<std::uint64_t>(row.integer(2))),
                std::make_shared<const std::string>(row.bytes(0)), nullptr};
}

Result<Revision> History::oldest_within(std::uint64_t changes_max) {
  Rows row = oldest_.query(changes_max);
  SPILLWAY_TRY(found, row.next());
  return Revision(found ? static_cast<std::uint64_t>(row.integer(0)) : 0);
}

/// nullopt: the key has lost its history since, and with it the value that was written then.
Result<std::optional<Change>> History::change_of(const Step& step) {
  Change change;
  change.revision = step.revision;
  bool deleted = false;
  {
    Rows row = row_.query(step.revision.number());
    SPILLWAY_TRY(found, row.next());
    if (!found) return damaged(step.revision);
    change.key = std::string(row.bytes(0));
    change.create_revision = Revision(static_cast<std::uint64_t>(row.integer(1)));
    deleted = row.integer(2) != 0;
    if (!row.is_null(3)) change.previous = std::make_shared<const std::string>(row.bytes(3));
  }
  if (deleted) return change;
  SPILLWAY_TRY(value, value_after(step, change.key));
  if (!value && is_below(change.key, without_history_)) return std::nullopt;
  if (!value) return damaged(step.revision);
  change.value = std::move(value);
  return change;
}

Result<Value> History::value_after(const Step& step, const std::string& key) {
  Rows row = step.next ? replaced_.query(step.next->number()) : current_.query(std::string_view(key));
  SPILLWAY_TRY(found, row.next());
  const bool there = found && !row.is_null(0) && static_cast<std::uint64_t>(row.integer(1)) == step.revision.number();
  if (!there) return Value();
  return std::make_shared<const std::string>(row.bytes(0));
}

}  // namespace spillway::store::sqlite
