#include "store/sqlite/reader.h"

#include "store/sqlite/schema.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace spillway::store::sqlite {

struct Reader::Impl {
  // The connection outlives the statements.
  Connection connection;
  std::optional<Snapshot> snapshot;
  std::optional<History> history;
  std::size_t jobs_max = 0;

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Job> jobs;
  bool stopping = false;
  std::thread thread;

  Outcome open(const std::string& path) {
    SPILLWAY_TRY(opened, open_for_reading(path));
    connection = std::move(opened);
    SPILLWAY_TRY(reads_ranges, Snapshot::open(connection));
    snapshot.emplace(std::move(reads_ranges));
    SPILLWAY_TRY(reads_past, History::open(connection));
    history.emplace(std::move(reads_past));
    return {};
  }

  std::optional<Job> take() {
    std::unique_lock lock(mutex);
    wake.wait(lock, [this] { return stopping || !jobs.empty(); });
    if (jobs.empty()) return std::nullopt;
    std::optional<Job> job(std::move(jobs.front()));
    jobs.pop_front();
    return job;
  }

  void run() {
    while (std::optional<Job> job = take()) (*job)(*snapshot, *history);
  }
};

Result<std::unique_ptr<Reader>> Reader::start(const std::string& path, std::size_t jobs_max) {
  auto impl = std::make_unique<Impl>();
  impl->jobs_max = jobs_max;
  SPILLWAY_TRY_VOID(impl->open(path));
  Impl* running = impl.get();
  impl->thread = std::thread([running] { running->run(); });
  return std::unique_ptr<Reader>(new Reader(std::move(impl)));
}

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Reader::~Reader() {
  stop();
}

std::optional<Error> Reader::refusal() const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->stopping) return make_error(ErrorCode::kServiceUnavailable, "the store is stopping");
  if (impl_->jobs.size() < impl_->jobs_max) return std::nullopt;
  return make_error(ErrorCode::kTooManyRequests, "the store is busy: {} reads are waiting", impl_->jobs.size());
}

void Reader::submit(Job job) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->jobs.push_back(std::move(job));
  }
  impl_->wake.notify_one();
}

void Reader::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_one();
  if (!impl_->thread.joinable()) return;
  impl_->thread.join();
  impl_->snapshot.reset();
  impl_->history.reset();
  impl_->connection = Connection();
}

}  // namespace spillway::store::sqlite
