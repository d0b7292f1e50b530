// Local copies of watched objects, by namespace/name, with listeners; kept by an informer. Thread: loop. Iteration is
// in key order, hence deterministic.
#pragma once

#include "base/time.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::client {

/// "namespace/name", or "name" for cluster-scoped objects. Orders as the API server lists.
using ObjectKey = std::string;

template <typename T>
class ObjectCache {
 public:
  using Ptr = std::shared_ptr<const T>;

  struct Listener {
    /// before is null for an addition, after is null for a deletion.
    std::function<void(const Ptr& before, const Ptr& after, Now now)> on_change;
  };

  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  Ptr find(const ObjectKey& key) const {
    const auto it = objects_.find(key);
    return it == objects_.end() ? nullptr : it->second;
  }

  const std::map<ObjectKey, Ptr, std::less<>>& all() const { return objects_; }

  std::size_t size() const { return objects_.size(); }

  void put(const ObjectKey& key, Ptr object, Now now) {
    Ptr& slot = objects_[key];
    const Ptr before = std::exchange(slot, std::move(object));
    const Ptr after = slot;
    notify(before, after, now);
  }

  void erase(const ObjectKey& key, Now now) {
    const auto it = objects_.find(key);
    if (it == objects_.end()) return;
    const Ptr before = it->second;
    objects_.erase(it);
    notify(before, nullptr, now);
  }

 private:
  void notify(const Ptr& before, const Ptr& after, Now now) const {
    for (const Listener& listener : listeners_) listener.on_change(before, after, now);
  }

  std::map<ObjectKey, Ptr, std::less<>> objects_;
  std::vector<Listener> listeners_;
};

}  // namespace spillway::client
