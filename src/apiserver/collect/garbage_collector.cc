#include "apiserver/collect/garbage_collector.h"

#include "api/object/kind_id.h"
#include "apiserver/collect/bootstrap.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr Duration kGarbageRetry = seconds(1);

Json::Array* owner_list(Json& document) {
  Json* list = document.at({"metadata", "ownerReferences"});
  return list == nullptr ? nullptr : list->if_array();
}

}  // namespace

GarbageCollector::GarbageCollector(Core& core, Writer& writer, Remover& remover)
    : core_(core), writer_(writer), remover_(remover) {}

void GarbageCollector::load() {
  dependents_.clear();
  dirty_.clear();
  for (std::size_t i = 0; i < core_.cache.all().size(); ++i) {
    core_.cache.all()[i]->visit({}, {}, [&](const ObjectPtr& object) {
      const Ref ref{i, object->key};
      link(ref, *object);
      mark(ref, *object);
      return true;
    });
  }
}

void GarbageCollector::link(const Ref& ref, const StoredObject& object) {
  for (const OwnerLink& owner : object.meta.owners) dependents_[owner.uid].insert(ref);
}

void GarbageCollector::unlink(const Ref& ref, const StoredObject& object) {
  for (const OwnerLink& owner : object.meta.owners) {
    const auto found = dependents_.find(owner.uid);
    if (found == dependents_.end()) continue;
    found->second.erase(ref);
    if (found->second.empty()) dependents_.erase(found);
  }
}

void GarbageCollector::mark(const Ref& ref, const StoredObject& object) {
  const bool finishing = object.meta.deleting && (object.meta.foreground || object.meta.orphaning);
  if (finishing || !object.meta.owners.empty()) dirty_.insert(ref);
}

void GarbageCollector::on_event(const ResourceCache& cache, const EventPtr& event) {
  const StoredObject* now = event->object.get();
  const StoredObject* before = event->previous.get();
  // A write that changes neither owners nor deletion (a heartbeat, a status) does not matter to garbage collection.
  if (now != nullptr && before != nullptr && now->meta.owners == before->meta.owners &&
      now->meta.deleting == before->meta.deleting && now->meta.foreground == before->meta.foreground &&
      now->meta.orphaning == before->meta.orphaning) {
    return;
  }
  const Ref ref{cache.index(), now != nullptr ? now->key : before->key};
  if (before != nullptr) unlink(ref, *before);
  if (now != nullptr) {
    link(ref, *now);
    mark(ref, *now);
  } else if (const auto found = dependents_.find(before->meta.uid); found != dependents_.end()) {
    dirty_.insert(found->second.begin(), found->second.end());
  }
  if (before == nullptr) return;
  // Owners that wait for this object's end, or for the removal of its reference, are checked again.
  for (const OwnerLink& owner : before->meta.owners) {
    const Resource* resource = core_.registry.find_group_kind(api::group_of(owner.api_version), owner.kind);
    if (resource == nullptr || !resource->stored()) continue;
    const ResourceCache& owners = core_.cache.of(*resource);
    const ObjectPtr found = owners.find(object_key(resource->namespaced() ? before->ns : std::string(), owner.name));
    if (found && found->meta.uid == owner.uid && found->meta.deleting) {
      dirty_.insert({owners.index(), found->key});
    }
  }
}

void GarbageCollector::act() {
  while (busy_.size() < kCollectorWritesMax) {
    const auto next = std::ranges::find_if(dirty_, [this](const Ref& ref) { return !busy_.contains(ref); });
    if (next == dirty_.end()) return;
    const Ref ref = *next;
    dirty_.erase(next);
    process(ref, Elsewhere::kMayBeBehind);
  }
}

GarbageCollector::OwnerState GarbageCollector::state_of(const OwnerLink& link, const StoredObject& dependent) const {
  const Resource* resource = core_.registry.find_group_kind(api::group_of(link.api_version), link.kind);
  // An owner of a kind that this server does not serve cannot be called gone.
  if (resource == nullptr || !resource->stored()) return OwnerState::kPresent;
  const ResourceCache& owners = core_.cache.of(*resource);
  const std::string key = object_key(resource->namespaced() ? dependent.ns : std::string(), link.name);
  if (owners.find_unreadable(key) != nullptr) return OwnerState::kPresent;
  const ObjectPtr owner = owners.find(key);
  if (!owner || owner->meta.uid != link.uid) return OwnerState::kAbsent;
  return owner->meta.deleting && owner->meta.foreground ? OwnerState::kWaitsForDependents : OwnerState::kPresent;
}

