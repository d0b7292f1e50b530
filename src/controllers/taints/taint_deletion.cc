#include "controllers/taints/taint_deletion.h"

#include "api/text/time_text.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/paths.h"

#include <array>
#include <utility>

namespace spillway::controllers {

namespace {

constexpr std::array kTaintDeletionSteps = {TaintDeletionStep::kCondition, TaintDeletionStep::kDeletion,
                                            TaintDeletionStep::kPause};

api::Json disruption_patch(const api::Pod& pod, Now now) {
  api::Json condition = api::Json::object({{"type", "DisruptionTarget"},
                                           {"status", "True"},
                                           {"reason", "DeletionByTaintManager"},
                                           {"message", "Taint manager: deleting due to NoExecute taint"},
                                           {"lastTransitionTime", api::format_time(now.wall)}});
  if (pod.metadata.generation != 0) condition["observedGeneration"] = pod.metadata.generation;
  return api::Json::object({{"metadata", api::Json::object({{"uid", pod.metadata.uid}})},
                            {"status", api::Json::object({{"conditions", api::Json::array({condition})}})}});
}

api::Json eviction_of(const api::Pod& pod) {
  return api::Json::object(
      {{"apiVersion", "policy/v1"},
       {"kind", "Eviction"},
       {"metadata", api::Json::object({{"name", pod.metadata.name}, {"namespace", pod.metadata.ns}})},
       {"deleteOptions", delete_options(pod)}});
}

bool is_marked(const api::Pod& pod) {
  const api::PodCondition* known = api::find_condition(pod.status.conditions, "DisruptionTarget");
  return known != nullptr && known->status == "True" && known->reason == "DeletionByTaintManager";
}

}  // namespace

TaintDeletion::TaintDeletion(Shared shared, Options options, PodPtr pod, Done done)
    : StepRun(kTaintDeletionSteps), shared_(shared), options_(options), pod_(std::move(pod)), done_(std::move(done)) {}

Next TaintDeletion::run(Step step, Now now) {
  switch (step) {
    case Step::kCondition:
      return set_condition(now);
    case Step::kDeletion:
      return remove();
    case Step::kPause:
      return pause(now);
  }
  return Next::kEnd;
}

Next TaintDeletion::set_condition(Now now) {
  if (options_.respects_budgets || !options_.sets_condition || is_marked(*pod_)) return Next::kStep;
  shared_.client.patch(pod_path(*pod_, "status"), client::PatchType::kStrategicMerge, disruption_patch(*pod_, now),
                       then(&TaintDeletion::on_condition_set));
  return Next::kWait;
}

Next TaintDeletion::on_condition_set(const Result<api::Json>& outcome, Now now) {
  if (outcome) return Next::kStep;
  if (is_gone(outcome.error())) return end(End::kGoneBefore, std::nullopt, now);
  return on_failed(outcome.error(), now);
}

Next TaintDeletion::remove() {
  if (options_.respects_budgets) {
    shared_.client.create(pod_path(*pod_, "eviction"), eviction_of(*pod_), then(&TaintDeletion::on_removed));
  } else {
    shared_.client.remove(pod_path(*pod_), delete_options(*pod_), then(&TaintDeletion::on_removed));
  }
  return Next::kWait;
}

Next TaintDeletion::on_removed(const Result<api::Json>& outcome, Now now) {
  if (outcome) return end(End::kDeleted, std::nullopt, now);
  const Error& error = outcome.error();
  if (options_.respects_budgets && error.code == ErrorCode::kTooManyRequests) return end(End::kRefused, error, now);
  if (is_gone(error)) return end(End::kGone, std::nullopt, now);
  return on_failed(error, now);
}

/// Another attempt follows, or the deletion ends.
Next TaintDeletion::on_failed(const Error& error, Now now) {
  if (attempts_ >= options_.attempts_max) return end(End::kFailed, error, now);
  ++attempts_;
  steps_.go_to(Step::kPause);
  return Next::kStep;
}

Next TaintDeletion::pause(Now now) {
  steps_.go_to(Step::kCondition);
  shared_.client.at(now.mono + options_.attempt_wait, then_advance());
  return Next::kWait;
}

Next TaintDeletion::end(End end, const std::optional<Error>& error, Now now) {
  done_(pod_, end, error, now);
  return Next::kEnd;
}

/// True if a call failed because the pod is gone or another pod has its name. A conflict alone does not show that:
/// other writers of the pod cause one, too.
bool TaintDeletion::is_gone(const Error& error) const {
  if (error.code == ErrorCode::kNotFound) return true;
  if (error.code != ErrorCode::kConflict) return false;
  const PodPtr known = shared_.pods.cache().find(pod_->key().text());
  return !known || known->metadata.uid != pod_->metadata.uid;
}

}  // namespace spillway::controllers
