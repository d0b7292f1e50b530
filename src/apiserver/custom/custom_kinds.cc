#include "apiserver/custom/custom_kinds.h"

#include "apiserver/custom/definition_names.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr Duration kReadObjectsAgain = seconds(1);
// Limits of replaced tables that requests still use: their number, and the bytes of their definitions.
constexpr std::size_t kKeptBytesMax = 2 * kDefinitionsBytesMax;
// A kind of a short definition holds about so much: its rows, columns and schemas.
constexpr std::size_t kKindBytes = 16U << 10U;

}  // namespace

CustomKinds::CustomKinds(Core& core, ResourceRegistry& registry, WatchHub& hub)
    : core_(core), registry_(registry), hub_(hub), definitions_(core.cache.of(registry.get(kDefinitions))) {}

const ResourceCache* CustomKinds::served(std::string_view name) const {
  const auto found = kinds_.find(name);
  return found != kinds_.end() && found->second.is_ready ? found->second.cache : nullptr;
}

bool CustomKinds::is_reading(std::string_view name) const {
  return reading_.contains(name);
}

void CustomKinds::when_read(std::function<void()> act) {
  if (reading_.empty()) return act();
  waiting_.push_back(std::move(act));
}

void CustomKinds::load() {
  for (const auto& [name, definition] : definitions_.objects()) dirty_.insert(name);
}

void CustomKinds::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache == &definitions_) dirty_.insert((event->object ? event->object : event->previous)->name);
}

void CustomKinds::act() {
  // Kinds are kept for a while after they were replaced: a client that changes definitions without end waits for that.
  if (dirty_.empty() || !has_room_to_keep()) return;
  while (!dirty_.empty() && has_room_to_keep()) sync(dirty_.extract(dirty_.begin()).value());
  publish();
}

bool CustomKinds::has_room_to_keep() const {
  return kept_bytes_ < kKeptBytesMax;
}

void CustomKinds::sync(const std::string& name) {
  const ObjectPtr object = definitions_.find(name);
  if (!object) return retire(name);
  const api::DocumentPtr definition = object->shared_document();
  if (!is_condition_true(*definition, "Established")) return retire(name);
  const auto known = kinds_.find(name);
  if (known != kinds_.end() && known->second.kind->digest() == CustomKind::digest_of(*definition)) return;
  const bool has_room = known != kinds_.end() ||
                        (kinds_.size() < kDefinitionsMax && (names_.contains(name) || names_.size() < kNamesMax));
  if (!has_room || registry_.is_built_in_group(definition->string_at({"spec", "group"}))) {
    core_.log.warning("a custom kind is not served",
                      {{"definition", name}, {"reason", "no room, or a built-in group"}});
    return;
  }
  Result<CustomKindPtr> kind = CustomKind::make(*definition);
  if (!kind) {
    core_.log.warning("a custom kind is not served", {{"definition", name}, {"reason", kind.error().text()}});
    return retire(name);
  }
  begin(name, *std::move(kind), object->text->size());
}

void CustomKinds::begin(const std::string& name, CustomKindPtr kind, std::size_t bytes) {
  Served& served = kinds_[name];
  keep(served);
  names_.insert(name);
  served.cache = &core_.cache.attach(kind);
  if (served.kind == nullptr || !kind->has_shape_of(*served.kind)) changed_.push_back(served.cache);
  served.kind = std::move(kind);
  served.bytes = bytes;
  is_stale_ = true;
  if (served.is_ready || reading_.contains(name)) return;
  reading_[name] = ++turn_;
  read_objects(name, turn_);
}

void CustomKinds::read_objects(const std::string& name, std::uint64_t turn) {
  if (!is_reading(name, turn)) return;
  ResourceCache& cache = *kinds_.at(name).cache;
  cache.origin().store().range(
      {.prefix = cache.resource().storage, .start_after = {}, .at = std::nullopt},
      [this, name, turn](const Result<store::RangeResult>& state) { on_objects(name, turn, state); });
}

