// All objects of the stores in memory, per resource, with the recent past: current objects by key, a ring of events
// with the previous value of each, an index of pods by node. Readers share the bytes; a write is turned into bytes
// once. Current objects that were written lately are kept in parsed form, too. Names that only one object of a resource
// may have, such as a port of the nodes, are indexed. For a resource without history (Resource::keeps_history) it also
// knows which objects have changed since a revision, and the deletions of the last minutes: a watch resumes by them if
// its events are gone.
// Thread: loop. Bounds: parsed documents that take 16 MiB; per resource at least 1,000 events, older than 5 minutes
// are dropped beyond that, never more than 32 MiB of them; without history 10 s, 65,536 events and 64 MiB; deletions of
// 10 minutes, 100,000 and 32 MiB. Source: spec "API server contract", 9.13, 22.3; spec "API server at
// scale", 4.
#pragma once

#include "apiserver/read/origin.h"
#include "apiserver/read/stored_form.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/resource/resource_registry.h"
#include "base/time.h"
#include "store/store.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// One committed write of one object.
struct CacheEvent {
  store::Revision revision;
  Instant at;          // time at which this server received the change
  ObjectPtr object;    // null: deleted
  ObjectPtr previous;  // null: created
  ObjectPtr last;      // for a deletion: the final content under the deletion's revision
};

using EventPtr = std::shared_ptr<const CacheEvent>;
using ObjectMap = std::map<std::string, ObjectPtr, std::less<>>;

/// The change of an object since a revision.
struct StateChange {
  enum class Of { kCreated, kModified, kDeleted };
  Of of = Of::kModified;
  ObjectPtr object;  // deleted: the final content under the deletion's revision
};

/// A value at rest that cannot be decoded. No watch reports its object as deleted: it is not.
struct Unreadable {
  store::Revision revision;
  std::string cause;
  ObjectPtr last;  // the last readable state of the object; may be null
};

/// Current objects and history of one resource.
class ResourceCache {
 public:
  /// Receives the previous value of an object before each change.
  class Pin {
   public:
    virtual ~Pin() = default;
    /// `previous` is null: the object is new.
    virtual void on_change(const std::string& key, const ObjectPtr& previous) = 0;
  };

  ResourceCache(const Resource& resource, Origin& origin, std::size_t index);

  /// The resource; for a custom kind by its present definition.
  const Resource& resource() const { return *resource_; }

  /// The cache's place in WatchCache::all(), which never changes.
  std::size_t index() const { return index_; }

  /// True for a custom kind that is not served: the cache is empty and follows no events.
  bool is_detached() const { return custom_ == nullptr && kept_ != nullptr; }

  /// True while the objects that existed before the resource was attached are being read.
  bool is_filling() const { return is_filling_; }

  /// The store that holds the objects.
  Origin& origin() const { return origin_; }

  const ObjectMap& objects() const { return objects_; }

  ObjectPtr find(std::string_view key) const;

  /// Unreadable values, by key.
  const std::map<std::string, Unreadable, std::less<>>& unreadable() const { return unreadable_; }

  /// The object that cannot be decoded; nullptr: it can, or there is none.
  const Unreadable* find_unreadable(std::string_view key) const;

  /// True if on_node() can answer: of a built-in kind the first selectable field is spec.nodeName. The fields of a
  /// custom one change, and what is read of its objects as well.
  bool indexes_nodes() const {
    return resource_->custom == nullptr && !resource_->fields.empty() &&
           resource_->fields.front().name == "spec.nodeName";
  }

  /// Pods bound to that node; nullptr if there are none or the resource is not indexed by node.
  const ObjectMap* on_node(std::string_view node) const;

  /// True if an object reserves that name (KindHooks::reserves); the one with the key `but_for` does not count.
  bool is_reserved(std::string_view name, std::string_view but_for) const;

  /// True if any object lives in the namespace, readable or not.
  bool occupies(std::string_view ns) const;

  /// True if a value in the namespace cannot be read.
  bool hides(std::string_view ns) const;

