// One watcher of the store's port and the watch of etcd that feeds it, over any number of streams: each continues where
// the last one ended, at another member. Messages are not trusted: versions of etcd in the field repeat events, leave
// some out, or go back in time. All keys are watched, not only ours: every revision of etcd has an event then, so that
// a gap shows, and every revision is reached. Thread: loop. Invariant: for its prefix the watcher gets etcd's history
// once, in order, no revision cut. Source: spec "etcd as the store", 4.
#pragma once

#include "base/rng.h"
#include "store/etcd/etcd_keys.h"
#include "store/etcd/etcd_metrics.h"
#include "store/etcd/etcd_wire.h"
#include "telemetry/log.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::store {

/// The key by which kube-apiserver and this store agree on compaction; without a prefix.
inline constexpr std::string_view kCompactionKey = "compact_rev_key";

/// The revision in the value of the compaction key; nullopt: it holds none.
std::optional<Revision> compaction_in(const Value& value);

class EtcdWatch final : public EtcdTransport::WatchReceiver, public std::enable_shared_from_this<EtcdWatch> {
 public:
  /// After that time without a message, the cluster's revision is read to see if the watch is behind.
  static constexpr Duration kQuietMax = seconds(10);
  static constexpr Duration kCatchUpMax = seconds(5);

  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_watch_delivered(Revision revision) = 0;
    /// The watch is over; the watcher was not notified yet.
    virtual void on_watch_over(EtcdWatch& watch, const Error& error) = 0;
    virtual void on_compaction_seen(Revision revision) = 0;
    /// The value; if this process wrote it, the same bytes in memory.
    virtual Value as_written(const std::string& key, Value value, Revision revision) = 0;
  };

  struct Wanted {
    std::string prefix;  // a prefix of the port's keys
    Revision after;
    Watcher& watcher;
    bool previous = false;  // changes carry the state before them
  };

  EtcdWatch(EtcdTransport& transport, const EtcdKeys& keys, EtcdMetrics& metrics, telemetry::Log log, Rng rng,
            Owner& owner, Wanted wanted);

  void begin();
  /// Ends the watch: no more events are delivered.
  void close();

  Revision delivered() const { return delivered_; }

  Watcher& watcher() const { return wanted_.watcher; }

  /// True if all changes of the key after `after`, up to and with `until`, have been delivered.
  bool has_shown(const std::string& key, Revision after, Revision until) const {
    return key.starts_with(wanted_.prefix) && wanted_.after <= after && delivered_ >= until;
  }

  void on_watch_message(EtcdWatchMessage message) override;
  void on_watch_broken(const EtcdFailure& why) override;

 private:
  void open();
  void resume();
  void take(std::vector<EtcdEvent> events);
  std::optional<Change> change_of(EtcdEvent& event);
  void on_gap(Revision next);
  void check_for_silence();
  void ask_whether_behind();
  void later(Duration time, void (EtcdWatch::*act)());

  EtcdTransport& transport_;
  const EtcdKeys& keys_;
  EtcdMetrics& metrics_;
  telemetry::Log log_;
  Rng rng_;
  Owner& owner_;
  Wanted wanted_;
  Revision delivered_;
  std::size_t member_;
  std::unique_ptr<EtcdTransport::WatchStream> stream_;
  std::vector<EtcdEvent> fragments_;
  std::size_t failures_ = 0;  // since the last message
  std::optional<Revision> gap_after_;
  Instant received_at_{};
  bool closed_ = false;
};

}  // namespace spillway::store
