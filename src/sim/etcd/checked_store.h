// A store in a simulated etcd, checked against etcd's own history: each watcher gets the writes below its prefix once,
// in order, no revision cut; a read returns the state of its revision; a committed write is in the history, at its
// revision; a barrier is not behind any acknowledged write. Thread: one. In front of another store, which it does not
// change. Source: spec "etcd as the store", 4.8, 5.1.
#pragma once

#include "sim/etcd/etcd_history.h"
#include "sim/properties/property.h"
#include "store/store.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::sim {

/// The newest write that any server has acknowledged to a client.
struct Acknowledged {
  store::Revision revision;
};

class CheckedStore final : public store::Store {
 public:
  using Violate = std::function<void(const Violated&, std::string)>;

  /// `name`: the server's, for violations. The store must use etcd's keys.
  CheckedStore(std::unique_ptr<store::Store> inner, const EtcdHistory& history, Acknowledged& acknowledged,
               std::string name, Violate violate);
  ~CheckedStore() override;
  CheckedStore(const CheckedStore&) = delete;
  CheckedStore& operator=(const CheckedStore&) = delete;

  void write(store::Write write, store::Completion<store::WriteResult> done) override;
  void range(store::Range range, store::Completion<store::RangeResult> done) override;
  store::WatchId watch(std::string prefix, store::Revision after, store::Watcher& watcher) override;
  void unwatch(store::WatchId id) override;
  void barrier(store::Completion<store::Revision> done) override;

  void compact(store::Revision revision, store::Completion<store::Revision> done) override {
    inner_->compact(revision, std::move(done));
  }

  bool expires_keys() const override { return inner_->expires_keys(); }

  bool is_shared() const override { return inner_->is_shared(); }

  std::optional<std::string> refusing() const override { return inner_->refusing(); }

  bool is_full() const override { return inner_->is_full(); }

  store::Revision revision() const override { return inner_->revision(); }

  store::Revision compacted() const override { return inner_->compacted(); }

 private:
  class CheckedWatcher;

  void violate(const Violated& what, std::string_view text) const;
  void check_write(const std::string& key, const store::Value& value, store::Revision before,
                   const store::WriteResult& result) const;
  void check_range(const store::Range& asked, const store::RangeResult& result) const;

  std::unique_ptr<store::Store> inner_;
  const EtcdHistory& history_;
  Acknowledged& acknowledged_;
  std::string name_;
  Violate violate_;
  std::map<store::WatchId, std::unique_ptr<CheckedWatcher>> watches_;
};

}  // namespace spillway::sim
