#include "controllers/endpoints/slice_writes.h"

#include "api/codec/codec.h"
#include "controllers/shared/owned_pods.h"

#include <cstddef>
#include <utility>

namespace spillway::controllers {

namespace {

std::string slices_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::EndpointSlice::kApiVersion, "endpointslices", neighbour.ns, name);
}

}  // namespace

struct SliceWrites::Work {
  std::string key;
  endpoints::SlicePlan plan;
  Done done;
  std::size_t next = 0;  // index into the slices of this step
};

std::optional<Instant> SliceWrites::waits(const std::string& key, Instant now) {
  const std::string ns = key.substr(0, key.find('/'));
  const auto shown = [&](const std::string& name) -> std::optional<std::string> {
    const auto slice = cache_.find(ns + "/" + name);
    return slice ? std::optional(slice->metadata.resource_version) : std::nullopt;
  };
  return unseen_.waits(key, shown, now);
}

void SliceWrites::carry_out(const std::string& key, endpoints::SlicePlan plan, Done done, Now now) {
  create(std::make_shared<Work>(Work{key, std::move(plan), std::move(done)}), now);
}

void SliceWrites::create(const WorkPtr& work, Now now) {
  if (work->next == work->plan.created.size()) {
    work->next = 0;
    return update(work, now);
  }
  const api::EndpointSlice& slice = work->plan.created[work->next++];
  client_.create(slices_path(slice.metadata), api::encode(slice),
                 [this, work](const Result<api::Json>& outcome, Now then) {
                   if (!outcome) return work->done(Failure{"create", {}, outcome.error()}, then);
                   unseen_.wrote(work->key, std::string(outcome->string_at({"metadata", "name"})),
                                 outcome->string_at({"metadata", "resourceVersion"}), then.mono);
                   if (on_written_) on_written_("create");
                   create(work, then);
                 });
}

void SliceWrites::update(const WorkPtr& work, Now now) {
  if (work->next == work->plan.updated.size()) {
    work->next = 0;
    return remove(work, now);
  }
  const api::EndpointSlice& slice = work->plan.updated[work->next++];
  const std::string& name = slice.metadata.name;
  client_.update(slices_path(slice.metadata, name), api::encode(slice),
                 [this, work, name](const Result<api::Json>& outcome, Now then) {
                   if (!outcome) return work->done(Failure{"update", name, outcome.error()}, then);
                   unseen_.wrote(work->key, name, outcome->string_at({"metadata", "resourceVersion"}), then.mono);
                   if (on_written_) on_written_("update");
                   update(work, then);
                 });
}

void SliceWrites::remove(const WorkPtr& work, Now now) {
  if (work->next == work->plan.deleted.size()) return work->done(std::nullopt, now);
  const api::ObjectMeta& slice = work->plan.deleted[work->next++]->metadata;
  client_.remove(
      slices_path(slice, slice.name), delete_options(slice),
      [this, work, name = slice.name, version = slice.resource_version](const Result<api::Json>& outcome, Now then) {
        const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
        if (!outcome && !gone) return work->done(Failure{"delete", name, outcome.error()}, then);
        if (outcome) unseen_.removed(work->key, name, version, then.mono);
        if (outcome && on_written_) on_written_("delete");
        remove(work, then);
      });
}

}  // namespace spillway::controllers
