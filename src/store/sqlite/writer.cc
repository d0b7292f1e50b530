#include "store/sqlite/writer.h"

#include "store/sqlite/checkpointer.h"
#include "store/sqlite/ledger.h"
#include "store/sqlite/metrics.h"
#include "store/sqlite/reserve.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/write_queue.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

namespace spillway::store::sqlite {
namespace {

constexpr std::int64_t kVacuumPages = 128;       // pages freed in one step
constexpr std::uint64_t kEmergencyRows = 1'000;  // rows of history that are deleted in one step when the disk is full
// pages freed in one step when the disk is full: each is written to the log
constexpr std::int64_t kEmergencyPages = 32;
constexpr Bytes kSpaceBack = kibibytes(256);  // free besides the reserve: the disk counts as full no more
constexpr std::int64_t kLogPagesMin = 16;     // pages of the write-ahead log that may make the file grow, at least
constexpr std::int64_t kRestPages = 2'048;    // pages of the log that the writer moves itself without a long stop
constexpr std::int64_t kLogPageBytes = 4'096 + 24;  // a page with its header in the log
constexpr Duration kSpaceCheckEvery = seconds(1);
constexpr std::int64_t kFileReserveShare = 16;  // fraction of a file with a size limit that is kept free
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
  /// set while the log cannot be moved because the file has no space to grow
  std::optional<Error> file_full;
  /// Set for good when the state on the disk is unknown or damaged.
  std::optional<Error> broken;
  bool tidied = true;
  std::unique_ptr<Checkpointer> checkpointer;
  std::int64_t growth_pages_max = kLogPagesMin;  // pages that the log may add to the file
  std::int64_t growth_checked_at = 0;            // pages in the log at the last check of the file's growth
  std::int64_t next_growth_check_at = 0;         // pages in the log
  std::int64_t finish_at = 0;                    // pages in the log from which on the writer finishes the move
  bool log_stays = false;                        // the failure to move the log was reported
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
    bound_growth();
    while (std::optional<std::vector<Request>> group = queue.take(wait_limit())) {
      if (group->empty()) {
        tidy();
      } else {
        commit(std::move(*group));
      }
    }
    checkpointer->stop();
    if (!broken)
      ignored(ledger->connection().exec("PRAGMA wal_checkpoint(TRUNCATE)"), "the journal is as good as the file");
  }

  /// The time to wait for requests before other work is due.
  std::optional<Duration> wait_limit() const {
    if (broken) return std::nullopt;
    if (short_of_space) return kSpaceCheckEvery;
    if (!tidied) return Duration::zero();
    if (ledger->state().compacted == ledger->state().head) return std::nullopt;
    return std::max(retention.next_wakeup() - now(), Duration(milliseconds(1)));
  }

  void commit(std::vector<Request> group) {
    tidied = false;
    if (short_of_space && !find_space()) return commit_urgent(std::move(group));
    std::vector<Change> changes;
    const Outcome outcome = transact(group, changes);
    if (outcome || !short_of_space) {
      finish(std::move(group), std::move(changes), outcome);
      return bound_log();
    }
    release_reserve();
    commit_urgent(std::move(group));
  }

  /// Commits deletions, requests that lead to them, and heartbeats, on the space of the reserve. Other requests are
  /// refused, as they would eat up that space.
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

  /// Pages in the log make the file grow when they are moved there: half of the reserve must be enough for that.
  void bound_growth() {
    const Result<std::int64_t> page = ledger->connection().number("PRAGMA page_size");
    if (page) growth_pages_max = std::max(reserve.size().count() / 2 / *page, kLogPagesMin);
  }

