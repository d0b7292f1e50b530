#include "apiserver/read/watch_cache.h"

#include "api/json/json_values.h"
#include "apiserver/resource/custom_kind.h"
#include "base/check.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::apiserver {

namespace {

/// Memory of parsed documents. They save parsing the text when an object is changed again soon after a write, as a pod
/// is three times while it starts: 16 MiB hold the last 400 pods of 5 kB, or 5,000 leases. A document takes four to
/// eight times the bytes of its text, so they are counted by what they take.
constexpr std::size_t kParsedBytesMax = 16U << 20U;
/// Entries of the list of parsed documents, of 24 bytes each: those of replaced objects stay in it, empty, behind older
/// ones that are still parsed.
constexpr std::size_t kParsedMax = 65'536;
constexpr std::size_t kRingEventsMin = 1'000;

struct RingLimits {
  std::size_t events_max;
  std::size_t bytes_max;
  Duration age;  // applies to events beyond kRingEventsMin
};

constexpr RingLimits kRing{static_cast<std::size_t>(-1), 32U << 20U, minutes(5)};
constexpr RingLimits kRingWithoutHistory{65'536, 64U << 20U, seconds(10)};
constexpr RingLimits kDeletions{100'000, 32U << 20U, minutes(10)};
constexpr std::size_t kFirstObjects = 100;  // the sample by which the form of the others is estimated

std::size_t weight(const CacheEvent& event) {
  const ObjectPtr& content = event.object ? event.object : event.last;
  return 256 + (content ? content->text->size() : 0);
}

}  // namespace

ResourceCache::ResourceCache(const Resource& resource, Origin& origin, std::size_t index)
    : resource_(&resource), origin_(origin), index_(index) {}

ObjectPtr ResourceCache::find(std::string_view key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

const Unreadable* ResourceCache::find_unreadable(std::string_view key) const {
  const auto found = unreadable_.find(key);
  return found == unreadable_.end() ? nullptr : &found->second;
}

const ObjectMap* ResourceCache::on_node(std::string_view node) const {
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? nullptr : &found->second;
}

namespace {

bool has_any(const auto& map, const std::string& prefix) {
  const auto first = map.lower_bound(prefix);
  return first != map.end() && first->first.starts_with(prefix);
}

}  // namespace

bool ResourceCache::occupies(std::string_view ns) const {
  return has_any(objects_, std::string(ns) + "/") || hides(ns);
}

bool ResourceCache::hides(std::string_view ns) const {
  return has_any(unreadable_, std::string(ns) + "/");
}

std::vector<EventPtr> ResourceCache::events_after(store::Revision after) const {
  SPILLWAY_DCHECK(covers(after));
  const auto first = std::ranges::upper_bound(ring_, after, {}, [](const EventPtr& event) { return event->revision; });
  return {first, ring_.end()};
}

void ResourceCache::visit(std::string_view prefix, std::string_view start_after,
                          const std::function<bool(const ObjectPtr&)>& visit) const {
  auto at = start_after.empty() ? objects_.lower_bound(prefix) : objects_.upper_bound(start_after);
  for (; at != objects_.end() && at->first.starts_with(prefix); ++at) {
    if (!visit(at->second)) return;
  }
}

void ResourceCache::index(const StoredObject& object, const ObjectPtr& value) {
  if (!indexes_nodes()) return;
  const std::string_view node = object.meta.fields.front();
  if (node.empty()) return;
  auto found = by_node_.find(node);
  if (value) {
    if (found == by_node_.end()) found = by_node_.emplace(node, ObjectMap()).first;
    found->second[object.key] = value;
    return;
  }
  if (found == by_node_.end()) return;
  found->second.erase(object.key);
  if (found->second.empty()) by_node_.erase(found);
}

void ResourceCache::index_reserved(const StoredObject& object, const ObjectPtr& value) {
  if (resource_->hooks->reserves == nullptr) return;
  if (const auto before = reserved_.extract(object.key)) {
    for (const std::string& name : before.mapped()) {
      const auto found = reserved_by_.find(name);
      found->second.erase(object.key);
      if (found->second.empty()) reserved_by_.erase(found);
    }
  }
  if (!value) return;
  std::vector<std::string> names = resource_->hooks->reserves(*value->shared_document());
  if (names.empty()) return;
  for (const std::string& name : names) reserved_by_[name].insert(object.key);
  reserved_.emplace(object.key, std::move(names));
}

bool ResourceCache::is_reserved(std::string_view name, std::string_view but_for) const {
  const auto found = reserved_by_.find(name);
  return found != reserved_by_.end() && (found->second.size() > 1 || *found->second.begin() != but_for);
}

void ResourceCache::notify_pins(const std::string& key, const ObjectPtr& previous) {
  bool gone = false;
  for (const std::weak_ptr<Pin>& pin : pins_) {
    if (const auto held = pin.lock()) {
      held->on_change(key, previous);
    } else {
      gone = true;
    }
  }
  if (gone) std::erase_if(pins_, [](const auto& pin) { return pin.expired(); });
}

void ResourceCache::put(const ObjectPtr& object) {
  ObjectPtr& slot = objects_[object->key];
  if (!pins_.empty()) notify_pins(object->key, slot);
  if (slot) {
    index(*slot, nullptr);
    slot->parsed = nullptr;
    by_revision_.erase(slot->revision);
  }
  slot = object;
  if (!resource_->keeps_history) by_revision_.insert_or_assign(by_revision_.end(), object->revision, object);
  index(*object, object);
  index_reserved(*object, object);
}

void ResourceCache::erase(const std::string& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return;
  if (!pins_.empty()) notify_pins(key, found->second);
  index_reserved(*found->second, nullptr);
  index(*found->second, nullptr);
  found->second->parsed = nullptr;
  by_revision_.erase(found->second->revision);
  objects_.erase(found);
}

void ResourceCache::remember(EventPtr event) {
  if (event->revision <= loaded_to_) {
    horizon_ = event->revision;
    return;
  }
  ring_bytes_ += weight(*event);
  const Instant now = event->at;
  ring_.push_back(std::move(event));
  const RingLimits& limits = resource_->keeps_history ? kRing : kRingWithoutHistory;
  const auto too_much = [&] {
    if (ring_.size() > limits.events_max || ring_bytes_ > limits.bytes_max) return ring_.size() > 1;
    return ring_.size() > kRingEventsMin && ring_.front()->at + limits.age < now;
  };
  while (too_much()) {
    horizon_ = ring_.front()->revision;
    ring_bytes_ -= weight(*ring_.front());
    ring_.pop_front();
  }
}

void ResourceCache::remember_deletion(EventPtr event) {
  if (resource_->keeps_history) return;
  const Instant now = event->at;
  deletions_bytes_ += weight(*event);
  deletions_.push_back(std::move(event));
  while (deletions_.size() > kDeletions.events_max || deletions_bytes_ > kDeletions.bytes_max ||
         deletions_.front()->at + kDeletions.age < now) {
    state_horizon_ = deletions_.front()->revision;
    deletions_bytes_ -= weight(*deletions_.front());
    deletions_.pop_front();
  }
}

std::vector<StateChange> ResourceCache::changes_since(store::Revision after) const {
  SPILLWAY_DCHECK(covers_state(after));
  std::vector<StateChange> changes;
  auto deletion =
      std::ranges::upper_bound(deletions_, after, {}, [](const EventPtr& event) { return event->revision; });
  const auto add_deletions_to = [&](store::Revision revision) {
    for (; deletion != deletions_.end() && (*deletion)->revision <= revision; ++deletion) {
      const ObjectPtr& last = (*deletion)->last;
      if (last->created <= after) changes.push_back({StateChange::Of::kDeleted, last});
    }
  };
  for (auto at = by_revision_.upper_bound(after); at != by_revision_.end(); ++at) {
    add_deletions_to(at->first);
    const bool is_new = at->second->created > after;
    changes.push_back({is_new ? StateChange::Of::kCreated : StateChange::Of::kModified, at->second});
  }
  if (deletion != deletions_.end()) add_deletions_to(deletions_.back()->revision);
  return changes;
}

void ResourceCache::forget_history(store::Revision before) {
  ring_.clear();
  ring_bytes_ = 0;
  horizon_ = before;
}

WatchCache::WatchCache(const ResourceRegistry& registry, Listener& listener, store::Store& main,
                       const std::vector<SeparateStore>& separate)
    : listener_(listener) {
  origins_.push_back(std::make_unique<Origin>(*this, main, std::string(), 0));
  std::map<std::string_view, Origin*> elsewhere;
  for (const SeparateStore& store : separate) {
    origins_.push_back(std::make_unique<Origin>(*this, *store.store, store.name, origins_.size()));
    for (const std::string& storage : store.storages) elsewhere.emplace(storage, origins_.back().get());
  }
  for (const Resource& resource : registry.built_in()) {
    if (!resource.stored() || by_prefix_.contains(resource.storage)) continue;
    // If two rows share one storage, the row that is not a view describes the stored form.
    const auto owner = std::ranges::find_if(registry.built_in(), [&](const Resource& row) {
      return row.storage == resource.storage && row.view.from_stored == nullptr;
    });
    SPILLWAY_CHECK(owner != registry.built_in().end());
    const auto lives = elsewhere.find(resource.storage);
    add_cache(*owner, lives == elsewhere.end() ? *origins_.front() : *lives->second);
  }
}

ResourceCache& WatchCache::add_cache(const Resource& resource, Origin& origin) {
  if (!free_.empty() && &origin == origins_.front().get()) {
    ResourceCache& cache = *free_.back();
    free_.pop_back();
    by_prefix_.emplace(resource.storage, &cache);
    return cache;
  }
  caches_.push_back(std::make_unique<ResourceCache>(resource, origin, caches_.size()));
  by_prefix_.emplace(resource.storage, caches_.back().get());
  return *caches_.back();
}

ResourceCache& WatchCache::attach(const CustomKindPtr& kind) {
  const Resource& resource = kind->stored();
  const auto known = by_prefix_.find(resource.storage);
  ResourceCache& cache = known != by_prefix_.end() ? *known->second : add_cache(resource, *origins_.front());
  const bool is_new = cache.custom_ == nullptr;
  const bool reshapes = !is_new && kind->reshapes(*cache.custom_);
  cache.custom_ = kind;
  cache.resource_ = &resource;
  if (is_new) cache.is_filling_ = true;
  if (reshapes) reshape(cache);
  return cache;
}

void WatchCache::detach(ResourceCache& cache) {
  cache.objects_.clear();
  cache.unreadable_.clear();
  cache.waiting_.clear();
  cache.is_filling_ = false;
  cache.filled_to_ = store::Revision();
  cache.forget_history(cache.origin().revision());
  cache.state_horizon_ = cache.horizon_;
  cache.kept_ = std::move(cache.custom_);
}

void WatchCache::release(std::string_view storage) {
  const auto found = by_prefix_.find(storage);
  if (found == by_prefix_.end() || !found->second->is_detached()) return;
  free_.push_back(found->second);
  by_prefix_.erase(found);
}

void WatchCache::fill(ResourceCache& cache, const store::RangeResult& state) {
  if (!std::exchange(cache.is_filling_, false)) return;
  Origin& origin = cache.origin();
  const store::Revision reached = origin.revision_;
  std::vector<store::Change> changes;
  changes.reserve(state.entries.size());
  for (const store::Entry& entry : state.entries) {
    changes.push_back({entry.key, entry.mod_revision, entry.create_revision, entry.value, nullptr});
  }
  for (store::Change& change : std::exchange(cache.waiting_, {})) {
    if (change.revision > state.revision) changes.push_back(std::move(change));
  }
  cache.loaded_to_ = state.revision;
  for (const store::Change& change : changes) apply(origin, change);
  cache.horizon_ = cache.state_horizon_ = cache.filled_to_ = state.revision;
  origin.revision_ = reached;  // filling one cache does not advance its store
}

/// Decodes objects by the present schema again, from the stored values: the earlier schema may have hidden parts of
/// them.
void WatchCache::reshape(ResourceCache& cache) {
  for (auto& [key, object] : cache.objects_) {
    const store::Value at_rest =
        object->at_rest ? object->at_rest : std::make_shared<const std::string>(stored_bytes(*object));
    Result<ObjectPtr> again = read_object(cache.resource(), key, at_rest, object->revision);
    if (!again) continue;
    if (*(*again)->text == *object->text && (*again)->meta.fields == object->meta.fields) continue;
    auto changed = std::make_shared<StoredObject>(**again);
    changed->created = object->created;
    object = std::move(changed);
  }
}

ResourceCache& WatchCache::of(const Resource& resource) {
  const auto found = by_prefix_.find(resource.storage);
  SPILLWAY_CHECK(found != by_prefix_.end());
  return *found->second;
}

ResourceCache* WatchCache::cache_of_key(std::string_view store_key) {
  auto next = by_prefix_.upper_bound(store_key);
  if (next == by_prefix_.begin()) return nullptr;
  --next;
  return store_key.starts_with(next->first) ? next->second : nullptr;
}

ResourceCache* WatchCache::cache_of_key(const Origin& origin, std::string_view store_key) {
  ResourceCache* cache = cache_of_key(store_key);
  return cache != nullptr && &cache->origin() == &origin ? cache : nullptr;
}

Result<ObjectPtr> WatchCache::object_of(const ResourceCache& cache, const std::string& store_key,
                                        const store::Value& value, store::Revision revision, store::Revision created) {
  std::string key = store_key.substr(cache.resource().storage.size());
  if (const auto found = expected_.find(value.get()); found != expected_.end()) {
    Expected expected = std::move(found->second);
    expected_.erase(found);
    if (expected.renewed) {
      const ObjectPtr renewed = make_renewed(*expected.renewed, *value, revision);
      if (!expected.document.is_null()) keep_parsed(renewed, std::move(expected.document));
      return renewed;
    }
    const StorageMediaType type = media_type_of(*value).value_or(StorageMediaType::kJson);
    const bool is_text = type == StorageMediaType::kJson;
    const auto object = make_object(std::move(key), is_text ? *value : api::to_text(expected.document), revision,
                                    std::move(expected.meta), {{}, type});
    object->checked = expected.checked;
    object->created = created;
    keep_parsed(object, std::move(expected.document));
    return object;
  }
  return read_object(cache.resource(), std::move(key), value, revision, created);
}

void WatchCache::load(Origin& origin, const store::RangeResult& state, store::Revision head) {
  origin.revision_ = state.revision;
  origin.is_followed_ = true;
  for (const auto& cache : caches_) {
    if (&cache->origin() != &origin) continue;
    cache->horizon_ = cache->state_horizon_ = state.revision;
    if (!cache->resource().keeps_history) cache->loaded_to_ = head;
  }
  for (const store::Entry& entry : state.entries) {
    ResourceCache* cache = cache_of_key(origin, entry.key);
    if (cache == nullptr) continue;
    Result<ObjectPtr> object = object_of(*cache, entry.key, entry.value, entry.mod_revision, entry.create_revision);
    if (!object) {
      mark_unreadable(*cache, entry.key, entry.mod_revision, std::move(object.error()));
      continue;
    }
    cache->put(*object);
  }
}

std::optional<StorageMediaType> WatchCache::media_type_at_rest() const {
  std::size_t seen = 0;
  std::size_t in_protobuf = 0;
  for (const auto& cache : caches_) {
    for (const auto& [key, object] : cache->objects()) {
      if (seen == kFirstObjects) break;
      ++seen;
      if (object->media_type == StorageMediaType::kProtobuf) ++in_protobuf;
    }
  }
  if (seen == 0) return std::nullopt;
  return 2 * in_protobuf > seen ? StorageMediaType::kProtobuf : StorageMediaType::kJson;
}

/// Hides the previous value, without a deletion event: the object is not gone.
void WatchCache::mark_unreadable(ResourceCache& cache, const std::string& store_key, store::Revision revision,
                                 Error cause) {
  const std::string key = store_key.substr(cache.resource().storage.size());
  Unreadable& value = cache.unreadable_[key];
  if (ObjectPtr before = cache.find(key)) value.last = std::move(before);
  value.revision = revision;
  value.cause = std::move(cause.message);
  cache.erase(key);
  listener_.on_cache_unreadable(store_key, value);
}

void WatchCache::expect(const store::Value& value, Extract meta, api::Json document, bool checked) {
  expected_.insert_or_assign(value.get(), Expected{std::move(meta), std::move(document), checked});
}

void WatchCache::expect_renewal(const store::Value& value, ObjectPtr renewed, std::optional<api::Json> document) {
  expected_.insert_or_assign(
      value.get(),
      Expected{.meta = {}, .document = std::move(document).value_or(nullptr), .renewed = std::move(renewed)});
}

void WatchCache::keep_parsed(const ObjectPtr& object, api::Json document) {
  document.make({"metadata", "resourceVersion"}) = std::to_string(object->revision.number());
  const std::size_t bytes = api::tree_bytes(document);
  object->parsed = std::make_shared<const api::Json>(std::move(document));
  object->parsed_number = parsed_first_ + parsed_.size();
  parsed_.push_back({object, bytes});
  parsed_bytes_ += bytes;
  while (parsed_bytes_ > kParsedBytesMax || parsed_.size() > kParsedMax) forget_oldest_parsed();
}

void WatchCache::forget_oldest_parsed() {
  if (const ObjectPtr oldest = parsed_.front().object.lock()) oldest->parsed = nullptr;
  parsed_bytes_ -= parsed_.front().bytes;
  parsed_.pop_front();
  ++parsed_first_;
}

/// Gives back the document of an object that is replaced, and its share of the bound.
void WatchCache::drop_parsed(const StoredObject& object) {
  if (object.parsed == nullptr || object.parsed_number < parsed_first_) return;
  Parsed& entry = parsed_[object.parsed_number - parsed_first_];
  if (entry.object.lock().get() != &object) return;  // a copy of the object that is kept
  object.parsed = nullptr;
  parsed_bytes_ -= std::exchange(entry.bytes, 0);
  entry.object.reset();
  while (!parsed_.empty() && parsed_.front().bytes == 0) forget_oldest_parsed();
}

void WatchCache::expect_deletion(const std::string& store_key, std::string final_text, Extract meta) {
  expected_deletions_.insert_or_assign(store_key, FinalState{std::move(final_text), std::move(meta)});
}

void WatchCache::forget(const store::Value& value) {
  expected_.erase(value.get());
}

void WatchCache::forget_deletion(const std::string& store_key) {
  expected_deletions_.erase(store_key);
}

/// Ends an object that no reader has seen: no watch removes it, but a resuming watch may have seen it.
void WatchCache::record_unseen(ResourceCache& cache, const store::Change& change) {
  if (cache.resource().keeps_history || !change.previous) return;
  Result<ObjectPtr> last = read_object(cache.resource(), change.key.substr(cache.resource().storage.size()),
                                       change.previous, change.revision, change.create_revision);
  if (!last) return;
  auto event = std::make_shared<CacheEvent>();
  event->revision = change.revision;
  event->at = now_;
  event->last = *std::move(last);
  cache.remember_deletion(std::move(event));
}

void WatchCache::apply(Origin& origin, const store::Change& change) {
  origin.revision_ = std::max(origin.revision_, change.revision);
  ResourceCache* cache = cache_of_key(origin, change.key);
  if (cache == nullptr || cache->is_detached()) return;
  if (cache->is_filling_) return cache->waiting_.push_back(change);
  if (change.revision <= cache->filled_to_) return;  // the state that filled the cache contains it
  auto event = std::make_shared<CacheEvent>();
  event->revision = change.revision;
  event->at = now_;
  const std::string key = change.key.substr(cache->resource().storage.size());
  event->previous = cache->find(key);
  if (event->previous) drop_parsed(*event->previous);
  if (change.value) {
    Result<ObjectPtr> object = object_of(*cache, change.key, change.value, change.revision, change.create_revision);
    if (!object) return mark_unreadable(*cache, change.key, change.revision, std::move(object.error()));
    if (const auto bad = cache->unreadable_.extract(key)) event->previous = bad.mapped().last;
    event->object = *object;
    cache->put(*object);
  } else {
    if (const auto bad = cache->unreadable_.extract(key)) event->previous = bad.mapped().last;
    if (!event->previous) return record_unseen(*cache, change);
    if (const auto found = expected_deletions_.find(change.key); found != expected_deletions_.end()) {
      auto last = make_object(key, found->second.text, change.revision, std::move(found->second.meta));
      last->created = event->previous->created;
      event->last = std::move(last);
      expected_deletions_.erase(found);
    } else {
      event->last = make_last(*event->previous, change.revision);
    }
    cache->erase(key);
    cache->remember_deletion(event);
  }
  cache->remember(event);
  listener_.on_cache_event(*cache, event);
}

void WatchCache::on_changes(Origin& origin, const std::vector<store::Change>& changes) {
  for (const store::Change& change : changes) apply(origin, change);
  listener_.on_cache_progress();
}

void WatchCache::on_reached(Origin& origin, store::Revision revision) {
  origin.revision_ = std::max(origin.revision_, revision);
  listener_.on_cache_progress();
}

void WatchCache::rebase(Origin& origin, const store::RangeResult& state) {
  for (const auto& cache : caches_) {
    if (&cache->origin() != &origin) continue;
    cache->is_filling_ = false;  // all awaited changes have arrived
    cache->waiting_.clear();
  }
  std::vector<store::Change> changes;
  std::set<std::string_view> present;
  for (const store::Entry& entry : state.entries) {
    ResourceCache* cache = cache_of_key(origin, entry.key);
    if (cache == nullptr || cache->is_detached()) continue;
    present.insert(entry.key);
    const std::string_view key = std::string_view(entry.key).substr(cache->resource().storage.size());
    const ObjectPtr known = cache->find(key);
    if (known && known->revision == entry.mod_revision) continue;
    const Unreadable* bad = cache->find_unreadable(key);
    if (bad != nullptr && bad->revision == entry.mod_revision) continue;
    changes.push_back({entry.key, entry.mod_revision, entry.create_revision, entry.value, nullptr});
  }
  for (const auto& cache : caches_) {
    if (&cache->origin() != &origin) continue;
    const auto take_away = [&](const auto& known) {
      for (const auto& [key, value] : known) {
        std::string store_key = cache->resource().storage + key;
        if (present.contains(store_key)) continue;
        changes.push_back({std::move(store_key), state.revision, {}, nullptr, nullptr});
      }
    };
    take_away(cache->objects());
    take_away(cache->unreadable());
  }
  std::ranges::stable_sort(changes, {}, &store::Change::revision);
  origin.is_followed_ = true;
  for (const store::Change& change : changes) apply(origin, change);
  for (const auto& cache : caches_) {
    if (&cache->origin() == &origin) cache->forget_history(state.revision);
  }
  on_reached(origin, state.revision);
}

void WatchCache::on_watch_end(Origin& origin, const Error& error) {
  listener_.on_cache_lost(origin, error);
}

}  // namespace spillway::apiserver
