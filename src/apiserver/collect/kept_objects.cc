#include "apiserver/collect/kept_objects.h"

#include "apiserver/collect/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>

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

Json with(Json current, const Json& wanted) {
  put(current, wanted);
  return current;
}

}  // namespace

void KeptObjects::on_event(const ResourceCache& cache, const EventPtr& event) {
  is_dirty_ = is_dirty_ || concerns(cache, event->object ? *event->object : *event->previous);
}

void KeptObjects::act() {
  if (is_writing_ || !is_dirty_) return;
  const std::vector<Wanted> all = wanted();
  is_dirty_ = std::ranges::any_of(all, [this](const Wanted& each) { return mend(each); });
}

bool KeptObjects::mend(const Wanted& wanted) {
  const std::string ns(wanted.document.string_at({"metadata", "namespace"}));
  const std::string name(wanted.document.string_at({"metadata", "name"}));
  const ObjectPtr there = wanted.cache->find(object_key(ns, name));
  if (there && there->meta.deleting) return false;
  if (there && with(there->document(), wanted.document) == there->document()) return false;
  is_writing_ = true;
  const std::string what = fmt::format("{}/{}", wanted.cache->resource().plural, name);
  auto done = [this, what](const StatusResult<Written>& result) { settle(what, result); };
  if (!there) {
    writer_.create({&wanted.cache->resource(), ns, wanted.document, false, {server_user(), "spillway", false}},
                   std::move(done));
    return true;
  }
  UpdateJob job{
      .resource = &wanted.cache->resource(),
      .ns = ns,
      .name = name,
      .change = [uid = there->meta.uid, document = wanted.document](const Json& current) -> StatusResult<Json> {
        return current.string_at({"metadata", "uid"}) == uid ? with(current, document) : current;
      },
      .trusted = true,
      .context = {server_user(), "spillway", false}};
  writer_.update(std::move(job), std::move(done));
  return true;
}

/// Of several one is mended at a time; the end of each looks at all of them again.
void KeptObjects::settle(const std::string& what, const StatusResult<Written>& result) {
  is_writing_ = false;
  if (result) {
    told_.clear();
    return run();
  }
  std::string problem = what + ": " + result.error().message;
  if (problem != told_)
    core_.log.warning("an object that the server keeps cannot be written",
                      {{"for", std::string(what_)}, {"error", problem}});
  told_ = std::move(problem);
  is_dirty_ = false;
  core_.timers.at(core_.now.mono + kRetry, [this] {
    is_dirty_ = true;
    run();
  });
}

}  // namespace spillway::apiserver