  /// True if the log holds too many pages that the file does not have yet. After one count there can be more only once
  /// the log has grown by as many: pages are not counted before.
  bool grows_too_far(std::int64_t pages) {
    if (pages < growth_pages_max || (pages >= growth_checked_at && pages < next_growth_check_at)) return false;
    const auto all = ledger->connection().number("PRAGMA page_count");
    const auto page = ledger->connection().number("PRAGMA page_size");
    std::error_code problem;
    const std::uintmax_t bytes = std::filesystem::file_size(path, problem);
    if (!all || !page || problem) return true;
    const std::int64_t growth = *all - static_cast<std::int64_t>(bytes) / *page;
    growth_checked_at = pages;
    next_growth_check_at = pages + growth_pages_max - growth;
    return growth > growth_pages_max;
  }

  /// Bounds the log between two groups, after the callers were answered: the log is moved beside the writer, which
  /// finishes the move when little is left, when the log is too long, or when the file would grow more than it could on
  /// a disk that gets full.
  void bound_log() {
    if (broken) return;
    const std::int64_t pages = ledger->connection().log_pages();
    const Checkpointer::Log log = checkpointer->on_commit(pages, options.checkpoint_pages);
    metrics.log_bytes.set(static_cast<double>(pages * kLogPageBytes));
    log_checkpoint_state(log);
    const bool grows = grows_too_far(pages);
    const bool small = !log.busy && log.waiting <= kRestPages;
    const bool due = pages >= options.log_pages_max || (pages >= options.log_pages_wanted && small);
    const std::int64_t step = std::clamp<std::int64_t>(growth_pages_max / 2, 1, options.checkpoint_pages);
    if (pages < finish_at - step) finish_at = 0;  // the log has begun anew
    if (pages < finish_at || (!grows && !due)) return;
    move_log();
    metrics.writer_checkpoints.add();
    finish_at = pages + step;  // not with every group, if a reader holds it up
    if (file_full) run_short();
  }

  /// The log still has space of its own, but the file has none to grow: the reserve is just enough for the pages in the
  /// log, and would not be if these grew on.
  void run_short() {
    become_short_of_space(*file_full);
    release_reserve();
    move_log();
    if (file_full) make_room();
    finish({}, {}, {});
  }

  void release_reserve() {
    reserve.release();
    ignored(limit_file(Bytes{0}), "the writes that follow show it");
  }

  void log_checkpoint_state(const Checkpointer::Log& log) {
    if (log.failure.has_value() == log_stays) return;
    log_stays = log.failure.has_value();
    if (log_stays) {
      options.log.error("the write-ahead log cannot be moved into the database, and grows",
                        {{"file", path}, {"cause", log.failure->message}});
    } else {
      options.log.info("the write-ahead log is moved into the database again", {{"file", path}});
    }
  }

  /// Moves the log into the file; it begins anew in the space it has, which no other file can take. Does not wait long
  /// for readers: they end, and the next attempt succeeds.
  void move_log() {
    checkpointer->wait();
    ignored(ledger->connection().exec("PRAGMA busy_timeout=100"), "it waits longer");
    const Result<bool> moved = restart_log();
    next_growth_check_at = 0;
    if (!moved && ledger->connection().trouble() == Trouble::kFull) file_full = moved.error();
    if (moved && *moved) file_full.reset();
    if (!moved) metrics.failed_checkpoints.add();
    ignored(ledger->connection().exec("PRAGMA busy_timeout=5000"), "it waits less long");
  }

  /// Restarts the log. False: a reader prevents it.
  Result<bool> restart_log() {
    SPILLWAY_TRY(statement, ledger->connection().prepare("PRAGMA wal_checkpoint(RESTART)"));
    Rows rows = statement.query();
    SPILLWAY_TRY(found, rows.next());
    if (!found || rows.integer(1) < 0) return make_error(ErrorCode::kInternalError, "the log cannot be moved");
    checkpointer->on_moved(rows.integer(1), rows.integer(2));
    return rows.integer(0) == 0 && rows.integer(1) == rows.integer(2);
  }

  bool urgent(const Request& request) const {
    const auto* write = std::get_if<WriteRequest>(&request);
    return write == nullptr || !write->write.value || write->write.frees ||
           std::ranges::any_of(options.urgent_prefixes,
                               [&](const std::string& prefix) { return write->write.key.starts_with(prefix); });
  }

