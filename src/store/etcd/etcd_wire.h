// Requests to an etcd cluster and its answers, and the port to the client that speaks to its members.
// Thread: loop. Source: etcd v3 API; spec "etcd as the store", 3, 4.
#pragma once

#include "base/time.h"
#include "store/store.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::store {

/// A refusal of a member, or of the way to it: gRPC's code and message.
struct EtcdFailure {
  int code = 0;
  std::string message;
};

struct EtcdRange {
  std::string key;
  std::string range_end;  // exclusive; empty: the key alone; one zero byte: to the end of all keys
  std::size_t limit = 0;  // 0: none
  Revision at;            // 0: now
  bool count_only = false;
};

struct EtcdRangeAnswer {
  Revision present;  // the cluster's revision, not that of the state shown
  std::vector<Entry> entries;
  std::size_t count = 0;  // number of keys from EtcdRange::key on, whatever the limit
};

/// A put or a deletion of one key, if a comparison holds.
struct EtcdTxn {
  enum class Compare { kNothing, kModRevision, kVersion };

  std::string key;
  Value put;  // null: delete
  Compare compare = Compare::kNothing;
  std::uint64_t compared = 0;   // the value that the comparison requires
  bool read_otherwise = false;  // true: if the comparison fails, the answer has the key's present state
  std::int64_t lease = 0;       // the lease that ends the put key; 0: none
};

struct EtcdLease {
  std::int64_t id = 0;
  Duration life{};  // as granted, which may be longer than requested
};

struct EtcdTxnAnswer {
  Revision present;
  bool succeeded = false;      // the comparison held
  std::size_t deleted = 0;     // keys
  std::optional<Entry> entry;  // state of the key before its deletion, or at present if the comparison failed
};

struct EtcdEvent {
  std::string key;
  Value value;  // null: deleted
  Revision revision;
  Revision create_revision;  // for a deletion: 0 unless the state before was requested
  Value previous;            // only if requested
};

struct EtcdWatchMessage {
  bool canceled = false;
  Revision compacted;     // canceled for that; else 0
  std::string reason;     // the error of a canceled watch; may be empty
  bool fragment = false;  // more events of the same revision follow
  std::vector<EtcdEvent> events;
};

class EtcdTransport {
 public:
  template <typename Answer>
  using Done = std::move_only_function<void(std::expected<Answer, EtcdFailure>)>;

  class WatchReceiver {
   public:
    virtual ~WatchReceiver() = default;
    virtual void on_watch_message(EtcdWatchMessage message) = 0;
    /// The stream has ended: no further calls follow.
    virtual void on_watch_broken(const EtcdFailure& why) = 0;
  };

  /// One watch at a member; destroying the object ends it, without further calls.
  class WatchStream {
   public:
    virtual ~WatchStream() = default;
  };

  virtual ~EtcdTransport() = default;

  /// The number of members; a member is identified by its index.
  virtual std::size_t members() const = 0;

  /// Answers arrive later, on the loop; none after the transport is destroyed.
  virtual void range(std::size_t member, EtcdRange range, Duration at_most, Done<EtcdRangeAnswer> done) = 0;
  virtual void txn(std::size_t member, EtcdTxn txn, Duration at_most, Done<EtcdTxnAnswer> done) = 0;
  /// Returns the requested revision.
  virtual void compact(std::size_t member, Revision revision, Duration at_most, Done<Revision> done) = 0;
  /// Whole seconds.
  virtual void grant(std::size_t member, Duration life, Duration at_most, Done<EtcdLease> done) = 0;
  /// Watches all keys, from that revision on. `previous`: each event carries the state before it, which costs etcd a
  /// read.
  virtual std::unique_ptr<WatchStream> watch(std::size_t member, Revision from, bool previous,
                                             WatchReceiver& receiver) = 0;

  virtual Instant now() const = 0;
  /// Runs `task` on the loop after `time`, unless the transport is destroyed.
  virtual void after(Duration time, std::move_only_function<void()> task) = 0;
};

}  // namespace spillway::store
