// The store in an etcd cluster, which other programs may write, too. A write is one transaction of upstream's shape:
// compare the key's mod_revision, then put or delete, else read. A request that may have been carried out without an
// answer is repeated where that does no harm, and answered with 504 where the outcome cannot be found out.
// Thread: loop. Bounds: StoreLimits. Answers are held until the watches have delivered the revisions in them, at most
// kHeldMax. Source: spec "etcd as the store", 3 to 6; docs/adr/0016-etcd.md.
#pragma once

#include "base/alive.h"
#include "store/etcd/etcd_calls.h"
#include "store/etcd/etcd_keys.h"
#include "store/etcd/etcd_leases.h"
#include "store/etcd/etcd_metrics.h"
#include "store/etcd/etcd_watch.h"
#include "store/etcd/etcd_wire.h"
#include "store/store.h"
#include "telemetry/log.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::store {

/// The largest value that fits into a request of 1.5 MiB beside two keys and the frame around them.
inline constexpr std::size_t kEtcdValueBytesMax = 1'572'864 - 2 * 1024 - 512;

struct EtcdOptions {
  StoreLimits limits{.value_bytes_max = kEtcdValueBytesMax};
  std::string name;                  // in metrics and refusals, if it is one of several; empty: it is the main one
  std::string root = "/registry";    // the prefix of the port's keys
  std::string prefix = "/registry";  // prefix of the keys in etcd, in place of /registry
  /// Compaction as upstream agrees on it: of all API servers of one etcd one does it at a time.
  bool agrees_on_compaction = true;
  /// Changes carry the state before them (Change::previous), which costs etcd a read for each.
  bool carries_previous = false;
  Duration lease_reuse = EtcdLeases::kReuse;
  std::uint64_t seed = 0;
  telemetry::Log log;
  /// Must outlive the store; nullptr: nothing is counted.
  telemetry::Registry* metrics = nullptr;
};

class EtcdStore final : public Store, public EtcdWatch::Owner {
 public:
  static constexpr Duration kHeldMax = seconds(1);
  static constexpr Duration kCallMax = seconds(15);
  static constexpr Duration kBarrierMax = seconds(3);

  EtcdStore(std::unique_ptr<EtcdTransport> transport, Poster post, EtcdOptions options);
  ~EtcdStore() override;
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  void write(Write write, Completion<WriteResult> done) override;
  void range(Range range, Completion<RangeResult> done) override;
  WatchId watch(std::string prefix, Revision after, Watcher& watcher) override;
  void unwatch(WatchId id) override;
  void compact(Revision revision, Completion<Revision> done) override;
  void barrier(Completion<Revision> done) override;

  bool expires_keys() const override { return true; }

  bool is_shared() const override { return true; }

  std::optional<std::string> refusing() const override { return refusing_; }

  bool is_full() const override { return full_; }

  Revision revision() const override;

  Revision compacted() const override { return compacted_; }

 private:
  struct WriteJob;
  struct RangeJob;
  using Failure = EtcdFailure;

  struct Held {
    std::uint64_t id = 0;
    std::move_only_function<void()> act;
  };

  /// Answers later, on the loop.
  template <typename T>
  void complete(Result<T> result, Completion<T> done);
  void begin_write(const std::shared_ptr<WriteJob>& job);
  void try_write(std::shared_ptr<WriteJob> job);
  void on_txn(const std::shared_ptr<WriteJob>& job, EtcdTxnAnswer answer);
  void refuse(const std::shared_ptr<WriteJob>& job, const Failure& failure);
  void on_exists(const std::shared_ptr<WriteJob>& job);
  void on_not_committed(const std::shared_ptr<WriteJob>& job, std::optional<Entry> found, Revision present);
  Result<WriteResult> what_became_of(const WriteJob& job, WriteResult refused);
  void answer(const std::shared_ptr<WriteJob>& job, Result<WriteResult> result);
  void next_page(const std::shared_ptr<RangeJob>& job);
  void on_page(const std::shared_ptr<RangeJob>& job, EtcdRangeAnswer page);
  void learn_compacted(std::move_only_function<void()> then);
  void compact_now(Revision revision, Completion<Revision> done);
  void ask_barrier();

  Error failed(const Failure& failure);
  std::string called() const;
  void record_revision(Revision present);
  void hold(Revision until, std::move_only_function<void()> act);
  void release();

  void on_watch_delivered(Revision revision) override;

  void on_watch_over(EtcdWatch& watch, const Error& error) override;
  void on_compaction_seen(Revision revision) override;
  Value as_written(const std::string& key, Value value, Revision revision) override;

  std::unique_ptr<EtcdTransport> transport_;
  Poster post_;
  EtcdOptions options_;
  EtcdKeys keys_;
  EtcdMetrics metrics_;
  Rng rng_;
  EtcdCalls calls_;
  EtcdLeases leases_;
  Alive alive_;
  std::size_t pending_ = 0;
  std::size_t pending_bytes_ = 0;

  /// A write that has no answer yet.
  struct Written {
    Value value;
    Revision seen;  // the revision in which a watch has shown these bytes; 0: none yet
  };

  std::multimap<std::string, Written> written_;
  std::map<WatchId, std::shared_ptr<EtcdWatch>> watches_;
  WatchId last_watch_ = 0;
  std::multimap<Revision, Held> held_;
  std::uint64_t last_held_ = 0;
  Revision seen_;  // the newest revision that the cluster has shown
  Revision compacted_;
  std::int64_t compactions_ = 0;  // upstream's logical time
  std::optional<std::string> refusing_;
  bool full_ = false;
  std::vector<Completion<Revision>> barriers_;  // wait for the next question
  bool barrier_asked_ = false;
};

}  // namespace spillway::store