  /// Holds the reserve. True: there is room for it and for `free` in addition.
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
  bool find_space() {
    if (broken) return false;
    if (file_full) move_log();
    if (file_full || !hold_reserve(kSpaceBack)) return false;
    space_is_back();
    return true;
  }

  std::optional<std::string> refusing() const {
    if (broken) return broken->message;
    return short_of_space ? std::optional(std::string(kFull)) : std::nullopt;
  }

  /// Carries out one transaction. On success every request has its answer; else nothing has changed.
  Outcome transact(std::vector<Request>& group, std::vector<Change>& changes) {
    if (broken) return *broken;
    const Instant start = now();
    Outcome outcome = try_transaction(group, changes);
    if (outcome) {
      count(changes.size(), now() - start);
      return {};
    }
    on_trouble(outcome.error());
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
    // Deletes somewhat more rows than are added: compaction keeps pace with any load.
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
    const LedgerState& state = ledger->state();
    deliver(Committed{std::move(changes), std::move(group), state.head, state.compacted, refusing()});
  }

  void on_trouble(const Error& error) {
    const Trouble trouble = ledger->connection().trouble();
    if (trouble == Trouble::kFull) return become_short_of_space(error);
    const bool first = !broken;
    if (trouble == Trouble::kIo || trouble == Trouble::kDamaged) {
      broken = make_error(ErrorCode::kServiceUnavailable, "the database {} failed ({}); it is read-only until restart",
                          path, error.message);
    }
    if (short_of_space || broken) metrics.takes_writes.set(0);
    if (first) log_refusal(error);
  }

  void become_short_of_space(const Error& cause) {
    if (std::exchange(short_of_space, true)) return;
    metrics.takes_writes.set(0);
    log_refusal(cause);
  }

  void log_refusal(const Error& cause) {
    options.log.error("store does not accept writes", {{"file", path}, {"cause", cause.message}});
  }

  void space_is_back() {
    if (!std::exchange(short_of_space, false)) return;
    bound_growth();
    metrics.takes_writes.set(1);
    options.log.info("store accepts writes again", {{"file", path}});
  }

  /// Works while no request waits: deletes history, gives pages back to the file system, until there is nothing left to
  /// do.
  void tidy() {
    if (short_of_space) {
      make_room();
      if (find_space()) finish({}, {}, {});
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
      checkpointer->on_commit(ledger->connection().log_pages(),
                              std::max<std::int64_t>(options.checkpoint_pages / 8, 1));
  }

  /// Frees pages. True: there are more.
  Result<bool> vacuum() {
    SPILLWAY_TRY(free_pages, ledger->connection().number("PRAGMA freelist_count"));
    SPILLWAY_TRY(pages, ledger->connection().number("PRAGMA page_count"));
    // Free pages are used again first; a steady load keeps some.
    if (free_pages < 2 * kVacuumPages || free_pages * 4 < pages) return false;
    SPILLWAY_TRY_VOID(ledger->connection().exec(fmt::format("PRAGMA incremental_vacuum({})", kVacuumPages).c_str()));
    return true;
  }

  /// Deletes all history: to be able to write is worth more than the past, and no present object is lost.
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
  connection.follow_log();
  SPILLWAY_TRY(ledger, Ledger::open(std::move(connection)));
  auto impl = std::make_unique<Impl>(path, std::move(options), std::move(deliver), std::move(ledger));
  SPILLWAY_TRY(checkpointer,
               Checkpointer::start(path, impl->metrics, [running = impl.get()] { return running->now(); }));
  impl->checkpointer = std::move(checkpointer);
  Impl* running = impl.get();
  impl->thread = std::thread([running] { running->run(); });
  pthread_setname_np(impl->thread.native_handle(), "spillway-store");
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
  impl_->checkpointer.reset();
  impl_->ledger.reset();
}

}  // namespace spillway::store::sqlite
