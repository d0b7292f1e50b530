#include "apiserver/custom/definition_controller.h"

#include "apiserver/collect/bootstrap.h"
#include "apiserver/resource/definition_approval.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr Duration kRequeueDelay = seconds(1);
constexpr Duration kRecheckDelay = seconds(30);  // recheck of states that no event reports

bool is_definition(const Resource& resource) {
  return resource.is("apiextensions.k8s.io", "CustomResourceDefinition");
}

bool is_empty(const ResourceCache& cache) {
  return cache.objects().empty() && cache.unreadable().empty();
}

std::string built_in_group(std::string_view group) {
  return fmt::format("the group \"{}\" is served by this server itself", group);
}

}  // namespace

DefinitionController::DefinitionController(Core& core, const CustomKinds& kinds, Writer& writer, Remover& remover)
    : core_(core),
      kinds_(kinds),
      writer_(writer),
      remover_(remover),
      definitions_(core.cache.of(core.registry.get(kDefinitions))) {}

void DefinitionController::load() {
  for (auto* names : {&unnamed_, &clearing_, &due_, &kept_}) names->clear();
  namings_.clear();
  for (const auto& [name, definition] : definitions_.objects()) {
    if (definition->meta.deleting) {
      clearing_.insert(name);
      due_.insert(name);
    } else {
      unnamed_.insert(name);
    }
  }
}

void DefinitionController::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache != &definitions_) {
    if (cache.resource().custom == nullptr || event->object) return;
    const std::string name(cache.resource().custom->kind->name());
    if (clearing_.contains(name)) due_.insert(name);
    return;
  }
  if (!event->object) return forget(event->previous->name);
  const std::string& name = event->object->name;
  if (event->object->meta.deleting) {
    clearing_.insert(name);
    due_.insert(name);
  } else {
    unnamed_.insert(name);
  }
}

/// Called when a definition is gone: its names may be given to another one.
void DefinitionController::forget(const std::string& name) {
  clearing_.erase(name);
  kept_.erase(name);
  namings_.erase(name);
  for (const auto& [other, naming] : namings_) {
    if (!naming.is_accepted) unnamed_.insert(other);
  }
}

void DefinitionController::act() {
  for (const std::string& name : std::exchange(due_, {})) clear(name);
  name_next();
}

/// Definitions are large: each is parsed once for every revision of it, not once for every other definition.
const DefinitionController::Naming& DefinitionController::naming_of(const StoredObject& definition) {
  Naming& naming = namings_[definition.name];
  if (naming.revision == definition.revision) return naming;
  const api::DocumentPtr document = definition.shared_document();
  Json part = Json::object();
  for (const auto path : {std::initializer_list<std::string_view>{"metadata", "annotations", kApprovalAnnotation},
                          {"spec", "group"},
                          {"spec", "names"},
                          {"status"}}) {
    if (const Json* value = document->at(path)) part.make(path) = *value;
  }
  naming = {definition.revision, std::string(part.string_at({"spec", "group"})),
            is_condition_true(part, "NamesAccepted"), std::move(part)};
  return naming;
}

TakenNames DefinitionController::taken_by_others(std::string_view group, std::string_view name) {
  TakenNames taken;
  for (const auto& [other, object] : definitions_.objects()) {
    if (other == name) continue;
    const Naming& naming = naming_of(*object);
    if (naming.group == group) taken.add(naming.part);
  }
  return taken;
}

std::string DefinitionController::refusal_of(const Json& definition) const {
  const std::string_view group = definition.string_at({"spec", "group"});
  return core_.registry.is_built_in_group(group) ? built_in_group(group) : std::string();
}

void DefinitionController::name_next() {
  while (!is_writing_ && !unnamed_.empty()) {
    const std::string name = *unnamed_.begin();
    unnamed_.erase(unnamed_.begin());
    const ObjectPtr object = definitions_.find(name);
    if (!object || object->meta.deleting) continue;
    const Naming& naming = naming_of(*object);
    const TakenNames taken = taken_by_others(naming.group, name);
    if (with_names(naming.part, taken, refusal_of(naming.part), core_.now.wall) == naming.part) continue;
    write_status(name, object->meta.uid);
  }
}