GarbageCollector::Owners GarbageCollector::classify(const StoredObject& object) const {
  Owners owners;
  for (const OwnerLink& link : object.meta.owners) {
    switch (state_of(link, object)) {
      case OwnerState::kPresent:
        owners.solid.push_back(link.uid);
        break;
      case OwnerState::kAbsent:
        owners.dangling.push_back(link.uid);
        break;
      case OwnerState::kWaitsForDependents:
        owners.waiting.push_back(link.uid);
        break;
    }
  }
  return owners;
}

/// The stores that other servers write to, and whose events about an owner may arrive later than those about its
/// dependents.
std::vector<Origin*> GarbageCollector::origins_of_dangling(const Ref& ref, const StoredObject& object) const {
  std::vector<Origin*> found;
  for (const OwnerLink& link : object.meta.owners) {
    if (state_of(link, object) != OwnerState::kAbsent) continue;
    Origin& origin =
        core_.cache.of(*core_.registry.find_group_kind(api::group_of(link.api_version), link.kind)).origin();
    if (&origin == &cache_of(ref).origin() || !origin.store().is_shared()) continue;
    if (std::ranges::find(found, &origin) == found.end()) found.push_back(&origin);
  }
  return found;
}

std::vector<Origin*> GarbageCollector::origins_but(const Origin& own) const {
  std::vector<Origin*> others;
  for (const auto& origin : core_.cache.origins()) {
    if (origin.get() != &own && origin->store().is_shared()) others.push_back(origin.get());
  }
  return others;
}

/// True while a custom kind is being read: its owners and dependents are not complete yet.
bool GarbageCollector::is_reading() const {
  return std::ranges::any_of(core_.cache.all(), [](const auto& cache) { return cache->is_filling(); });
}

/// Checks the object again once all events up to now are delivered. If it has changed meanwhile, from the beginning.
void GarbageCollector::requeue(const Ref& ref, const ObjectPtr& object, const std::vector<Origin*>& behind) {
  busy_.insert(ref);
  barrier_of_each(behind, [this, ref, revision = object->revision](const Outcome& caught_up) {
    if (!caught_up) return finished(ref, false);
    busy_.erase(ref);
    if (!acts()) return;
    const ObjectPtr now = cache_of(ref).find(ref.key);
    if (now && now->revision == revision) {
      dirty_.erase(ref);
      process(ref, Elsewhere::kHasCaughtUp);
    }
    run();
  });
}

void GarbageCollector::process(const Ref& ref, Elsewhere elsewhere) {
  const ObjectPtr object = cache_of(ref).find(ref.key);
  if (!object) return;
  if (object->meta.deleting) {
    if (object->meta.foreground || object->meta.orphaning) process_deletion(ref, object, elsewhere);
    return;
  }
  if (object->meta.owners.empty()) return;
  Owners owners = classify(*object);
  if (owners.dangling.empty() && owners.waiting.empty()) return;
  if (elsewhere == Elsewhere::kMayBeBehind) {
    if (const auto behind = origins_of_dangling(ref, *object); !behind.empty()) return requeue(ref, object, behind);
  }
  if (!owners.solid.empty()) {
    std::vector<std::string> gone = std::move(owners.dangling);
    gone.insert(gone.end(), owners.waiting.begin(), owners.waiting.end());
    return strip_owners(ref, object, std::move(gone));
  }
  const auto dependents = dependents_.find(object->meta.uid);
  if (!owners.waiting.empty() && dependents != dependents_.end()) {
    // A dependent that is itself waiting for its own means a cycle: let the owner go without this one.
    const bool cycle = std::ranges::any_of(dependents->second, [this](const Ref& below) {
      const ObjectPtr dependent = cache_of(below).find(below.key);
      return dependent && dependent->meta.deleting && dependent->meta.foreground;
    });
    if (cycle) unblock_owners(ref, object);
    return remove(ref, object, Propagation::kForeground);
  }
  Propagation propagation = Propagation::kBackground;
  if (object->meta.orphaning) propagation = Propagation::kOrphan;
  if (object->meta.foreground) propagation = Propagation::kForeground;
  remove(ref, object, propagation);
}

