// One sync of a HorizontalPodAutoscaler, from the name of its target's kind to its status. The order of its steps
// stands at the top of autoscaler_sync.cc. The number of replicas is policy/autoscaling's decision. Thread: loop.
// Bounds: one call under way; kTargetKindsMax kinds of targets are remembered. Source: Kubernetes docs, "Horizontal Pod
// Autoscaling"; spec "Scheduler and workloads", 20.
#pragma once

#include "api/object/horizontal_autoscaler.h"
#include "client/object_cache.h"
#include "client/work_queue.h"
#include "controllers/shared/shared.h"
#include "controllers/shared/step_run.h"
#include "controllers/workloads/autoscaler_memory.h"
#include "controllers/workloads/autoscaler_metrics.h"
#include "policy/autoscaling/autoscaler_plan.h"
#include "policy/autoscaling/scale_path.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::controllers {

/// The parts of the controller that all syncs of autoscalers share.
struct AutoscalerTools {
  Shared shared;
  const client::ObjectCache<api::HorizontalPodAutoscaler>& autoscalers;
  AutoscalerMetrics& metrics;
  const autoscaling::Settings& settings;
  TargetKinds& kinds;
  std::map<std::string, AutoscalerMemory>& memories;  // by uid of the autoscalers in the cache
  client::WorkQueue& queue;
};

enum class AutoscalerStep : std::uint8_t {
  kTargetKind,     // find the plural of the target's kind
  kScale,          // read the scale of the target
  kSelection,      // find the pods of the target, other autoscalers of it, and the metrics to read
  kDescribedKind,  // find the plural of the object that the next metric describes; to kPlan after the last metric
  kMetric,         // read the metric; back to kDescribedKind
  kPlan,           // decide the number of replicas
  kResize,         // write the number of replicas to the scale
  kStatus,         // record the events, and write the status if it differs
};

class AutoscalerSync final : public StepRun<AutoscalerSync, AutoscalerStep> {
 public:
  using AutoscalerPtr = std::shared_ptr<const api::HorizontalPodAutoscaler>;
  using Step = AutoscalerStep;

  /// The parts of `tools` must outlive the sync.
  AutoscalerSync(const AutoscalerTools& tools, AutoscalerPtr autoscaler, Now now);

 private:
  Next run(Step step, Now now) override;

  Next find_target_kind(Now now);
  Next on_target_kind(const Result<api::Json>& outcome, Now now);
  Next read_scale();
  Next on_scale(const Result<api::Json>& outcome, Now now);
  Next select();
  Next find_described_kind(Now now);
  Next on_described_kind(const Result<api::Json>& outcome, Now now);
  Next read_metric();
  Next on_metric(const Result<api::Json>& outcome, Now now);
  Next plan(Now now);
  Next resize();
  Next on_resized(const Result<api::Json>& outcome, Now now);
  Next write_status(Now now);
  Next on_status_written(const Result<api::Json>& outcome, Now now);

  /// Plans a status that says that the scale could not be read.
  Next plan_without_scale(const Error& error, Now now);
  Next add_answer(const Result<api::Json>& answer, Now now);
  void find_pods(const api::LabelSelector& selector);
  void find_others_that_select();

  const autoscaling::MetricTarget& next_target() const { return targets_[answers_.size()]; }

  /// nullptr: the autoscaler was deleted meanwhile.
  AutoscalerMemory* memory() const;
  void count(bool status_written, Now now);
  void count_metrics();

  const AutoscalerTools tools_;
  AutoscalerPtr autoscaler_;
  std::string key_;
  Instant begin_;
  autoscaling::PluralKind target_kind_;
  std::string scale_path_;
  api::Json scale_document_;
  autoscaling::Scale scale_;
  std::vector<autoscaling::PodPtr> pods_;
  std::vector<std::string> selecting_;  // keys of the autoscalers that select some of these pods
  std::vector<autoscaling::MetricTarget> targets_;
  std::vector<autoscaling::MetricAnswer> answers_;
  std::vector<Duration> waited_;  // for each answer
  Instant asked_{};               // for the next metric
  std::string described_;         // by the next metric: the plural of its kind; empty: it describes none
  autoscaling::AutoscalerPlan plan_;
  AutoscalerMetrics::Action action_ = AutoscalerMetrics::Action::kNone;  // the action that was carried out
};

}  // namespace spillway::controllers
