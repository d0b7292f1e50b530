#include "store/sqlite/sqlite_store.h"

#include "store/sqlite/database.h"
#include "store/sqlite/directory_lock.h"
#include "store/sqlite/reader.h"
#include "store/sqlite/writer.h"
#include "store/too_old.h"
#include "store/watch_registry.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <utility>

namespace spillway::store {
namespace {

/// The changes delivered since a watch began to catch up, without gaps and the last of them only: bridges the time that
/// a replay from the file takes. Empty while all watches have caught up, as they have nearly always.
class RecentChanges {
 public:
  void append(std::vector<Change> changes) {
    for (Change& change : changes) {
      bytes_ += bytes_of(change);
      changes_.push_back(std::move(change));
    }
    while (changes_.size() > kChangesMax || bytes_ > kBytesMax) {
      bytes_ -= bytes_of(changes_.front());
      changes_.pop_front();
    }
  }

  void clear() {
    if (changes_.empty()) return;
    changes_ = {};
    bytes_ = 0;
  }

  /// True if every change after `revision` is here.
  bool reach_back_to(Revision revision) const {
    return !changes_.empty() && changes_.front().revision.number() <= revision.number() + 1;
  }

  std::size_t size() const { return changes_.size(); }

  std::size_t bytes() const { return bytes_; }

  std::vector<Change> after(Revision revision) const {
    return {std::ranges::upper_bound(changes_, revision, {}, &Change::revision), changes_.end()};
  }

 private:
  static constexpr std::size_t kChangesMax = 4096;
  static constexpr std::size_t kBytesMax = std::size_t{16} * 1024 * 1024;

  static std::size_t bytes_of(const Change& change) {
    return change.key.size() + (change.value ? change.value->size() : 0);
  }

  std::deque<Change> changes_;
  std::size_t bytes_ = 0;
};

std::string directory_of(const std::string& path) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  return directory.empty() ? "." : directory.string();
}

Outcome make_directory(const std::string& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (problem) return invalid(directory, "cannot create the data directory: {}", problem.message());
  return {};
}

}  // namespace

/// The part on the loop. Posted tasks hold it weakly: what arrives after its end is dropped.
struct SqliteStore::Impl : std::enable_shared_from_this<SqliteStore::Impl> {
  Poster post;
  std::string path;
  StoreLimits limits;
  sqlite::DirectoryLock lock;  // released last
  std::unique_ptr<sqlite::Writer> writer;
  std::unique_ptr<sqlite::Reader> reader;
  bool stopped = false;

  Revision delivered;
  Revision compacted;
  std::optional<std::string> refusing;
  WatchRegistry watches;
  RecentChanges recent;
  /// Answers that show a revision which is not delivered yet, in the order of arrival.
  std::vector<std::pair<Revision, std::move_only_function<void()>>> held;

  /// Runs `task(*this)` on the loop, if this still exists then.
  template <typename Task>
  static void post_to(const Poster& post, std::weak_ptr<Impl> weak, Task task) {
    post([weak = std::move(weak), task = std::move(task)]() mutable {
      if (const std::shared_ptr<Impl> self = weak.lock()) task(*self);
    });
  }

  template <typename T>
  void refuse(Error error, Completion<T> done) {
    post_to(post, weak_from_this(),
            [error = std::move(error), done = std::move(done)](Impl&) mutable { done(std::move(error)); });
  }

  void deliver(sqlite::Committed committed) {
    compacted = std::max(compacted, committed.compacted);
    refusing = std::move(committed.refusing);
    watches.publish(committed.changes);
    delivered = std::max(delivered, committed.head);
    if (watches.has_late()) {
      recent.append(std::move(committed.changes));
    } else {
      recent.clear();
    }
    for (sqlite::Request& request : committed.requests) {
      std::visit([](auto& one) { one.done(std::move(one.answer)); }, request);
    }
    release_held();
  }

  void when_delivered(Revision revision, std::move_only_function<void()> task) {
    if (revision <= delivered) return task();
    held.emplace_back(revision, std::move(task));
  }

  void release_held() {
    for (auto& [revision, task] : std::exchange(held, {})) when_delivered(revision, std::move(task));
  }

