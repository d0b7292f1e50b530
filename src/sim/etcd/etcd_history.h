// The history that an etcd cluster has agreed on: every key at every revision since the last compaction, and the events
// that led there. The state machine of SimEtcd; a replica shows it up to the revision that it has applied. Thread: one.
// Invariant: revisions are those of etcd: the first write gets 2. Source: etcd v3 API; spec "etcd as the store", 3.
#pragma once

#include "store/etcd/etcd_wire.h"
#include "store/store.h"

#include <cstddef>
#include <expected>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::sim {

class EtcdHistory {
 public:
  /// A change of one key by one revision; a null value deletes it.
  using Put = std::pair<std::string, store::Value>;

  store::Revision revision() const { return revision_; }

  store::Revision compacted() const { return compacted_; }

  /// Keys and values of every state that is kept.
  std::size_t bytes() const { return bytes_; }

  /// Compares, then executes the matching branch. Deleting a missing key makes no revision.
  store::EtcdTxnAnswer run(const store::EtcdTxn& txn);
  /// Writes all changes in one revision; deletions of missing keys are left out.
  void write(const std::vector<Put>& puts);
  /// The state at `range.at`, or else at `present`; both at most revision(). The failure has etcd's code and words.
  std::expected<store::EtcdRangeAnswer, store::EtcdFailure> read(const store::EtcdRange& range,
                                                                 store::Revision present) const;
  void compact(store::Revision revision);

  /// The events of the revisions after `after` up to `last`, each with the state before it. No event is ever forgotten.
  std::span<const store::EtcdEvent> events(store::Revision after, store::Revision last) const;

 private:
  struct State {
    store::Value value;  // null: deleted
    store::Revision created;
    store::Revision modified;
    std::uint64_t version = 0;
  };

  const State* find(const std::string& key) const;
  void put(const std::string& key, store::Value value);

  std::map<std::string, std::vector<State>> keys_;  // oldest state first
  std::vector<store::EtcdEvent> events_;
  store::Revision revision_{1};
  store::Revision compacted_;
  std::size_t bytes_ = 0;
};

}  // namespace spillway::sim
