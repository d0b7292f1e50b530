#include "apiserver/collect/namespaces.h"

#include "apiserver/collect/bootstrap.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr Duration kNamespaceRetry = seconds(1);
constexpr Duration kRequeueAfter = seconds(30);
constexpr std::string_view kAccount = "default";
constexpr Duration kLateWithin = minutes(2);  // a request that was admitted before is answered by then

}  // namespace

NamespaceCollector::NamespaceCollector(Core& core, Writer& writer, Remover& remover)
    : core_(core),
      writer_(writer),
      remover_(remover),
      namespaces_(core.cache.of(core.registry.get("namespaces"))),
      accounts_(core.cache.of(core.registry.get("serviceaccounts"))) {}

void NamespaceCollector::load() {
  for (auto* names : {&terminating_, &dirty_, &lacks_account_}) names->clear();
  gone_.clear();
  for (const auto& [name, space] : namespaces_.objects()) mark(*space);
}

void NamespaceCollector::mark(const StoredObject& space) {
  if (space.meta.deleting) {
    terminating_.insert(space.name);
    dirty_.insert(space.name);
    lacks_account_.erase(space.name);
  } else if (!accounts_.find(object_key(space.name, kAccount))) {
    lacks_account_.insert(space.name);
  }
}

void NamespaceCollector::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache == &namespaces_) {
    if (!event->object) return forget(event->previous->name);
    gone_.erase(event->object->name);
    return mark(*event->object);
  }
  if (event->object) {
    // Another server created the object before the deletion of the namespace reached that server.
    if (event->object->ns.empty()) return;
    if (terminating_.contains(event->object->ns) || gone_.contains(event->object->ns)) dirty_.insert(event->object->ns);
    return;
  }
  const StoredObject& gone = *event->previous;
  if (terminating_.contains(gone.ns)) dirty_.insert(gone.ns);
  if (&cache == &accounts_ && gone.name == kAccount) {
    if (const ObjectPtr space = namespaces_.find(gone.ns)) mark(*space);
  }
}

void NamespaceCollector::forget(const std::string& ns) {
  if (terminating_.erase(ns) != 0 && core_.store.is_shared()) watch_for_late_content(ns);
  lacks_account_.erase(ns);
  dirty_.erase(ns);
  if (gone_.contains(ns)) dirty_.insert(ns);
}

/// For some time after a namespace's removal, deletes objects that are still created in it.
void NamespaceCollector::watch_for_late_content(const std::string& ns) {
  const Instant until = core_.now.mono + kLateWithin;
  gone_[ns] = until;
  core_.timers.at(until, [this, ns, until] {
    if (const auto found = gone_.find(ns); found != gone_.end() && found->second == until) gone_.erase(found);
  });
}

void NamespaceCollector::act() {
  while (!lacks_account_.empty() && creating_.size() < kCollectorWritesMax) {
    const std::string ns = *lacks_account_.begin();
    lacks_account_.erase(lacks_account_.begin());
    if (!creating_.contains(ns)) create_account(ns);
  }
  std::set<std::string> due;
  due.swap(dirty_);
  for (const std::string& ns : due) empty(ns);
}

void NamespaceCollector::empty(const std::string& ns) {
  const ObjectPtr space = namespaces_.find(ns);
  if (space ? !space->meta.deleting : !gone_.contains(ns)) return;
  // pods first: their end may need other objects of the namespace
  if (remove_remaining(core_.cache.of(core_.registry.get("pods")), ns)) return;
  bool occupied = false;
  for (const auto& cache : core_.cache.all()) {
    if (cache->resource().namespaced()) occupied = remove_remaining(*cache, ns) || occupied;
  }
  if (!occupied && space) finish(ns);
}

/// Removes the objects of one resource. True if there are any, or their number is not known yet.
bool NamespaceCollector::remove_remaining(const ResourceCache& cache, const std::string& ns) {
  const bool filling = cache.is_filling();
  if (filling) requeue(ns, kNamespaceRetry);
  if (!cache.occupies(ns)) return filling;
  std::vector<ObjectPtr> left;
  cache.visit(ns + "/", {}, [&](const ObjectPtr& object) {
    if (!object->meta.deleting) left.push_back(object);
    return removing_.size() + left.size() < kCollectorWritesMax;
  });
  for (const ObjectPtr& object : left) remove(cache, *object);
  if (cache.hides(ns)) requeue(ns, kRequeueAfter);
  return true;
}