void CustomKinds::on_objects(const std::string& name, std::uint64_t turn, const Result<store::RangeResult>& state) {
  if (!is_reading(name, turn)) return;
  if (!state) {
    core_.log.warning("the objects of a custom kind cannot be read",
                      {{"definition", name}, {"error", state.error().text()}});
    return read_objects_later(name, turn);
  }
  ResourceCache& filled = *kinds_.at(name).cache;
  core_.cache.fill(filled, *state);
  // All resources of the cache must have reached the revision at which this kind becomes visible.
  filled.origin().barrier([this, name, turn](const Result<store::Revision>& reached) {
    if (is_reading(name, turn)) reached ? finish_reading(name) : read_objects_later(name, turn);
  });
}

void CustomKinds::read_objects_later(const std::string& name, std::uint64_t turn) {
  core_.timers.at(core_.now.mono + kReadObjectsAgain, [this, name, turn] { read_objects(name, turn); });
}

/// False: the kind was removed meanwhile, and perhaps added again.
bool CustomKinds::is_reading(const std::string& name, std::uint64_t turn) const {
  const auto found = reading_.find(name);
  return found != reading_.end() && found->second == turn;
}

void CustomKinds::finish_reading(const std::string& name) {
  reading_.erase(name);
  kinds_.at(name).is_ready = true;
  is_stale_ = true;
  publish();
}

void CustomKinds::retire(const std::string& name) {
  reading_.erase(name);
  const auto found = kinds_.find(name);
  if (found == kinds_.end()) return publish();
  keep(found->second);
  changed_.push_back(found->second.cache);
  core_.cache.detach(*found->second.cache);
  kinds_.erase(found);
  is_stale_ = true;
}

/// Writes may have begun with its rows although no table has had it yet: they are in the cache from the start.
void CustomKinds::keep(const Served& served) {
  if (served.kind == nullptr) return;
  const std::size_t bytes = served.bytes + kKindBytes;
  kept_.push_back({core_.now.mono, served.kind, bytes});
  ++kept_of_name_[std::string(served.kind->name())];
  kept_bytes_ += bytes;
}

/// Publishes the changed table of kinds. Watches of kinds whose columns or schemas changed end, and their clients
/// reconnect.
void CustomKinds::publish() {
  if (std::exchange(is_stale_, false)) {
    std::vector<CustomKindPtr> ready;
    for (const auto& [name, served] : kinds_) {
      if (served.is_ready) ready.push_back(served.kind);
    }
    registry_.replace_custom(std::move(ready));
    for (const ResourceCache* cache : std::exchange(changed_, {})) hub_.end_all(*cache);
    arm_release();
  }
  if (!reading_.empty()) return;
  for (const auto& waiting : std::exchange(waiting_, {})) waiting();
}

/// Releases the cache of a removed kind; a later kind of the same name would be found in kinds_ or kept_.
void CustomKinds::give_back_cache(const CustomKind& kind) {
  const std::string name(kind.name());
  const auto kept = kept_of_name_.find(name);
  if (--kept->second != 0) return;
  kept_of_name_.erase(kept);
  if (kinds_.contains(name) || names_.erase(name) == 0) return;
  core_.cache.release(kind.stored().storage);
}

void CustomKinds::arm_release() {
  const Instant kept_since = core_.now.mono - kKept;
  while (!kept_.empty() && kept_.front().since <= kept_since) {
    kept_bytes_ -= kept_.front().bytes;
    const CustomKindPtr last = std::move(kept_.front().kind);
    kept_.pop_front();
    give_back_cache(*last);
  }
  if (release_ || kept_.empty()) return;
  release_ = core_.timers.at(kept_.front().since + kKept, [this] {
    release_.reset();
    arm_release();
    run();
  });
}

}  // namespace spillway::apiserver
