// One deletion of a pod for a taint, with its attempts: sets the condition DisruptionTarget, then deletes the pod or,
// if disruption budgets are respected, evicts it through the API server, which counts the budgets and sets the
// condition itself. The order of the steps is at the top of taint_deletion.cc. Thread: loop. Bounds: `attempts_max`
// attempts, `attempt_wait` apart. Source: Kubernetes docs, "Taints and Tolerations"; KEP-3329; spec "Node lifecycle",
// S11.
#pragma once

#include "api/object/pod.h"
#include "base/error.h"
#include "base/time.h"
#include "controllers/shared/shared.h"
#include "controllers/shared/step_run.h"
#include "policy/workloads/pod_state.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace spillway::controllers {

enum class TaintDeletionStep : std::uint8_t {
  kCondition,  // set DisruptionTarget, unless the API server does
  kDeletion,   // delete or evict the pod
  kPause,      // after a failure: wait, then back to kCondition
};

enum class TaintDeletionEnd : std::uint8_t {
  kDeleted,
  kGone,        // the pod did not exist when it was to be deleted
  kGoneBefore,  // the pod did not exist when its condition was to be set
  kRefused,     // a disruption budget does not allow it now
  kFailed,      // after all attempts
};

class TaintDeletion final : public StepRun<TaintDeletion, TaintDeletionStep> {
 public:
  using Step = TaintDeletionStep;
  using PodPtr = workloads::PodPtr;
  using End = TaintDeletionEnd;

  /// `error`: the reason why the pod was not deleted; nullopt: it is deleted.
  using Done = std::function<void(const PodPtr& pod, End end, const std::optional<Error>& error, Now now)>;

  struct Options {
    bool respects_budgets = false;
    bool sets_condition = true;
    int attempts_max = 5;
    Duration attempt_wait = milliseconds(10);
  };

  /// `shared`, and objects that `done` uses, must outlive the deletion.
  TaintDeletion(Shared shared, Options options, PodPtr pod, Done done);

 private:
  Next run(Step step, Now now) override;
  Next set_condition(Now now);
  Next on_condition_set(const Result<api::Json>& outcome, Now now);
  Next remove();
  Next on_removed(const Result<api::Json>& outcome, Now now);
  Next pause(Now now);
  Next on_failed(const Error& error, Now now);
  Next end(End end, const std::optional<Error>& error, Now now);
  bool is_gone(const Error& error) const;

  Shared shared_;
  Options options_;
  PodPtr pod_;
  Done done_;
  int attempts_ = 1;
};

}  // namespace spillway::controllers
