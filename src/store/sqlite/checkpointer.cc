#include "store/sqlite/checkpointer.h"

#include "store/sqlite/database.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace spillway::store::sqlite {
namespace {

constexpr std::int64_t kRetryPages = 64;  // by which the log grows before a pass that failed is tried again

}  // namespace

struct Checkpointer::Impl {
  Impl(Connection opened, StoreMetrics& numbers, std::function<Instant()> time)
      : connection(std::move(opened)), metrics(numbers), clock(std::move(time)) {}

  Connection connection;
  StoreMetrics& metrics;
  std::function<Instant()> clock;

  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable idle;
  std::int64_t pages = 0;
  /// The pages of the log that are moved, or more: with too few a pass would begin with nothing to move.
  std::int64_t moved = 0;
  std::int64_t not_before = 0;  // pages; after a failure
  bool busy = false;
  bool outrun = false;  // the writer has restarted the log: the pass moved pages of the old one
  bool stopping = false;
  std::optional<Error> failure;
  std::thread thread;

  void run() {
    for (;;) {
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [this] { return stopping || busy; });
        if (!busy) return;
      }
      const Instant begin = clock();
      const Result<std::int64_t> done = pass();
      metrics.checkpoint_seconds.observe(std::chrono::duration<double>(clock() - begin).count());
      (done ? metrics.checkpoints : metrics.failed_checkpoints).add();
      {
        const std::lock_guard lock(mutex);
        busy = false;
        failure = done ? std::nullopt : std::optional(done.error());
        if (done && !std::exchange(outrun, false)) moved = std::max(moved, *done);
        not_before = done ? 0 : pages + kRetryPages;
      }
      idle.notify_all();
    }
  }

  /// Pages of the log that are moved now.
  Result<std::int64_t> pass() {
    SPILLWAY_TRY(statement, connection.prepare("PRAGMA wal_checkpoint(PASSIVE)"));
    Rows rows = statement.query();
    SPILLWAY_TRY(found, rows.next());
    if (!found || rows.integer(0) != 0) {
      return make_error(ErrorCode::kServiceUnavailable, "another program moves the log of the database");
    }
    return rows.integer(2);
  }
};

Result<std::unique_ptr<Checkpointer>> Checkpointer::start(const std::string& path, StoreMetrics& metrics,
                                                          std::function<Instant()> clock) {
  SPILLWAY_TRY(connection, Connection::open(path, Access::kReadWrite));
  SPILLWAY_TRY_VOID(connection.exec("PRAGMA busy_timeout=5000; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0"));
  auto impl = std::make_unique<Impl>(std::move(connection), metrics, std::move(clock));
  Impl* running = impl.get();
  impl->thread = std::thread([running] { running->run(); });
  pthread_setname_np(impl->thread.native_handle(), "spillway-ckpt");
  return std::unique_ptr<Checkpointer>(new Checkpointer(std::move(impl)));
}

Checkpointer::Checkpointer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Checkpointer::~Checkpointer() {
  stop();
}

Checkpointer::Log Checkpointer::on_commit(std::int64_t pages, std::int64_t pages_min) {
  const std::lock_guard lock(impl_->mutex);
  if (pages < impl_->pages) {  // the log was restarted, after all of it was moved
    impl_->moved = impl_->not_before = 0;
    impl_->outrun = impl_->busy;
  }
  impl_->pages = pages;
  const std::int64_t waiting = std::max<std::int64_t>(pages - impl_->moved, 0);
  if (!impl_->busy && !impl_->stopping && waiting >= pages_min && pages >= impl_->not_before) {
    impl_->busy = true;
    impl_->wake.notify_one();
  }
  return {pages, waiting, impl_->busy, impl_->failure};
}

void Checkpointer::wait() {
  std::unique_lock lock(impl_->mutex);
  impl_->idle.wait(lock, [this] { return !impl_->busy; });
}

void Checkpointer::on_moved(std::int64_t pages, std::int64_t moved) {
  const std::lock_guard lock(impl_->mutex);
  impl_->pages = pages;
  impl_->moved = moved;
}

void Checkpointer::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_one();
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace spillway::store::sqlite
