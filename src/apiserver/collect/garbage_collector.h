// Garbage collection by owner references: objects whose owners are all gone are deleted; foreground deletions take the
// dependents first; orphaning deletions strip the references. Decides from the cache, acts through Remover and Writer.
// Thread: loop. Bounds: kCollectorWritesMax writes in flight; the rest waits as a set of keys.
// Source: Kubernetes docs, "Garbage Collection"; spec "API server contract", 11.5, 11.6.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <compare>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver {

class GarbageCollector final : public Collector {
 public:
  GarbageCollector(Core& core, Writer& writer, Remover& remover);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  /// An object by resource (index into the caches) and key.
  struct Ref {
    std::size_t resource = 0;
    std::string key;

    friend auto operator<=>(const Ref&, const Ref&) = default;
  };

  enum class OwnerState { kPresent, kAbsent, kWaitsForDependents };

  /// Is the cache of another store as new as the object itself, for its owners and dependents?
  enum class Elsewhere { kMayBeBehind, kHasCaughtUp };

  /// Owner references of one object, by what became of the owner.
  struct Owners {
    std::vector<std::string> solid;
    std::vector<std::string> dangling;
    std::vector<std::string> waiting;
  };

  OwnerState state_of(const OwnerLink& link, const StoredObject& dependent) const;
  Owners classify(const StoredObject& object) const;

  const ResourceCache& cache_of(const Ref& ref) const { return *core_.cache.all()[ref.resource]; }

  void link(const Ref& ref, const StoredObject& object);
  void unlink(const Ref& ref, const StoredObject& object);
  void mark(const Ref& ref, const StoredObject& object);
  void process(const Ref& ref, Elsewhere elsewhere);
  void process_deletion(const Ref& ref, const ObjectPtr& owner, Elsewhere elsewhere);
  std::vector<Origin*> origins_of_dangling(const Ref& ref, const StoredObject& object) const;
  std::vector<Origin*> origins_but(const Origin& own) const;
  bool is_reading() const;
  void requeue(const Ref& ref, const ObjectPtr& object, const std::vector<Origin*>& behind);
  void remove(const Ref& ref, const ObjectPtr& object, Propagation propagation);
  void strip_owners(const Ref& ref, const ObjectPtr& object, std::vector<std::string> uids);
  void unblock_owners(const Ref& ref, const ObjectPtr& object);
  void drop_finalizer(const Ref& ref, const ObjectPtr& object, std::string_view finalizer);
  void update(const Ref& ref, const ObjectPtr& object, std::function<void(api::Json&)> change);
  void finished(const Ref& ref, bool done);
  void retry(const Ref& ref);

  Core& core_;
  Writer& writer_;
  Remover& remover_;
  std::map<std::string, std::set<Ref>, std::less<>> dependents_;  // by uid of the owner
  std::set<Ref> dirty_;
  std::set<Ref> busy_;
};

}  // namespace spillway::apiserver
