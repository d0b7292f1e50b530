#include "store/sqlite/writer.h"

#include "store/sqlite/ledger.h"
#include "store/sqlite/metrics.h"
#include "store/sqlite/reserve.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/write_queue.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace spillway::store::sqlite {
namespace {

constexpr std::int64_t kVacuumPages = 128;       // given back in one step
constexpr std::uint64_t kEmergencyRows = 1'000;  // of history, deleted in one step when the disk is full
constexpr std::int64_t kEmergencyPages = 32;     // given back in one step then: each goes through the log
constexpr Bytes kSpaceBack = kibibytes(256);     // free besides the reserve: the disk counts as full no more
constexpr std::int64_t kLogPagesMin = 16;        // of the write-ahead log, before it is moved into the file
constexpr Duration kLookForSpace = seconds(1);
constexpr std::int64_t kFileReserveShare = 16;  // of a file that is limited
constexpr std::string_view kFull = "the disk is full: only deletions and heartbeats are stored";

Instant steady_now() {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

void refuse(Request& request, const Error& error) {
  std::visit([&](auto& one) { one.answer = error; }, request);
}

}  // namespace

struct Writer::Impl {
  Impl(std::string file, SqliteOptions chosen, Deliver delivery, std::unique_ptr<Ledger> opened)
      : path(std::move(file)),
        options(std::move(chosen)),
        deliver(std::move(delivery)),
        queue(options),
        metrics(options.metrics),
        ledger(std::move(opened)),
        reserve(path + ".reserve"),
        first_head(ledger->state().head),
        first_compacted(ledger->state().compacted),
        retention(options.history, now(), first_head) {}

  std::string path;
  SqliteOptions options;
  Deliver deliver;
  WriteQueue queue;
  StoreMetrics metrics;
  std::unique_ptr<Ledger> ledger;
  Reserve reserve;
  Revision first_head;
  Revision first_compacted;
  Retention retention;
  /// Set by the first write that found no space, until the reserve is held again.
  bool short_of_space = false;
  /// Set for good when it is unknown what is on the disk, or it is damaged.
  std::optional<Error> broken;
  bool tidied = true;
  std::thread thread;

  Instant now() const { return options.clock ? options.clock() : steady_now(); }

  HistorySize size() const {
    const LedgerState& state = ledger->state();
    const std::uint64_t kept = state.head.number() - state.compacted.number();
    const std::uint64_t rows = kept + ledger->rows_to_trim();
    const double share = rows == 0 ? 0 : static_cast<double>(kept) / static_cast<double>(rows);
    const Bytes history{static_cast<std::int64_t>(static_cast<double>(state.history_bytes.count()) * share)};
    return HistorySize{state.head, state.compacted, state.live_bytes, history};
  }

  void run() {
    hold_reserve(Bytes{0});
    bound_log();
    while (std::optional<std::vector<Request>> group = queue.take(wait_limit())) {
      if (group->empty()) {
        tidy();
      } else {
        commit(std::move(*group));
      }
    }
    if (!broken)
      ignored(ledger->connection().exec("PRAGMA wal_checkpoint(TRUNCATE)"), "the journal is as good as the file");
  }

  /// How long to wait for requests before there is something else to do.
  std::optional<Duration> wait_limit() const {
    if (broken) return std::nullopt;
    if (short_of_space) return kLookForSpace;
    if (!tidied) return Duration::zero();
    if (ledger->state().compacted == ledger->state().head) return std::nullopt;
    return std::max(retention.next_wakeup() - now(), Duration(milliseconds(1)));
  }

  void commit(std::vector<Request> group) {
    tidied = false;
    if (short_of_space && !look_for_space()) return commit_urgent(std::move(group));
    std::vector<Change> changes;
    const Outcome outcome = transact(group, changes);
    if (outcome || !short_of_space) return finish(std::move(group), std::move(changes), outcome);
    reserve.release();
    ignored(limit_file(Bytes{0}), "the writes that follow show it");
    commit_urgent(std::move(group));
  }

  /// On what the reserve gives: deletions, what leads to them, and heartbeats. The rest is refused, as it would eat up
  /// what the others need.
  void commit_urgent(std::vector<Request> group) {
    make_room();
    std::vector<Request> taken;
    std::vector<Request> refused;
    for (Request& request : group) (urgent(request) ? taken : refused).push_back(std::move(request));
    if (!taken.empty()) {
      std::vector<Change> changes;
      const Outcome outcome = transact(taken, changes);
      finish(std::move(taken), std::move(changes), outcome);
      make_room();
    }
    if (!refused.empty()) {
      finish(std::move(refused), {},
             make_error(ErrorCode::kServiceUnavailable, "not stored: {}", broken ? broken->message : kFull));
    }
  }

