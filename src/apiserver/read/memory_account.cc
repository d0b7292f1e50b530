#include "apiserver/read/memory_account.h"

#include "api/json/json_values.h"
#include "base/heap_size.h"

#include <algorithm>
#include <memory>

namespace spillway::apiserver {

namespace {

/// Reference counts and value of a shared pointer, in one block of memory.
template <typename T>
constexpr std::size_t shared_block_bytes() {
  return block_bytes(2 * sizeof(void*) + sizeof(T));
}

std::size_t value_bytes(const store::Value& value) {
  return value ? shared_block_bytes<std::string>() + text_bytes(*value) : 0;
}

}  // namespace

void MemoryAccount::count_object(const ResourceCache& cache, const StoredObject& object) {
  texts_.add(value_bytes(object.text));
  if (object.at_rest) at_rest_.add(value_bytes(object.at_rest));
  fields_.add(shared_block_bytes<StoredObject>() + bytes_of_fields(object));
  if (object.parsed) documents_.add(shared_block_bytes<api::Json>() + api::tree_bytes(*object.parsed));
  const std::size_t entry = tree_node_bytes<ObjectMap::value_type>() + text_bytes(object.key);
  indexes_.add(entry);
  if (cache.indexes_nodes() && !object.meta.fields.front().empty()) indexes_.add(entry);
  if (!cache.resource().keeps_history) indexes_.add(tree_node_bytes<std::pair<store::Revision, ObjectPtr>>());
}

void MemoryAccount::count_event(const CacheEvent& event) {
  events_.add(shared_block_bytes<CacheEvent>() + sizeof(EventPtr));
  for (const ObjectPtr& object : {event.previous, event.last}) {
    if (!object) continue;
    former_.add(value_bytes(object->text) + value_bytes(object->at_rest) + shared_block_bytes<StoredObject>() +
                bytes_of_fields(*object));
  }
}

bool MemoryAccount::count_objects(const ResourceCache& cache, SliceBudget& budget) {
  const ObjectMap& objects = cache.objects();
  for (auto at = key_.empty() ? objects.begin() : objects.upper_bound(key_); at != objects.end(); ++at) {
    const StoredObject& object = *at->second;
    if (!budget.take(kVisitCost + (object.parsed ? object.text->size() : 0))) return false;
    count_object(cache, object);
    key_ = object.key;
  }
  return true;
}

bool MemoryAccount::count_history(const ResourceCache& cache, SliceBudget& budget) {
  const auto& events = cache.history();
  const auto from =
      std::ranges::upper_bound(events, revision_, {}, [](const EventPtr& event) { return event->revision; });
  for (auto at = from; at != events.end(); ++at) {
    if (!budget.take(kVisitCost)) return false;
    count_event(**at);
    revision_ = (*at)->revision;
  }
  return true;
}

bool MemoryAccount::step(SliceBudget& budget) {
  for (; resource_ < cache_.all().size(); ++resource_) {
    const ResourceCache& cache = *cache_.all()[resource_];
    if (!objects_counted_ && !count_objects(cache, budget)) return false;
    objects_counted_ = true;
    if (!count_history(cache, budget)) return false;
    objects_counted_ = false;
    key_.clear();
    revision_ = {};
  }
  return true;
}

telemetry::MemoryRows MemoryAccount::rows() const {
  return {{"objects: texts", texts_.count, texts_.bytes},
          {"objects: stored values that differ from the text", at_rest_.count, at_rest_.bytes},
          {"objects: names, labels, owners, selectable fields", fields_.count, fields_.bytes},
          {"objects: parsed documents", documents_.count, documents_.bytes},
          {"objects: indexes by key, node and revision", indexes_.count, indexes_.bytes},
          {"history: events", events_.count, events_.bytes},
          {"history: former values", former_.count, former_.bytes}};
}

}  // namespace spillway::apiserver
