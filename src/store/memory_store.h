// The store in memory: every version of every key since the last compaction. The simulator's store, and the reference
// in tests; `spillway up` and `spillway apiserver` always have a database.
// Operations queue up and run in the order of the calls, in one posted task: first the writes of the queue are applied,
// then watchers get their changes, then the completions run. So nothing runs inside a call, a burst of writes costs one
// task (like the group commit of a database), and the same calls give the same order of callbacks. What cannot be
// queued is refused by a task of its own.
// Thread: loop. Invariant: at every key the versions are in revision order, and only the first may be older than
// compacted(). The store must not be destroyed inside one of its callbacks; completions that are pending at its
// destruction never run.
#pragma once

#include "base/alive.h"
#include "base/indexed_map.h"
#include "store/store.h"
#include "store/watch_registry.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace spillway::store {

class MemoryStore final : public Store {
 public:
  /// `post` gets back onto the loop; in the simulator it schedules at the present virtual time. Of the past at least
  /// the newest `history_revisions_max` revisions are kept, and not many more.
  explicit MemoryStore(Poster post, StoreLimits limits = {}, std::uint64_t history_revisions_max = 50'000);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  void write(Write write, Completion<WriteResult> done) override;
  void range(Range range, Completion<RangeResult> done) override;
  WatchId watch(std::string prefix, Revision after, Watcher& watcher) override;
  void unwatch(WatchId id) override;
  void compact(Revision revision, Completion<Revision> done) override;

  Revision revision() const override { return delivered_; }

  Revision compacted() const override { return compacted_; }

 private:
  /// State of a key from `mod_revision` on; a null value is a deletion.
  struct Version {
    Revision mod_revision;
    Revision create_revision;
    std::uint64_t version;
    Value value;
  };

  using Keys = IndexedMap<std::vector<Version>>;

  template <typename Request, typename Answer>
  struct Operation {
    Request request;
    Completion<Answer> done;
    Result<Answer> answer{};
  };

  using WriteOperation = Operation<Write, WriteResult>;
  using RangeOperation = Operation<Range, RangeResult>;
  using CompactOperation = Operation<Revision, Revision>;
  using Pending = std::variant<WriteOperation, RangeOperation, CompactOperation>;

  template <typename Request, typename Answer>
  void enqueue(Request request, Completion<Answer> done, std::size_t bytes);
  template <typename Answer>
  void refuse(Error error, Completion<Answer> done);
  void schedule();
  void run_pending();
  void start_new_watches();
  void apply(WriteOperation& operation, std::vector<Change>& changes);
  void apply(RangeOperation& operation, std::vector<Change>& changes);
  void apply(CompactOperation& operation, std::vector<Change>& changes);
  WriteResult commit(Write write, std::vector<Change>& changes);
  Result<RangeResult> read(const Range& range) const;
  void forget_before(Revision revision);
  void bound_history();
  Change change_at(Revision revision) const;
  static const Version* version_at(const std::vector<Version>& versions, Revision revision);

  Poster post_;
  StoreLimits limits_;
  std::uint64_t history_revisions_max_;
  Alive alive_;
  bool scheduled_ = false;
  std::vector<Pending> pending_;
  std::size_t pending_bytes_ = 0;
  Keys keys_;
  std::deque<Keys::iterator> log_;  // the key written by revision compacted_ + 1, + 2, …
  Revision head_;
  Revision delivered_;
  Revision compacted_;
  WatchRegistry watches_;
  std::vector<WatchId> new_watches_;
};

}  // namespace spillway::store