void GarbageCollector::process_deletion(const Ref& ref, const ObjectPtr& owner, Elsewhere elsewhere) {
  if (is_reading()) return retry(ref);
  const auto found = dependents_.find(owner->meta.uid);
  const std::set<Ref> dependents = found == dependents_.end() ? std::set<Ref>() : found->second;
  const auto behind =
      elsewhere == Elsewhere::kMayBeBehind ? origins_but(cache_of(ref).origin()) : std::vector<Origin*>();
  if (owner->meta.orphaning) {
    if (dependents.empty() && !behind.empty()) return requeue(ref, owner, behind);
    if (dependents.empty()) return drop_finalizer(ref, owner, "orphan");
    for (const Ref& below : dependents) {
      if (busy_.size() >= kCollectorWritesMax) return;  // every removed reference leads back to the owner
      if (busy_.contains(below)) continue;
      if (const ObjectPtr dependent = cache_of(below).find(below.key))
        strip_owners(below, dependent, {owner->meta.uid});
    }
    return;
  }
  bool blocked = false;
  for (const Ref& below : dependents) {
    const ObjectPtr dependent = cache_of(below).find(below.key);
    if (!dependent) continue;
    dirty_.insert(below);
    blocked = blocked || std::ranges::any_of(dependent->meta.owners, [&](const OwnerLink& link) {
                return link.uid == owner->meta.uid && link.blocks_deletion;
              });
  }
  if (blocked) return;
  if (!behind.empty()) return requeue(ref, owner, behind);
  drop_finalizer(ref, owner, "foregroundDeletion");
}

void GarbageCollector::remove(const Ref& ref, const ObjectPtr& object, Propagation propagation) {
  busy_.insert(ref);
  DeleteOptions options;
  options.uid = object->meta.uid;
  options.resource_version = std::to_string(object->revision.number());  // the version whose owners were checked
  options.propagation = propagation;
  remover_.remove({&cache_of(ref).resource(), object->ns, object->name, options},
                  [this, ref](StatusResult<Removed> result) {
                    if (!result && result.error().code == 409) dirty_.insert(ref);
                    finished(ref, result || result.error().code == 404 || result.error().code == 409);
                  });
}

void GarbageCollector::strip_owners(const Ref& ref, const ObjectPtr& object, std::vector<std::string> uids) {
  update(ref, object, [uids = std::move(uids)](Json& document) {
    Json::Array* owners = owner_list(document);
    if (owners == nullptr) return;
    std::erase_if(*owners, [&uids](const Json& owner) {
      return std::ranges::find(uids, owner.string_at({"uid"})) != uids.end();
    });
    if (owners->empty()) document.erase({"metadata", "ownerReferences"});
  });
}

void GarbageCollector::unblock_owners(const Ref& ref, const ObjectPtr& object) {
  update(ref, object, [](Json& document) {
    Json::Array* owners = owner_list(document);
    if (owners == nullptr) return;
    for (Json& owner : *owners) owner["blockOwnerDeletion"] = false;
  });
}

void GarbageCollector::drop_finalizer(const Ref& ref, const ObjectPtr& object, std::string_view finalizer) {
  update(ref, object, [finalizer](Json& document) {
    Json* list = document.at({"metadata", "finalizers"});
    if (list == nullptr || list->if_array() == nullptr) return;
    std::erase_if(*list->if_array(), [finalizer](const Json& name) { return name.string_at({}) == finalizer; });
    if (list->if_array()->empty()) document.erase({"metadata", "finalizers"});
  });
}

void GarbageCollector::update(const Ref& ref, const ObjectPtr& object, std::function<void(Json&)> change) {
  busy_.insert(ref);
  UpdateJob job{.resource = &cache_of(ref).resource(),
                .ns = object->ns,
                .name = object->name,
                .change = [change = std::move(change)](const Json& current) -> StatusResult<Json> {
                  Json document = current;
                  change(document);
                  return document;
                },
                .uid = object->meta.uid,
                .trusted = true,
                .context = {server_user(), {}, false}};
  writer_.update(std::move(job), [this, ref](StatusResult<Written> result) {
    finished(ref, result || result.error().code == 404 || result.error().code == 409);
  });
}

void GarbageCollector::finished(const Ref& ref, bool done) {
  busy_.erase(ref);
  if (!done) retry(ref);
  run();
}

void GarbageCollector::retry(const Ref& ref) {
  core_.timers.at(core_.now.mono + kGarbageRetry, [this, ref] {
    dirty_.insert(ref);
    run();
  });
}

}  // namespace spillway::apiserver
