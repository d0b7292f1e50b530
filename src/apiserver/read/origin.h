// A store that objects live in, and how far the cache has followed its watch. There is the main one, and for some
// resources there may be stores of their own: revisions of two stores have no order, so a revision or a barrier is
// always requested from the origin of a resource. Thread: loop. Source: docs/adr/0029-stores-of-resources.md; spec
// "etcd as the store", 6.3.
#pragma once

#include "base/error.h"
#include "store/store.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class WatchCache;

/// A store for some of the resources. It must outlive the server.
struct SeparateStore {
  store::Store* store = nullptr;
  std::string name;                   // in health checks, metrics and refusals; not empty
  std::vector<std::string> storages;  // Resource::storage of the resources in it
};

class Origin final : public store::Watcher {
 public:
  Origin(WatchCache& cache, store::Store& store, std::string name, std::size_t index)
      : cache_(cache), store_(store), name_(std::move(name)), index_(index) {}

  store::Store& store() const { return store_; }

  /// Name of the store; empty: the main one.
  const std::string& name() const { return name_; }

  /// The name in log lines.
  std::string_view label() const { return name_.empty() ? "main" : std::string_view(name_); }

  /// Position in WatchCache::origins(); 0: the main one.
  std::size_t index() const { return index_; }

  bool is_main() const { return index_ == 0; }

  /// The cache holds all changes up to this revision of the store.
  store::Revision revision() const { return revision_; }

  /// The store's barrier. kServiceUnavailable: the cache does not follow the store now, because history is missing.
  void barrier(store::Completion<store::Revision> done);

  void on_changes(const std::vector<store::Change>& changes) override;
  void on_reached(store::Revision revision) override;
  void on_watch_end(const Error& error) override;

 private:
  friend class WatchCache;

  WatchCache& cache_;
  store::Store& store_;
  std::string name_;
  std::size_t index_;
  store::Revision revision_;
  bool is_followed_ = false;
};

/// Completes once the barriers of all of them have, with the first error.
void barrier_of_each(const std::vector<Origin*>& origins, std::move_only_function<void(Outcome)> done);

}  // namespace spillway::apiserver
