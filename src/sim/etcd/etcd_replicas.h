// The agreement between the members of a simulated etcd: their states and connections, the leader, and the part of the
// common log that each has applied. A commit needs a leader and a majority. An entry that was proposed to a leader that
// is lost meanwhile is lost as well, or committed by the next leader: its proposer gets no answer. Thread: one. All
// randomness comes from the given stream. Source: the Raft paper, 5 and 8; etcd, "linearizable reads".
#pragma once

#include "base/rng.h"
#include "sim/time/virtual_time.h"
#include "store/store.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace spillway::sim {

/// Delays within the cluster; each is drawn up to its maximum.
struct EtcdPace {
  Duration commit_max = milliseconds(2);
  Duration lag_max = milliseconds(2);  // from the commit until a replica has applied it
  std::uint32_t late_ppm = 0;          // entries that a replica applies up to late_max after the commit
  Duration late_max = seconds(2);

  friend bool operator==(const EtcdPace&, const EtcdPace&) = default;
};

class EtcdReplicas {
 public:
  /// The part of the history that a member shows.
  struct Applied {
    store::Revision revision{1};
    store::Revision compacted;
  };

  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_applied(std::size_t member) = 0;
    virtual void on_stopped(std::size_t member) = 0;
    virtual void on_leader_lost() = 0;
    virtual void on_leader_found() = 0;
  };

  EtcdReplicas(VirtualTime& time, Rng rng, std::size_t count, Listener& listener);

  void set_pace(const EtcdPace& pace) { pace_ = pace; }

  std::size_t count() const { return members_.size(); }

  bool is_up(std::size_t member) const { return members_[member].up; }

  bool has_leader() const { return leader_.has_value(); }

  bool knows_leader(std::size_t member) const { return leader_.has_value() && is_connected(member); }

  const Applied& applied(std::size_t member) const { return log_[members_[member].applied]; }

  /// Changes with each end of a leader and with each start of the member: requests of an earlier term are not answered.
  std::uint64_t term() const { return term_; }

  /// Calls `commit` once a majority has it, and `applied` once this member has applied it. Waits for a leader. `commit`
  /// returns the revision of the history then.
  void propose(std::size_t member, std::move_only_function<Applied()> commit, std::move_only_function<void()> applied);
  /// The leader's own doing, or another client's: agreed on at once.
  void write(std::move_only_function<Applied()> commit);
  /// Runs `applied` once this member has applied all that was committed when its leader got the question.
  void read_index(std::size_t member, std::move_only_function<void()> applied);

  void stop(std::size_t member);
  void start(std::size_t member);
  /// Cuts a member off from the others; clients still reach it.
  void part(std::size_t member);
  void rejoin(std::size_t member);
  /// The leader steps down; another one may follow it.
  void depose();

 private:
  struct Member {
    bool up = true;
    bool parted = false;
    std::size_t applied = 0;  // entry of the log
    Instant next_apply{};
    std::multimap<std::size_t, std::move_only_function<void()>> waiting;  // by entry
  };

  bool is_connected(std::size_t member) const {
    return members_[member].up && (!members_[member].parted || members_.size() == 1);
  }

  bool has_majority() const;
  Duration draw(Duration most);
  void lose_leader();
  void check_leader();
  void elect();
  void commit(std::size_t member, std::move_only_function<Applied()> commit, std::move_only_function<void()> applied);
  void ship(std::size_t member, std::size_t entry);
  void apply(std::size_t member, std::size_t entry);
  void wait_applied(std::size_t member, std::size_t entry, std::move_only_function<void()> task);

  VirtualTime& time_;
  Rng rng_;
  EtcdPace pace_;
  Listener& listener_;
  std::vector<Member> members_;
  std::vector<Applied> log_{Applied{}};
  std::optional<std::size_t> leader_ = 0;
  std::uint64_t term_ = 1;
  bool electing_ = false;
  std::vector<std::move_only_function<void()>> survivors_;  // entries that the next leader has in its log
  std::vector<std::move_only_function<void()>> waiting_;    // for a leader
};

}  // namespace spillway::sim
