#include "controllers/endpoints/slice_writes.h"

#include "api/codec/codec.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/step_run.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace spillway::controllers {

enum class SliceStep : std::uint8_t {
  kCreation,  // create the next slice; back to kCreation
  kUpdate,    // update the next slice; back to kUpdate
  kDeletion,  // delete the next slice; back to kDeletion
  kEnd,
};

/// The writes of one plan. Thread: loop.
class SliceRun final : public StepRun<SliceRun, SliceStep> {
 public:
  using Step = SliceStep;

  /// `writes` must outlive the run.
  SliceRun(SliceWrites& writes, std::string key, endpoints::SlicePlan plan, SliceWrites::Done done);

 private:
  Next run(Step step, Now now) override;
  Next create();
  Next on_created(const Result<api::Json>& outcome, Now now);
  Next update();
  Next on_updated(const Result<api::Json>& outcome, Now now);
  Next remove();
  Next on_removed(const Result<api::Json>& outcome, Now now);
  Next end(const std::optional<SliceWrites::Failure>& failure, Now now);

  SliceWrites& writes_;
  std::string key_;
  endpoints::SlicePlan plan_;
  SliceWrites::Done done_;
  // Writes of each sort that have been sent.
  std::size_t created_ = 0;
  std::size_t updated_ = 0;
  std::size_t deleted_ = 0;
};

namespace {

constexpr std::array kSliceSteps = {SliceStep::kCreation, SliceStep::kUpdate, SliceStep::kDeletion, SliceStep::kEnd};

std::string slices_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::EndpointSlice::kApiVersion, "endpointslices", neighbour.ns, name);
}

}  // namespace

std::optional<Instant> SliceWrites::waits(const std::string& key, Instant now) {
  const std::string ns = key.substr(0, key.find('/'));
  const auto shown = [&](const std::string& name) -> std::optional<std::string> {
    const auto slice = cache_.find(ns + "/" + name);
    return slice ? std::optional(slice->metadata.resource_version) : std::nullopt;
  };
  return unseen_.waits(key, shown, now);
}

void SliceWrites::carry_out(const std::string& key, endpoints::SlicePlan plan, Done done, Now now) {
  std::make_shared<SliceRun>(*this, key, std::move(plan), std::move(done))->advance(now);
}

SliceRun::SliceRun(SliceWrites& writes, std::string key, endpoints::SlicePlan plan, SliceWrites::Done done)
    : StepRun(kSliceSteps), writes_(writes), key_(std::move(key)), plan_(std::move(plan)), done_(std::move(done)) {}

Next SliceRun::run(Step step, Now now) {
  switch (step) {
    case Step::kCreation:
      return create();
    case Step::kUpdate:
      return update();
    case Step::kDeletion:
      return remove();
    case Step::kEnd:
      return end(std::nullopt, now);
  }
  return Next::kEnd;
}

Next SliceRun::create() {
  if (created_ == plan_.created.size()) return Next::kStep;
  steps_.go_to(Step::kCreation);
  const api::EndpointSlice& slice = plan_.created[created_++];
  writes_.client_.create(slices_path(slice.metadata), api::encode(slice), then(&SliceRun::on_created));
  return Next::kWait;
}

Next SliceRun::on_created(const Result<api::Json>& outcome, Now now) {
  if (!outcome) return end(SliceWrites::Failure{"create", {}, outcome.error()}, now);
  writes_.unseen_.wrote(key_, std::string(outcome->string_at({"metadata", "name"})),
                        outcome->string_at({"metadata", "resourceVersion"}), now.mono);
  if (writes_.on_written_) writes_.on_written_("create");
  return Next::kStep;
}

Next SliceRun::update() {
  if (updated_ == plan_.updated.size()) return Next::kStep;
  steps_.go_to(Step::kUpdate);
  const api::EndpointSlice& slice = plan_.updated[updated_++];
  writes_.client_.update(slices_path(slice.metadata, slice.metadata.name), api::encode(slice),
                         then(&SliceRun::on_updated));
  return Next::kWait;
}

Next SliceRun::on_updated(const Result<api::Json>& outcome, Now now) {
  const std::string& name = plan_.updated[updated_ - 1].metadata.name;
  if (!outcome) return end(SliceWrites::Failure{"update", name, outcome.error()}, now);
  writes_.unseen_.wrote(key_, name, outcome->string_at({"metadata", "resourceVersion"}), now.mono);
  if (writes_.on_written_) writes_.on_written_("update");
  return Next::kStep;
}

Next SliceRun::remove() {
  if (deleted_ == plan_.deleted.size()) return Next::kStep;
  steps_.go_to(Step::kDeletion);
  const api::ObjectMeta& slice = plan_.deleted[deleted_++]->metadata;
  writes_.client_.remove(slices_path(slice, slice.name), delete_options(slice), then(&SliceRun::on_removed));
  return Next::kWait;
}

Next SliceRun::on_removed(const Result<api::Json>& outcome, Now now) {
  const api::ObjectMeta& slice = plan_.deleted[deleted_ - 1]->metadata;
  const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
  if (!outcome && !gone) return end(SliceWrites::Failure{"delete", slice.name, outcome.error()}, now);
  if (outcome) writes_.unseen_.removed(key_, slice.name, slice.resource_version, now.mono);
  if (outcome && writes_.on_written_) writes_.on_written_("delete");
  return Next::kStep;
}

Next SliceRun::end(const std::optional<SliceWrites::Failure>& failure, Now now) {
  done_(failure, now);
  return Next::kEnd;
}

}  // namespace spillway::controllers