/// Catches up with writes that other servers have confirmed, before the namespace is declared empty.
void NamespaceCollector::finish(const std::string& ns) {
  if (!core_.store.is_shared()) return finalize(ns);
  if (!finalizing_.insert(ns).second) return;
  std::vector<Origin*> all;
  for (const auto& origin : core_.cache.origins()) all.push_back(origin.get());
  barrier_of_each(all, [this, ns](const Outcome& reached) {
    finalizing_.erase(ns);
    if (!reached || !acts()) return retry(ns);
    if (is_occupied(ns)) {
      dirty_.insert(ns);
      return run();
    }
    finalize(ns);
  });
}

bool NamespaceCollector::is_occupied(const std::string& ns) const {
  return std::ranges::any_of(core_.cache.all(), [&ns](const auto& cache) {
    return cache->resource().namespaced() && (cache->is_filling() || cache->occupies(ns));
  });
}

void NamespaceCollector::remove(const ResourceCache& cache, const StoredObject& object) {
  const std::string store_key = cache.resource().storage + object.key;
  if (removing_.size() >= kCollectorWritesMax || !removing_.insert(store_key).second) return;
  DeleteOptions options;
  options.uid = object.meta.uid;
  options.propagation = Propagation::kBackground;
  remover_.remove(
      {&cache.resource(), object.ns, object.name, options},
      [this, store_key, ns = object.ns](const StatusResult<Removed>& result) { on_removed(ns, store_key, result); });
}

/// An object with a grace period or a finalizer reports its end by its DELETED event.
void NamespaceCollector::on_removed(const std::string& ns, const std::string& store_key,
                                    const StatusResult<Removed>& result) {
  removing_.erase(store_key);
  if (!result && result.error().code != 404) return retry(ns);
  if (terminating_.contains(ns) || gone_.contains(ns)) dirty_.insert(ns);
  // A new pass is worth it once half of the deletions have ended, not after each.
  if (removing_.size() <= kCollectorWritesMax / 2) run();
}

/// Checks the namespace again later: no event reports the end of an unreadable value, nor that a custom kind with
/// possible objects here is served now.
void NamespaceCollector::requeue(const std::string& ns, Duration after) {
  if (!requeued_.insert(ns).second) return;
  core_.timers.at(core_.now.mono + after, [this, ns] {
    requeued_.erase(ns);
    if (terminating_.contains(ns)) dirty_.insert(ns);
    run();
  });
}

void NamespaceCollector::finalize(const std::string& ns) {
  if (!finalizing_.insert(ns).second) return;
  UpdateJob job{
      .resource = &namespaces_.resource(),
      .name = ns,
      .part = SubresourceId::kFinalize,
      .change = [](const Json& current) -> StatusResult<Json> {
        Json document = current;
        if (current.at({"metadata", "deletionTimestamp"}) == nullptr) return document;  // another of that name
        if (Json* list = document.at({"spec", "finalizers"}); list != nullptr && list->if_array() != nullptr) {
          std::erase_if(*list->if_array(), [](const Json& name) { return name.string_at({}) == "kubernetes"; });
          if (list->if_array()->empty()) document.erase({"spec", "finalizers"});
        }
        return document;
      },
      .trusted = true,
      .context = {server_user(), {}, false}};
  writer_.update(std::move(job), [this, ns](const StatusResult<Written>& result) { on_finalized(ns, result); });
}

void NamespaceCollector::on_finalized(const std::string& ns, const StatusResult<Written>& result) {
  finalizing_.erase(ns);
  if (!result && result.error().code != 404) retry(ns);
}

void NamespaceCollector::create_account(const std::string& ns) {
  creating_.insert(ns);
  Json account = Json::object({{"apiVersion", "v1"},
                               {"kind", "ServiceAccount"},
                               {"metadata", Json::object({{"name", kAccount}, {"namespace", ns}})}});
  writer_.create({&accounts_.resource(), ns, std::move(account), false, {server_user(), {}, false}},
                 [this, ns](const StatusResult<Written>& result) { on_account_created(ns, result); });
}

void NamespaceCollector::on_account_created(const std::string& ns, const StatusResult<Written>& result) {
  creating_.erase(ns);
  const bool is_done =
      result || result.error().reason == "AlreadyExists" || result.error().code == 404 || result.error().code == 403;
  if (!is_done) retry(ns);
}

void NamespaceCollector::retry(const std::string& ns) {
  core_.timers.at(core_.now.mono + kNamespaceRetry, [this, ns] {
    if (const ObjectPtr space = namespaces_.find(ns)) {
      mark(*space);
    } else if (gone_.contains(ns)) {
      dirty_.insert(ns);
    }
    run();
  });
}

}  // namespace spillway::apiserver