  /// Keeps the log of the database small, and the past with it; pages that are free go back to the disk.
  void make_room() {
    if (broken) return;
    move_log();
    ignored(give_back_history(), "the writes that follow show it");
    move_log();
    ignored(ledger->connection().exec(fmt::format("PRAGMA incremental_vacuum({})", kEmergencyPages).c_str()),
            "tried again with the next writes");
    move_log();
  }

  /// What stands in the log makes the file grow when it is moved there: half of the reserve has to be enough for that.
  void bound_log() {
    const Result<std::int64_t> page = ledger->connection().number("PRAGMA page_size");
    if (!page) return;
    const std::int64_t pages = std::min(options.checkpoint_pages, reserve.size().count() / 2 / *page);
    ignored(
        ledger->connection().exec(fmt::format("PRAGMA wal_autocheckpoint={}", std::max(pages, kLogPagesMin)).c_str()),
        "it stays as it was");
  }

  /// Moves the log into the file; it begins anew in the space it has, which nobody else can take. Does not wait long
  /// for readers: they end, and the next one succeeds.
  void move_log() {
    ignored(ledger->connection().exec("PRAGMA busy_timeout=100; PRAGMA wal_checkpoint(RESTART);"
                                      "PRAGMA busy_timeout=5000"),
            "tried again with the next writes");
  }

  bool urgent(const Request& request) const {
    const auto* write = std::get_if<WriteRequest>(&request);
    return write == nullptr || !write->write.value || write->write.frees ||
           std::ranges::any_of(options.urgent_prefixes,
                               [&](const std::string& prefix) { return write->write.key.starts_with(prefix); });
  }

  /// Whether there is room for the reserve and `free` besides; then it is held.
  bool hold_reserve(Bytes free) {
    if (!reserve.hold(free)) return false;
    if (!options.file_bytes_max) return true;
    const Bytes kept{options.file_bytes_max->count() / kFileReserveShare};
    const auto page = ledger->connection().number("PRAGMA page_size");
    const auto pages = ledger->connection().number("PRAGMA page_count");
    const auto unused = ledger->connection().number("PRAGMA freelist_count");
    const bool fits = page && pages && unused &&
                      (*pages - *unused) * *page + kept.count() + free.count() <= options.file_bytes_max->count();
    if (fits) return limit_file(kept).has_value();
    reserve.release();
    return false;
  }

  /// The most that the file may grow to, less `kept`.
  Outcome limit_file(Bytes kept) {
    if (!options.file_bytes_max) return {};
    SPILLWAY_TRY(page, ledger->connection().number("PRAGMA page_size"));
    const std::int64_t pages = (options.file_bytes_max->count() - kept.count()) / page;
    return ledger->connection().exec(fmt::format("PRAGMA max_page_count={}", pages).c_str());
  }

  /// The disk was full. True: it is so no more.
  bool look_for_space() {
    if (broken || !hold_reserve(kSpaceBack)) return false;
    space_is_back();
    return true;
  }

  std::optional<std::string> refusing() const {
    if (broken) return broken->message;
    return short_of_space ? std::optional(std::string(kFull)) : std::nullopt;
  }

  /// One transaction. On success every request has its answer; else nothing has changed.
  Outcome transact(std::vector<Request>& group, std::vector<Change>& changes) {
    if (broken) return *broken;
    const Instant start = now();
    Outcome outcome = try_transaction(group, changes);
    if (outcome) {
      count(changes.size(), now() - start);
      return {};
    }
    note_trouble(outcome.error());
    ledger->rollback();
    changes.clear();
    return make_error(ErrorCode::kServiceUnavailable, "not stored: {}", outcome.error().message);
  }

  void count(std::size_t writes, Duration took) {
    const LedgerState& state = ledger->state();
    metrics.writes.add(static_cast<double>(writes));
    if (writes != 0) {
      metrics.commit_writes.observe(static_cast<double>(writes));
      metrics.commit_seconds.observe(std::chrono::duration<double>(took).count());
    }
    metrics.revision.set(static_cast<double>(state.head.number()));
    metrics.compacted_revision.set(static_cast<double>(state.compacted.number()));
    metrics.live_bytes.set(static_cast<double>(state.live_bytes.count()));
    metrics.history_bytes.set(static_cast<double>(state.history_bytes.count()));
  }

  Outcome try_transaction(std::vector<Request>& group, std::vector<Change>& changes) {
    SPILLWAY_TRY_VOID(ledger->begin());
    const LedgerState before = ledger->state();
    for (Request& request : group) {
      if (auto* write = std::get_if<WriteRequest>(&request)) {
        SPILLWAY_TRY(result, ledger->apply(write->write, changes));
        write->answer = std::move(result);
      } else {
        compact(std::get<CompactRequest>(request));
      }
    }
    ledger->compact(retention.compact_to(size(), now()));
    // As many rows go as come, and some more: compaction keeps pace with any load.
    SPILLWAY_TRY(trimmed, ledger->trim(options.trim_rows_max + 2 * changes.size()));
    const bool unchanged = changes.empty() && trimmed == 0 && before.compacted == ledger->state().compacted;
    if (!unchanged) return ledger->commit();
    ledger->rollback();
    return {};
  }