/// One after the other: a name that was given away shows in the cache before the next is given.
void DefinitionController::write_status(const std::string& name, const std::string& uid) {
  is_writing_ = true;
  UpdateJob job{.resource = &definitions_.resource(),
                .name = name,
                .part = SubresourceId::kStatus,
                .change = [this, name](const Json& current) -> StatusResult<Json> {
                  const TakenNames taken = taken_by_others(current.string_at({"spec", "group"}), name);
                  return with_names(current, taken, refusal_of(current), core_.now.wall);
                },
                .uid = uid,
                .trusted = true,
                .context = {server_user(), {}, false}};
  writer_.update(std::move(job),
                 [this, name](const StatusResult<Written>& result) { on_status_written(name, result); });
}

void DefinitionController::on_status_written(const std::string& name, const StatusResult<Written>& result) {
  is_writing_ = false;
  const bool is_done = result || result.error().code == 404 || result.error().code == 409;
  if (!is_done) requeue(name);
  run();
}

/// Deletes the objects of the kind first, as many at a time as may be in flight.
void DefinitionController::clear(const std::string& name) {
  const ObjectPtr object = definitions_.find(name);
  if (!object || !object->meta.deleting) return;
  if (kinds_.is_reading(name)) return requeue(name);
  const ResourceCache* cache = kinds_.served(name);
  if (cache == nullptr || is_empty(*cache)) return finish(name, object->meta.uid);
  if (!cache->unreadable().empty()) recheck_later(name);
  std::vector<ObjectPtr> left;
  cache->visit({}, {}, [&](const ObjectPtr& instance) {
    if (!instance->meta.deleting) left.push_back(instance);
    return removing_.size() + left.size() < kCollectorWritesMax;
  });
  for (const ObjectPtr& instance : left) {
    const std::string store_key = cache->resource().storage + instance->key;
    if (removing_.size() >= kCollectorWritesMax || !removing_.insert(store_key).second) continue;
    DeleteOptions options;
    options.uid = instance->meta.uid;
    options.propagation = Propagation::kBackground;
    remover_.remove(
        {&cache->resource(), instance->ns, instance->name, options},
        [this, name, store_key](const StatusResult<Removed>& result) { on_removed(name, store_key, result); });
  }
}

void DefinitionController::on_removed(const std::string& name, const std::string& store_key,
                                      const StatusResult<Removed>& result) {
  removing_.erase(store_key);
  if (!result && result.error().code != 404) return requeue(name);
  if (clearing_.contains(name)) due_.insert(name);
  if (removing_.size() <= kCollectorWritesMax / 2) run();
}

/// Writes that other servers have acknowledged must be visible here before the kind counts as empty.
void DefinitionController::finish(const std::string& name, const std::string& uid) {
  if (!finishing_.insert(name).second) return;
  definitions_.origin().barrier(
      [this, name, uid](const Result<store::Revision>& reached) { on_present(name, uid, reached); });
}

void DefinitionController::on_present(const std::string& name, const std::string& uid,
                                      const Result<store::Revision>& reached) {
  const ResourceCache* cache = kinds_.served(name);
  if (!reached || !acts() || kinds_.is_reading(name) || (cache != nullptr && !is_empty(*cache))) {
    finishing_.erase(name);
    return requeue(name);
  }
  cache == nullptr ? check_store(name, uid) : release(name, uid);
}

/// A kind that is not served may have objects all the same: another server, or an earlier one, has served it. The
/// objects of a built-in group are not the definition's.
void DefinitionController::check_store(const std::string& name, const std::string& uid) {
  const ObjectPtr object = definitions_.find(name);
  const api::DocumentPtr definition = object ? object->shared_document() : std::make_shared<const Json>();
  const std::string_view group = definition->string_at({"spec", "group"});
  if (!object || core_.registry.is_built_in_group(group)) return release(name, uid);
  std::string prefix = fmt::format("/registry/{}/{}/", group, definition->string_at({"spec", "names", "plural"}));
  core_.store.range({.prefix = std::move(prefix), .start_after = {}, .limit = 1, .at = std::nullopt},
                    [this, name, uid](const Result<store::RangeResult>& found) { on_found(name, uid, found); });
}

void DefinitionController::on_found(const std::string& name, const std::string& uid,
                                    const Result<store::RangeResult>& found) {
  if (found && found->entries.empty() && acts()) return release(name, uid);
  finishing_.erase(name);
  if (!found || !acts()) return requeue(name);
  if (kept_.insert(name).second) {
    core_.log.warning("a definition cannot be deleted: its kind is not served, and objects of it exist",
                      {{"definition", name}, {"key", found->entries.front().key}});
  }
  recheck_later(name);
}

