#include "apiserver/collect/kept_objects.h"

#include "apiserver/collect/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

bool is_empty_list(const Json* value) {
  return value == nullptr || value->is_null() || (value->if_array() != nullptr && value->if_array()->empty());
}

/// The members that `wanted` has, as it has them; lists whole. An empty list may be absent.
void put(Json& current, const Json& wanted) {
  const Json::Object* members = wanted.if_object();
  if (members == nullptr) {
    current = wanted;
    return;
  }
  for (const auto& [key, value] : *members) {
    if (value.is_array() && is_empty_list(&value) && is_empty_list(std::as_const(current).find(key))) continue;
    put(current[key], value);
  }
}

/// `there` with the wanted members.
Json with(Json there, const Json& wanted, std::span<const std::string_view> spec_members) {
  put(there, wanted);
  Json* const spec = spec_members.empty() ? nullptr : there.find("spec");
  if (spec == nullptr || spec->if_object() == nullptr) return there;
  std::vector<std::string> strange;
  for (const auto& [key, value] : *std::as_const(*spec).if_object()) {
    if (std::ranges::find(spec_members, std::string_view(key)) == spec_members.end()) strange.push_back(key);
  }
  for (const std::string& key : strange) spec->erase({key});
  return there;
}

}  // namespace

api::Json KeptObjects::kept_form(api::Json there, const Wanted& wanted) {
  if (wanted.kept != nullptr) return wanted.kept(std::move(there), wanted.document);
  return with(std::move(there), wanted.document, wanted.spec_members);
}

KeptObjects::KeptObjects(Core& core, Writer& writer, std::string_view what)
    : core_(core), writer_(writer), namespaces_(core.cache.of(core.registry.get("namespaces"))), what_(what) {}

void KeptObjects::on_event(const ResourceCache& cache, const EventPtr& event) {
  const bool is_new_namespace = &cache == &namespaces_ && !event->previous;
  is_dirty_ = is_dirty_ || is_new_namespace || concerns(cache, event->object ? *event->object : *event->previous);
}

/// Restores one object at a time; the end of each write checks all of them again.
void KeptObjects::act() {
  if (is_writing_ || is_waiting_ || !std::exchange(is_dirty_, false)) return;
  for (const Wanted& each : wanted()) {
    if (restore(each)) return;
  }
}

bool KeptObjects::restore(const Wanted& wanted) {
  const std::string ns(wanted.document.string_at({"metadata", "namespace"}));
  const std::string name(wanted.document.string_at({"metadata", "name"}));
  if (!ns.empty() && !namespaces_.find(ns)) return false;  // the event of the namespace will follow
  const ObjectPtr there = wanted.cache->find(object_key(ns, name));
  if (there && there->meta.deleting) return false;
  if (there && kept_form(there->document(), wanted) == there->document()) return false;
  if (!may_write()) return true;
  is_writing_ = true;
  const std::string what = fmt::format("{}/{}", wanted.cache->resource().plural, name);
  auto done = [this, what](const StatusResult<Written>& result) { on_written(what, result); };
  if (!there) {
    writer_.create({&wanted.cache->resource(), ns, wanted.document, false, {server_user(), "spillway", false}},
                   std::move(done));
    return true;
  }
  UpdateJob job{.resource = &wanted.cache->resource(),
                .ns = ns,
                .name = name,
                .change = [uid = there->meta.uid, wanted](const Json& current) -> StatusResult<Json> {
                  if (current.string_at({"metadata", "uid"}) != uid) return current;
                  return kept_form(current, wanted);
                },
                .trusted = wanted.spec_members.empty() && wanted.kept == nullptr,
                .context = {server_user(), "spillway", false}};
  writer_.update(std::move(job), std::move(done));
  return true;
}

bool KeptObjects::may_write() {
  constexpr int kDoublingsMax = 6;
  const Instant now = core_.now.mono;
  if (!written_ || *written_ + kQuiet < now) writes_ = 0;
  if (writes_ >= kFreeWrites) {
    const Duration pause = seconds(std::int64_t{1} << std::min(writes_ - kFreeWrites, kDoublingsMax));
    const Instant due = *written_ + std::min(pause, kPauseMax);
    if (now < due) {
      wait(due - now);
      return false;
    }
  }
  ++writes_;
  written_ = now;
  return true;
}

void KeptObjects::wait(Duration time) {
  is_waiting_ = true;
  core_.timers.at(core_.now.mono + time, [this] {
    is_waiting_ = false;
    requeue();
  });
}

void KeptObjects::on_written(const std::string& what, const StatusResult<Written>& result) {
  is_writing_ = false;
  if (result) {
    logged_.clear();
    return requeue();
  }
  if (result.error().reason == "AlreadyExists") return wait(kEventWait);  // another writer has created it meanwhile
  std::string problem = what + ": " + result.error().message;
  if (problem != logged_) {
    core_.log.warning("an object that the server keeps cannot be written",
                      {{"for", std::string(what_)}, {"error", problem}});
  }
  logged_ = std::move(problem);
  wait(kRetry);
}

}  // namespace spillway::apiserver
