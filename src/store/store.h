// The port to a revisioned key-value store: every committed write gets the next number of one counter, watchers see
// every write exactly once and in that order, older states stay readable until they are compacted. Completion-based, so
// that a local database completes from its own thread and etcd from the network. Thread: loop. All completions and
// changes arrive on the loop; the changes of a write arrive before its completion. Source: spec "API server
// contract", 22.1; etcd v3 API.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::store {

/// Position in the store's history; 0 is before the first write.
class Revision {
 public:
  constexpr Revision() = default;

  constexpr explicit Revision(std::uint64_t number) : number_(number) {}

  constexpr std::uint64_t number() const { return number_; }

  friend constexpr auto operator<=>(const Revision&, const Revision&) = default;

 private:
  std::uint64_t number_ = 0;
};

/// Immutable bytes shared by all readers; null means "no value".
using Value = std::shared_ptr<const std::string>;

/// The state of one key at some revision.
struct Entry {
  std::string key;
  Value value;
  Revision create_revision;
  Revision mod_revision;
  std::uint64_t version = 0;  // 1 after creation
};

/// One committed write.
struct Change {
  std::string key;
  Revision revision;
  Revision create_revision;
  Value value;     // null: deleted
  Value previous;  // null: created, or a store in etcd, which does not report it
};

/// put (value set) or delete (value null) of one key, if the condition holds.
struct Write {
  std::string key;
  Value value;
  /// nullopt: unconditional. Revision 0: the key must not exist. Else its mod_revision must be this.
  std::optional<Revision> expected;
  /// Leads to a deletion: taken as deletions are when space is short.
  bool frees = false;
  /// For a put, 1 s or more: the key expires some time after that, unless it is written again; one revision may delete
  /// several keys so. Stores that do not expire keys (expires_keys()) ignore it.
  std::optional<Duration> ttl = {};
};

struct WriteResult {
  bool committed = false;
  /// The revision of the commit; when not committed, that of the store. Deleting an absent key unconditionally commits
  /// nothing.
  Revision revision;
  /// Not committed: the present key, nullopt if absent. Committed delete: the state before it.
  std::optional<Entry> current;
};

/// A state of the past is exact. Of keys without history (SqliteOptions::without_history) it may be unknown: such a
/// range is refused with kExpired, unless `known_only`.
struct Range {
  std::string prefix;
  std::string start_after;     // exclusive; empty: from the beginning
  std::size_t limit = 0;       // 0: no limit
  std::optional<Revision> at;  // nullopt: now
  bool known_only = false;     // keys whose state then is unknown are left out; a watch after `at` delivers theirs
};

struct RangeResult {
  std::vector<Entry> entries;  // by key, bytewise
  Revision revision;           // the state shown
  std::size_t remaining = 0;   // entries beyond the limit
};

class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Changes of one commit or more, in revision order, without gaps for the watched prefix.
  virtual void on_changes(const std::vector<Change>& changes) = 0;

  /// Progress: all changes up to this revision that concern the watch were delivered. Called where others write keys
  /// that it does not show.
  virtual void on_reached(Revision) {}

  /// The watch is over: kExpired if history was compacted, kServiceUnavailable if the store is gone.
  virtual void on_watch_end(const Error& error) = 0;
};

using WatchId = std::uint64_t;

template <typename T>
using Completion = std::move_only_function<void(Result<T>)>;

class Store {
 public:
  virtual ~Store() = default;

  /// kServiceUnavailable: not written (disk full, no quorum, stopped). kRequestEntityTooLarge: over the store's limit.
  /// kTooManyRequests: not written, too many operations are waiting. kBadRequest: empty key.
  virtual void write(Write write, Completion<WriteResult> done) = 0;
  /// kExpired: `at` is compacted. kTimeout: `at` lies in the future. kTooManyRequests: as for write().
  /// Every change up to the revision of the answer has been delivered before the answer.
  virtual void range(Range range, Completion<RangeResult> done) = 0;
  /// Delivers changes with revision > `after`. The watcher must outlive unwatch(). History already gone:
  /// on_watch_end(kExpired). The past of a key without history is its last change alone, without `previous`, and every
  /// deletion.
  virtual WatchId watch(std::string prefix, Revision after, Watcher& watcher) = 0;
  virtual void unwatch(WatchId id) = 0;
  /// Forgets states that were overwritten before `revision`; states from `revision` on stay readable. Answers
  /// compacted(), which is `revision` or already beyond it. kTimeout: `revision` lies in the future.
  virtual void compact(Revision revision, Completion<Revision> done) = 0;

  /// The oldest revision behind which at most `changes_max` changes are kept, of a store that is at `head`. May
  /// complete inside the call.
  virtual void oldest_within(Revision head, std::uint64_t changes_max, Completion<Revision> done);

  /// The revision up to which every write has been delivered that was acknowledged before the call, through this store
  /// or another one of the same keys. kTimeout: it has not arrived.
  virtual void barrier(Completion<Revision> done);

  /// Write::ttl is heeded.
  virtual bool expires_keys() const { return false; }

  /// True if other processes write the same keys: delivered changes may be behind writes that those processes
  /// acknowledged.
  virtual bool is_shared() const { return false; }

  /// The reason why the store refuses writes for now, for people to read; nullopt: it takes them. A full disk still
  /// takes deletions and heartbeats.
  virtual std::optional<std::string> refusing() const { return std::nullopt; }

  /// True if the disk is full: all puts are refused until space is freed.
  virtual bool is_full() const { return false; }

  /// The last revision whose changes have been delivered.
  virtual Revision revision() const = 0;
  virtual Revision compacted() const = 0;
};

/// The limits beyond which a store refuses. Source: etcd's default request limit, which objects must fit to be movable.
struct StoreLimits {
  std::size_t key_bytes_max = 1024;
  std::size_t value_bytes_max = std::size_t{1536} * 1024;
  std::size_t pending_operations_max = 65'536;
  std::size_t pending_bytes_max = std::size_t{256} * 1024 * 1024;  // keys and values of writes that wait
};

/// The error for a write that no store takes, nullopt if it may be queued.
std::optional<Error> refuse_write(const Write& write, const StoreLimits& limits);

/// Brings results back onto the loop: runs the function there, later. Callable from any thread.
using Poster = std::function<void(std::move_only_function<void()>)>;

}  // namespace spillway::store
