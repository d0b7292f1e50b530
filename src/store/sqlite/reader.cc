#include "store/sqlite/reader.h"

#include "store/sqlite/schema.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace spillway::store::sqlite {

struct Reader::Impl {
  Impl(Connection opened, Snapshot ranges, History past, std::size_t waiting_max)
      : connection(std::move(opened)), snapshot(std::move(ranges)), history(std::move(past)), jobs_max(waiting_max) {}

  Connection connection;  // outlives the statements of the two
  Snapshot snapshot;
  History history;
  std::size_t jobs_max;

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Job> jobs;
  bool stopping = false;
  std::thread thread;

  std::optional<Job> take() {
    std::unique_lock lock(mutex);
    wake.wait(lock, [this] { return stopping || !jobs.empty(); });
    if (jobs.empty()) return std::nullopt;
    std::optional<Job> job(std::move(jobs.front()));
    jobs.pop_front();
    return job;
  }

  void run() {
    while (std::optional<Job> job = take()) (*job)(snapshot, history);
  }
};

Result<std::unique_ptr<Reader>> Reader::start(const std::string& path, std::size_t jobs_max) {
  SPILLWAY_TRY(connection, open_for_reading(path));
  SPILLWAY_TRY(snapshot, Snapshot::open(connection));
  SPILLWAY_TRY(history, History::open(connection));
  auto impl = std::make_unique<Impl>(std::move(connection), std::move(snapshot), std::move(history), jobs_max);
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
  impl_->snapshot = Snapshot();
  impl_->history = History();
  impl_->connection = Connection();
}

}  // namespace spillway::store::sqlite