  /// True if the history holds every event after that revision.
  bool covers(store::Revision after) const { return after >= horizon_; }

  /// Events with revision > `after`, oldest first; covers(after) must hold.
  std::vector<EventPtr> events_after(store::Revision after) const;

  /// The remembered events, oldest first.
  const std::deque<EventPtr>& history() const { return ring_; }

  /// True if changes_since() can answer.
  bool covers_state(store::Revision after) const { return !resource_->keeps_history && after >= state_horizon_; }

  /// The last change of each object that was changed or deleted after `after`, by revision; of what has been created
  /// and deleted since, nothing. covers_state(after) must hold.
  std::vector<StateChange> changes_since(store::Revision after) const;

  /// Notifies the pin for as long as it is held elsewhere.
  void pin(std::weak_ptr<Pin> pin) { pins_.push_back(std::move(pin)); }

  /// Objects of the present state in key order from just behind `start_after`, below `prefix`, until `visit` returns
  /// false. Those of another revision, and a few at a time: pinned_objects.h.
  void visit(std::string_view prefix, std::string_view start_after,
             const std::function<bool(const ObjectPtr&)>& visit) const;

 private:
  friend class WatchCache;

  void put(const ObjectPtr& object);
  void notify_pins(const std::string& key, const ObjectPtr& previous);
  void erase(const std::string& key);
  void index(const StoredObject& object, const ObjectPtr& value);
  void index_reserved(const StoredObject& object, const ObjectPtr& value);
  void remember(EventPtr event);
  void remember_deletion(EventPtr event);
  void forget_history(store::Revision before);

  const Resource* resource_;
  Origin& origin_;
  std::size_t index_;
  CustomKindPtr custom_;  // null: built in, or detached
  CustomKindPtr kept_;    // the last kind of a detached cache, which owns `resource_`
  bool is_filling_ = false;
  std::vector<store::Change> waiting_;  // changes that arrive while the cache is filled
  // the cache contains changes up to this revision, even if the store has not reported them yet
  store::Revision filled_to_;
  ObjectMap objects_;
  std::map<std::string, Unreadable, std::less<>> unreadable_;
  std::map<std::string, ObjectMap, std::less<>> by_node_;
  std::map<std::string, std::vector<std::string>, std::less<>> reserved_;  // names, by key of the object
  std::map<std::string, std::set<std::string>, std::less<>> reserved_by_;  // keys of objects, by name
  std::vector<std::weak_ptr<Pin>> pins_;
  std::deque<EventPtr> ring_;
  std::size_t ring_bytes_ = 0;
  store::Revision horizon_;
  store::Revision loaded_to_;  // events up to this revision have no previous states
  // without history
  std::map<store::Revision, ObjectPtr> by_revision_;
  std::deque<EventPtr> deletions_;
  std::size_t deletions_bytes_ = 0;
  store::Revision state_horizon_;
};

class WatchCache {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    /// Called after the cache shows the new state. Must not write to the store synchronously.
    virtual void on_cache_event(ResourceCache& cache, const EventPtr& event) = 0;
    /// Called after a batch of events has been delivered.
    virtual void on_cache_progress() = 0;
    /// Called when the store has ended the watch. kExpired: the store is available, only history is missing (rebase()).
    virtual void on_cache_lost(Origin& origin, const Error& error) = 0;