  void compact(CompactRequest& request) {
    const Revision head = ledger->state().head;
    if (request.revision > head) {
      request.answer = make_error(ErrorCode::kTimeout, "cannot compact to revision {}: the store is at {}",
                                  request.revision.number(), head.number());
      return;
    }
    ledger->compact(request.revision);
    request.answer = ledger->state().compacted;
  }

  void finish(std::vector<Request> group, std::vector<Change> changes, const Outcome& outcome) {
    if (!outcome) {
      for (Request& request : group) refuse(request, outcome.error());
      metrics.refused.add(static_cast<double>(group.size()));
    }
    deliver(Committed{std::move(changes), std::move(group), ledger->state().compacted, refusing()});
  }

  void note_trouble(const Error& error) {
    const Trouble trouble = ledger->connection().trouble();
    const bool first = trouble == Trouble::kFull ? !std::exchange(short_of_space, true) : !broken;
    if (trouble == Trouble::kIo || trouble == Trouble::kDamaged) {
      broken = make_error(ErrorCode::kServiceUnavailable, "the database {} failed ({}); it is read-only until restart",
                          path, error.message);
    }
    if (short_of_space || broken) metrics.takes_writes.set(0);
    if (first) options.log.error("store does not take writes", {{"file", path}, {"cause", error.message}});
  }

  void space_is_back() {
    if (!std::exchange(short_of_space, false)) return;
    metrics.takes_writes.set(1);
    options.log.info("store takes writes again", {{"file", path}});
  }

  /// Nobody waits: deletes history, gives pages back to the file system, until there is nothing left to do.
  void tidy() {
    if (short_of_space) {
      make_room();
      if (look_for_space()) finish({}, {}, {});
      return;
    }
    std::vector<Request> nobody;
    std::vector<Change> nothing;
    const Revision compacted = ledger->state().compacted;
    const std::uint64_t rows = ledger->rows_to_trim();
    const Outcome outcome = transact(nobody, nothing);
    if (ledger->state().compacted != compacted) finish(std::move(nobody), std::move(nothing), outcome);
    if (outcome && (rows != 0 || ledger->rows_to_trim() != 0)) return;
    const Result<bool> more = outcome ? vacuum() : Result<bool>(false);
    tidied = !more || !*more;
    if (tidied && !broken)
      ignored(ledger->connection().exec("PRAGMA wal_checkpoint(PASSIVE)"), "done again by later commits");
  }

  /// True: there are more pages to give back.
  Result<bool> vacuum() {
    SPILLWAY_TRY(free_pages, ledger->connection().number("PRAGMA freelist_count"));
    SPILLWAY_TRY(pages, ledger->connection().number("PRAGMA page_count"));
    // Free pages are used again first; a steady load keeps some.
    if (free_pages < 2 * kVacuumPages || free_pages * 4 < pages) return false;
    SPILLWAY_TRY_VOID(ledger->connection().exec(fmt::format("PRAGMA incremental_vacuum({})", kVacuumPages).c_str()));
    return true;
  }

  /// All of it: to be able to write is worth more than the past, and nobody loses what he has.
  Outcome give_back_history() {
    do {
      if (broken) return *broken;
      SPILLWAY_TRY_VOID(ledger->begin());
      ledger->compact(ledger->state().head);
      Result<std::uint64_t> trimmed = ledger->trim(kEmergencyRows);
      Outcome outcome = trimmed ? Outcome() : Outcome(trimmed.error());
      if (outcome && *trimmed != 0) outcome = ledger->commit();
      if (!outcome || *trimmed == 0) ledger->rollback();
      if (!outcome) return outcome;
    } while (ledger->rows_to_trim() != 0);
    return {};
  }
};

Result<std::unique_ptr<Writer>> Writer::start(const std::string& path, SqliteOptions options, Deliver deliver) {
  SPILLWAY_TRY(connection, open_for_writing(path, options));
  SPILLWAY_TRY(ledger, Ledger::open(std::move(connection)));
  auto impl = std::make_unique<Impl>(path, std::move(options), std::move(deliver), std::move(ledger));
  Impl* running = impl.get();
  impl->thread = std::thread([running] { running->run(); });
  return std::unique_ptr<Writer>(new Writer(std::move(impl)));
}

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Writer::~Writer() {
  stop();
}

Revision Writer::first_head() const {
  return impl_->first_head;
}

Revision Writer::first_compacted() const {
  return impl_->first_compacted;
}

std::optional<Error> Writer::refusal(std::size_t bytes) const {
  return impl_->queue.refusal(bytes);
}

void Writer::submit(Request request) {
  impl_->queue.push(std::move(request));
}

void Writer::stop() {
  impl_->queue.stop();
  if (!impl_->thread.joinable()) return;
  impl_->thread.join();
  impl_->ledger.reset();
}

}  // namespace spillway::store::sqlite