  void read(Range range, Completion<RangeResult> done) {
    reader->submit([weak = weak_from_this(), post = post, range = std::move(range), done = std::move(done)](
                       sqlite::Snapshot& snapshot, sqlite::History&) mutable {
      post_to(post, std::move(weak), [done = std::move(done), result = snapshot.read(range)](Impl& self) mutable {
        const Revision shown = result ? result->revision : Revision();
        self.when_delivered(
            shown, [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
      });
    });
  }

  /// Brings a new watch to the present: from memory if that reaches back far enough, else from the file, again and
  /// again until memory does.
  void catch_up(WatchId id) {
    if (!watches.has(id)) return;
    const Revision after = watches.delivered_to(id);
    if (after < compacted) {
      return watches.end(id, too_old(after, compacted));
    }
    if (after >= delivered || recent.reach_back_to(after)) {
      watches.go_live(id);
      return watches.deliver(id, recent.after(after));
    }
    if (std::optional<Error> refusal = reader->refusal()) return watches.end(id, *refusal);
    replay(id, after);
  }

  void replay(WatchId id, Revision after) {
    reader->submit([weak = weak_from_this(), post = post, id, prefix = watches.prefix(id), after, upto = delivered](
                       sqlite::Snapshot&, sqlite::History& history) {
      const Outcome outcome = history.replay(prefix, after, upto, [&](std::vector<Change> changes) {
        post_to(post, weak, [id, changes = std::move(changes)](Impl& self) { self.watches.deliver(id, changes); });
      });
      post_to(post, weak, [id, upto, outcome](Impl& self) {
        if (!outcome) return self.watches.end(id, outcome.error());
        self.watches.skip_to(id, upto);
        self.catch_up(id);
      });
    });
  }

  void stop() {
    if (std::exchange(stopped, true)) return;
    reader->stop();
    writer->stop();
    post_to(post, weak_from_this(), [](Impl& self) {
      self.watches.end_all(make_error(ErrorCode::kServiceUnavailable, "the store has stopped"));
    });
  }
};

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path, Poster post, SqliteOptions options) {
  const std::string directory = directory_of(path);
  SPILLWAY_TRY_VOID(make_directory(directory));
  auto impl = std::make_shared<Impl>();
  impl->post = post;
  impl->path = path;
  impl->limits = options.limits;
  SPILLWAY_TRY(lock, sqlite::DirectoryLock::take_for(path));
  impl->lock = std::move(lock);
  const std::size_t reads_max = options.limits.pending_operations_max;
  SPILLWAY_TRY(
      writer, sqlite::Writer::start(path, std::move(options),
                                    [post = std::move(post), weak = std::weak_ptr(impl)](sqlite::Committed committed) {
                                      Impl::post_to(post, weak, [committed = std::move(committed)](Impl& self) mutable {
                                        self.deliver(std::move(committed));
                                      });
                                    }));
  impl->writer = std::move(writer);
  impl->delivered = impl->writer->first_head();
  impl->compacted = impl->writer->first_compacted();
  SPILLWAY_TRY(reader, sqlite::Reader::start(path, reads_max));
  impl->reader = std::move(reader);
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(impl)));
}

SqliteStore::SqliteStore(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

SqliteStore::~SqliteStore() {
  impl_->stop();
}

void SqliteStore::write(Write write, Completion<WriteResult> done) {
  std::optional<Error> refusal = refuse_write(write, impl_->limits);
  if (!refusal) refusal = impl_->writer->refusal(write.key.size() + (write.value ? write.value->size() : 0));
  if (refusal) return impl_->refuse(std::move(*refusal), std::move(done));
  impl_->writer->submit(sqlite::WriteRequest{std::move(write), std::move(done)});
}

void SqliteStore::range(Range range, Completion<RangeResult> done) {
  if (std::optional<Error> refusal = impl_->reader->refusal()) {
    return impl_->refuse(std::move(*refusal), std::move(done));
  }
  impl_->read(std::move(range), std::move(done));
}

WatchId SqliteStore::watch(std::string prefix, Revision after, Watcher& watcher) {
  const WatchId id = impl_->watches.add(std::move(prefix), after, watcher);
  Impl::post_to(impl_->post, impl_, [id](Impl& self) { self.catch_up(id); });
  return id;
}

void SqliteStore::unwatch(WatchId id) {
  impl_->watches.remove(id);
}

void SqliteStore::compact(Revision revision, Completion<Revision> done) {
  if (std::optional<Error> refusal = impl_->writer->refusal(0)) {
    return impl_->refuse(std::move(*refusal), std::move(done));
  }
  impl_->writer->submit(sqlite::CompactRequest{revision, std::move(done)});
}

std::optional<std::string> SqliteStore::refusing() const {
  return impl_->refusing;
}

void SqliteStore::oldest_within(Revision, std::uint64_t changes_max, Completion<Revision> done) {
  if (std::optional<Error> refusal = impl_->reader->refusal()) {
    return impl_->refuse(std::move(*refusal), std::move(done));
  }
  impl_->reader->submit([weak = impl_->weak_from_this(), post = impl_->post, changes_max, done = std::move(done)](
                            sqlite::Snapshot&, sqlite::History& history) mutable {
    Impl::post_to(post, std::move(weak),
                  [done = std::move(done), oldest = history.oldest_within(changes_max)](Impl&) mutable {
                    done(std::move(oldest));
                  });
  });
}

Revision SqliteStore::revision() const {
  return impl_->delivered;
}

Revision SqliteStore::compacted() const {
  return impl_->compacted;
}

telemetry::MemoryRows SqliteStore::memory() const {
  return {{"store: pages and statements of SQLite", 0, sqlite::library_bytes()},
          {"store: changes for watches that catch up", impl_->recent.size(), impl_->recent.bytes()}};
}

void SqliteStore::stop() {
  impl_->stop();
}

}  // namespace spillway::store