void DefinitionController::release(const std::string& name, const std::string& uid) {
  UpdateJob job{.resource = &definitions_.resource(),
                .name = name,
                .change = [](const Json& current) -> StatusResult<Json> {
                  Json document = current;
                  Json* list = document.at({"metadata", "finalizers"});
                  if (list == nullptr || list->if_array() == nullptr) return document;
                  std::erase_if(*list->if_array(),
                                [](const Json& each) { return each.string_at({}) == kCleanupFinalizer; });
                  if (list->if_array()->empty()) document.erase({"metadata", "finalizers"});
                  return document;
                },
                .uid = uid,
                .trusted = true,
                .context = {server_user(), {}, false}};
  writer_.update(std::move(job), [this, name](const StatusResult<Written>& result) { on_released(name, result); });
}

void DefinitionController::on_released(const std::string& name, const StatusResult<Written>& result) {
  finishing_.erase(name);
  if (!result && result.error().code != 404 && result.error().code != 409) requeue(name);
}

void DefinitionController::requeue(const std::string& name) {
  core_.timers.at(core_.now.mono + kRequeueDelay, [this, name] {
    const ObjectPtr object = definitions_.find(name);
    if (object) (object->meta.deleting ? due_ : unnamed_).insert(name);
    run();
  });
}

/// No event reports the end of an unreadable value, or of one of a kind that is not served: rechecks later.
void DefinitionController::recheck_later(const std::string& name) {
  if (!rechecked_later_.insert(name).second) return;
  core_.timers.at(core_.now.mono + kRecheckDelay, [this, name] {
    rechecked_later_.erase(name);
    if (clearing_.contains(name)) due_.insert(name);
    run();
  });
}

StatusResult<void> DefinitionLimits::check_size(const Json& object, std::size_t bytes) {
  const Json* versions = object.at({"spec", "versions"});
  const std::size_t count = versions != nullptr && versions->if_array() != nullptr ? versions->if_array()->size() : 0;
  if (bytes > kDefinitionBytesMax) {
    return make_error(ErrorCode::kRequestEntityTooLarge,
                      "a CustomResourceDefinition may have at most {} bytes, this one has {}", kDefinitionBytesMax,
                      bytes);
  }
  if (count > kVersionsMax) {
    return make_error(ErrorCode::kRequestEntityTooLarge,
                      "a CustomResourceDefinition may have at most {} versions, this one has {}", kVersionsMax, count);
  }
  return {};
}

StatusResult<void> DefinitionLimits::check_create(const api::UserInfo& /*user*/, const Resource& resource,
                                                  const Json& object) const {
  if (!is_definition(resource)) return {};
  const std::string_view name = object.string_at({"metadata", "name"});
  const std::string_view group = object.string_at({"spec", "group"});
  if (core_.registry.is_built_in_group(group) && !group.empty()) {
    return api::forbidden_status(resource.group_resource(), name, built_in_group(group));
  }
  if (definitions_.objects().size() >= kDefinitionsMax) {
    return api::forbidden_status(resource.group_resource(), name,
                                 fmt::format("this server holds at most {} definitions", kDefinitionsMax));
  }
  const std::size_t bytes = api::to_text(object).size();
  SPILLWAY_TRY_VOID(check_size(object, bytes));
  return check_all(resource, name, bytes);
}

StatusResult<void> DefinitionLimits::check_all(const Resource& resource, std::string_view name,
                                               std::size_t more) const {
  std::size_t bytes = more;
  for (const auto& [key, each] : definitions_.objects()) bytes += each->text->size();
  if (bytes <= kDefinitionsBytesMax) return {};
  return api::forbidden_status(
      resource.group_resource(), name,
      fmt::format("this server holds definitions of at most {} bytes in all", kDefinitionsBytesMax));
}

StatusResult<void> DefinitionLimits::check_update(const api::UserInfo& /*user*/, const Resource& resource,
                                                  SubresourceId part, const Json& object, const Json& old) const {
  if (!is_definition(resource) || part != SubresourceId::kNone || object.find("spec") == nullptr) return {};
  const auto is_same = [&](std::string_view member) {
    const Json* now = object.find(member);
    const Json* before = old.find(member);
    return now != nullptr && before != nullptr && *now == *before;
  };
  const bool same_spec = is_same("spec");
  if (same_spec && is_same("metadata")) return {};
  const std::size_t bytes = api::to_text(object).size();
  const std::size_t bytes_before = api::to_text(old).size();
  if (!same_spec) SPILLWAY_TRY_VOID(check_size(object, bytes));
  if (bytes <= bytes_before) return {};
  return check_all(resource, object.string_at({"metadata", "name"}), bytes - bytes_before);
}

}  // namespace spillway::apiserver
