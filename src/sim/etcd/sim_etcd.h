// An etcd cluster on virtual time, behind the port that gRPC implements for the real one: members that lag, stop, are
// cut off, lose their leader in the middle of a write, answer late or not at all; leases, compaction, a quota; and, if
// configured, the misbehaviour of versions in the field. Thread: one. All randomness is drawn from the given stream.
// Source: spec "etcd as the store", 3, 4, 9; texts of etcd 3.4 to 3.6.
#pragma once

#include "base/rng.h"
#include "sim/etcd/etcd_history.h"
#include "sim/etcd/etcd_replicas.h"
#include "sim/time/virtual_time.h"
#include "store/etcd/etcd_wire.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

namespace spillway::sim {

struct EtcdFaults {
  EtcdPace pace;
  Duration latency_max = milliseconds(1);
  std::uint32_t slow_ppm = 0;  // requests and answers that take up to slow_max; beyond their deadline they are lost
  Duration slow_max = seconds(10);
  std::uint32_t lost_ppm = 0;      // requests or answers that never arrive
  std::uint32_t fragment_ppm = 0;  // messages of watches that are split into one event each
  // Errors that versions of etcd have made in messages of watches.
  std::uint32_t repeat_ppm = 0;          // begins with the event before (etcd#15271)
  std::uint32_t gap_ppm = 0;             // a watch leaves out its first revision (etcd#17529, #18089)
  std::uint32_t early_progress_ppm = 0;  // an empty message precedes an event (etcd#15220)
  bool future_shows_past = false;        // a watch from a future revision begins with earlier events (etcd#20221)

  friend bool operator==(const EtcdFaults&, const EtcdFaults&) = default;
};

struct SimEtcdOptions {
  std::size_t replicas = 1;
  std::size_t quota_bytes = std::size_t{2} * 1024 * 1024 * 1024;
  EtcdFaults faults;
};

class SimEtcd final : private EtcdReplicas::Listener {
 public:
  /// etcd's own limit for a request, and the time after which it gives one up.
  static constexpr std::size_t kRequestBytesMax = 1'572'864;
  static constexpr Duration kGivesUpAfter = seconds(7);
  static constexpr Duration kNoLeaderAfter = milliseconds(3'300);
  static constexpr Duration kKeepalive = seconds(15);

  /// Events of one revision, as soon as it is committed.
  using Observer = std::function<void(std::span<const store::EtcdEvent>)>;

  SimEtcd(VirtualTime& time, Rng rng, SimEtcdOptions options);
  ~SimEtcd() override;
  SimEtcd(const SimEtcd&) = delete;
  SimEtcd& operator=(const SimEtcd&) = delete;

  /// `client`: its name for cut_off(). The cluster must outlive the transport.
  std::unique_ptr<store::EtcdTransport> connect(std::string client);

  void set_faults(const EtcdFaults& faults);

  void observe(Observer observer) { observer_ = std::move(observer); }

  const EtcdHistory& history() const { return history_; }

  EtcdReplicas& replicas() { return replicas_; }

  /// Messages between this client and all members are lost; its watches are silent until it notices.
  void cut_off(const std::string& client);

  void reach_again(const std::string& client) { cut_off_.erase(client); }

  /// Another client writes: all keys in one revision. Needs no leader.
  void write(const std::vector<EtcdHistory::Put>& puts);
  void compact(store::Revision revision);

  bool is_full() const { return full_; }

  /// Ends the alarm about space, as an operator does after freeing some.
  void disarm() { full_ = false; }

 private:
  class Client;
  class Stream;
  struct Call;

  struct Granted {
    Duration life{};
    Instant ends{};
    std::set<std::string> keys;
  };

  // EtcdReplicas::Listener
  void on_applied(std::size_t member) override;
  void on_stopped(std::size_t member) override;
  void on_leader_lost() override;
  void on_leader_found() override;

  Duration delay();
  bool is_lost(const std::string& client);
  void send(const std::shared_ptr<Call>& call);
  void arrive(const std::shared_ptr<Call>& call);
  void read(const std::shared_ptr<Call>& call);
  /// Makes a change of the history an entry of the log.
  EtcdReplicas::Applied committed(store::Revision before);
  void run(Call& call);
  void run_txn(Call& call);
  void run_compact(Call& call);
  void run_grant(Call& call);
  void attach(const std::string& key, std::int64_t lease);
  void check_lease(std::int64_t lease);
  void end_lease(std::int64_t lease);
  bool has_room(std::size_t bytes);
  void reply(const std::shared_ptr<Call>& call);

  VirtualTime& time_;
  Rng rng_;
  SimEtcdOptions options_;
  EtcdHistory history_;
  EtcdReplicas replicas_;
  Observer observer_;
  std::map<std::uint64_t, std::weak_ptr<Call>> open_;  // arrived and not answered, by number
  std::map<std::uint64_t, Stream*> streams_;           // by number
  std::uint64_t last_number_ = 0;
  std::set<std::string> cut_off_;
  std::map<std::int64_t, Granted> leases_;
  std::map<std::string, std::int64_t> lease_of_;  // by key
  std::int64_t last_lease_ = 0;
  bool full_ = false;
};

}  // namespace spillway::sim
