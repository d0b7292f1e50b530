// An etcd whose members lose answers, repeat or leave out events, fall behind and compact by order of a test. One
// history; time stands still until advance(). Thread: the test's.
#pragma once

#include "store/etcd/etcd_wire.h"
#include "store/test_loop.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::store {

class FakeEtcd {
 public:
  enum class Fault { kNone, kNotReached, kRequestLost, kAnswerLost, kNoSpace };

  struct Key {
    Value value;
    Revision create_revision;
    Revision mod_revision;
    std::uint64_t version = 0;
  };

  /// The faults of one member's watches.
  struct Member {
    std::set<std::uint64_t> omits;  // revisions
    bool repeats = false;           // each message repeats the last one
    bool silent = false;            // watches get nothing, for now
    std::size_t fragment = 0;       // events of a message; 0: all
  };

  explicit FakeEtcd(TestLoop& loop, std::size_t members = 2) : members(members), loop_(loop) {}

  std::unique_ptr<EtcdTransport> connect();

  /// Another client writes: all keys in one revision. A null value deletes.
  Revision write(const std::vector<std::pair<std::string, Value>>& puts) {
    revision_ = Revision(revision_.number() + 1);
    for (const auto& [key, value] : puts) apply(key, value);
    push();
    return revision_;
  }

  void compact(Revision revision) { compacted_ = std::max(compacted_, revision); }

  /// All streams end, as when a member ends.
  void break_watches();
  /// Delivers the events that silent members have kept back.
  void push();

  void advance(Duration time) {
    now_ += time;
    while (!timers_.empty() && timers_.begin()->first <= now_) {
      auto task = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      task();
      loop_.run_posted();
    }
  }

  Revision revision() const { return revision_; }

  /// Expires the lease: its keys are deleted in one revision.
  void end_lease(std::int64_t lease);

  struct Granted {
    Duration life{};
    std::set<std::string> keys;
    bool ended = false;
  };

  std::map<std::int64_t, Granted> leases;  // by id

  /// Counts how often a key was written, by the history.
  std::size_t writes_of(const std::string& key) const {
    std::size_t count = 0;
    for (const EtcdEvent& event : history_) count += event.key == key ? 1 : 0;
    return count;
  }

  std::vector<Member> members;
  std::deque<Fault> faults;        // faults of the next transactions
  std::function<void()> then;      // after a transaction whose answer is lost
  std::size_t ranges = 0;          // number of range requests
  std::size_t watches = 0;         // begun
  std::size_t compactions = 0;     // number of compaction requests
  std::vector<std::size_t> asked;  // members, by transaction

 private:
  class Client;
  class Stream;

  void apply(const std::string& key, const Value& value);
  EtcdTxnAnswer run(const EtcdTxn& txn);
  std::expected<EtcdRangeAnswer, EtcdFailure> read(const EtcdRange& range) const;

  const Key* find(const std::map<std::string, Key>& keys, const std::string& key) const {
    const auto found = keys.find(key);
    return found == keys.end() ? nullptr : &found->second;
  }

  TestLoop& loop_;
  Instant now_{};
  std::multimap<Instant, std::move_only_function<void()>> timers_;
  std::map<std::string, Key> keys_;
  std::map<std::uint64_t, std::map<std::string, Key>> states_;  // by revision
  std::vector<EtcdEvent> history_;
  Revision revision_ = Revision(1);
  Revision compacted_;
  std::set<Stream*> streams_;
};

}  // namespace spillway::store