    /// The value of that key in the store cannot be decoded.
    virtual void on_cache_unreadable(std::string_view /*store_key*/, const Unreadable& /*value*/) {}
  };

  /// Resources that live in none of `separate` live in `main`.
  WatchCache(const ResourceRegistry& registry, Listener& listener, store::Store& main,
             const std::vector<SeparateStore>& separate = {});

  /// Loads the initial state of a store; the watch continues from there. The state may lack keys without history that
  /// the watch reports up to `head`. Keys of resources that live elsewhere are left out.
  void load(Origin& origin, const store::RangeResult& state, store::Revision head = {});

  /// The form of most of the first objects at rest; nullopt: there are none.
  std::optional<StorageMediaType> media_type_at_rest() const;

  ResourceCache& of(const Resource& resource);

  /// Adds or redefines a custom kind, whose objects are cached from now on. A new one is_filling() until fill(). It
  /// lives in the main store.
  ResourceCache& attach(const CustomKindPtr& kind);
  /// Fills the cache with the store's keys below its prefix at the time of attach(); later changes have been applied
  /// already.
  void fill(ResourceCache& cache, const store::RangeResult& state);
  /// The kind is not served any more. Its cache stays, empty, because the kind may be served again.
  void detach(ResourceCache& cache);
  /// Gives the cache of these keys back, which is detached: the next kind with other keys gets it. No row of its last
  /// kind may be used any more.
  void release(std::string_view storage);

  const std::vector<std::unique_ptr<ResourceCache>>& all() const { return caches_; }

  /// All origins, the main store first.
  const std::vector<std::unique_ptr<Origin>>& origins() const { return origins_; }

  /// Sets the time of the following events.
  void set_time(Instant now) { now_ = now; }

  /// Bytes on their way to the store, with their document and its extract, so that they are not parsed again.
  /// `checked`: as of StoredObject.
  void expect(const store::Value& value, Extract meta, api::Json document, bool checked);
  /// Announces bytes on their way to the store that differ from an object in the values of times alone.
  void expect_renewal(const store::Value& value, ObjectPtr renewed, std::optional<api::Json> document);
  /// A deletion in flight: the content that its event is to show.
  void expect_deletion(const std::string& store_key, std::string final_text, Extract meta);
  /// The write of these bytes has ended, with success or not.
  void forget(const store::Value& value);
  void forget_deletion(const std::string& store_key);

  /// Replaces the state by that of one moment of the store, without the history in between: differences become events,
  /// and nothing older is covered any more.
  void rebase(Origin& origin, const store::RangeResult& state);

 private:
  friend class Origin;

  struct FinalState {
    std::string text;
    Extract meta;
  };

  struct Expected {
    Extract meta;
    api::Json document;
    bool checked = false;
    ObjectPtr renewed = nullptr;  // in place of all that but the document, which may be null
  };

  /// An object whose parsed document is kept.
  struct Parsed {
    std::weak_ptr<const StoredObject> object;
    std::size_t bytes = 0;  // memory of the document
  };

  ResourceCache& add_cache(const Resource& resource, Origin& origin);
  void reshape(ResourceCache& cache);
  void keep_parsed(const ObjectPtr& object, api::Json document);
  void drop_parsed(const StoredObject& object);
  void forget_oldest_parsed();
  void on_changes(Origin& origin, const std::vector<store::Change>& changes);
  void on_reached(Origin& origin, store::Revision revision);
  void on_watch_end(Origin& origin, const Error& error);
  ResourceCache* cache_of_key(std::string_view store_key);
  /// The resource with such keys in that store; nullptr: there is none.
  ResourceCache* cache_of_key(const Origin& origin, std::string_view store_key);
  Result<ObjectPtr> object_of(const ResourceCache& cache, const std::string& store_key, const store::Value& value,
                              store::Revision revision, store::Revision created);
  void mark_unreadable(ResourceCache& cache, const std::string& store_key, store::Revision revision, Error cause);
  void apply(Origin& origin, const store::Change& change);
  void record_unseen(ResourceCache& cache, const store::Change& change);

  Listener& listener_;
  std::vector<std::unique_ptr<Origin>> origins_;
  std::vector<std::unique_ptr<ResourceCache>> caches_;
  std::map<std::string, ResourceCache*, std::less<>> by_prefix_;
  std::vector<ResourceCache*> free_;  // released
  std::map<const std::string*, Expected> expected_;
  std::map<std::string, FinalState> expected_deletions_;
  std::deque<Parsed> parsed_;       // oldest first; entries of dropped documents are empty
  std::uint64_t parsed_first_ = 1;  // the number of its front, StoredObject::parsed_number
  std::size_t parsed_bytes_ = 0;
  Instant now_{};
};

}  // namespace spillway::apiserver
