#include "controllers/workloads/autoscaler_sync.h"

#include "controllers/shared/owned_pods.h"

#include <algorithm>
#include <array>

namespace spillway::controllers {

namespace {

constexpr std::array kAutoscalerSteps = {
    AutoscalerStep::kTargetKind, AutoscalerStep::kScale, AutoscalerStep::kSelection, AutoscalerStep::kDescribedKind,
    AutoscalerStep::kMetric,     AutoscalerStep::kPlan,  AutoscalerStep::kResize,    AutoscalerStep::kStatus,
};

/// Kinds of targets that are remembered; with one more, all are forgotten and requested again. A cluster scales a
/// handful of kinds; the bound is for clients that name thousands of kinds that do not exist.
constexpr std::size_t kTargetKindsMax = 64;

using Action = AutoscalerMetrics::Action;
using Failure = AutoscalerMetrics::Failure;

Action action_of(std::int32_t wanted, std::int32_t present) {
  if (wanted == present) return Action::kNone;
  return wanted > present ? Action::kScaleUp : Action::kScaleDown;
}

}  // namespace

Result<autoscaling::PluralKind> TargetKinds::learn(const std::string& api_version, const std::string& kind,
                                                   const Result<api::Json>& outcome) {
  if (!outcome && outcome.error().code != ErrorCode::kNotFound) return outcome.error();
  auto found = outcome ? autoscaling::plural_of(*outcome, api_version, kind)
                       : Result<autoscaling::PluralKind>(autoscaling::unknown_kind(api_version, kind));
  if (!found) return found;
  if (plurals_.size() >= kTargetKindsMax) plurals_.clear();
  plurals_[{api_version, kind}] = *found;
  return found;
}

AutoscalerSync::AutoscalerSync(const AutoscalerTools& tools, AutoscalerPtr autoscaler, Now now)
    : StepRun(kAutoscalerSteps),
      tools_(tools),
      autoscaler_(std::move(autoscaler)),
      key_(client::key_of(autoscaler_->metadata)),
      begin_(now.mono) {}

Next AutoscalerSync::run(Step step, Now now) {
  switch (step) {
    case Step::kTargetKind:
      return find_target_kind(now);
    case Step::kScale:
      return read_scale();
    case Step::kSelection:
      return select();
    case Step::kDescribedKind:
      return find_described_kind(now);
    case Step::kMetric:
      return read_metric();
    case Step::kPlan:
      return plan(now);
    case Step::kResize:
      return resize();
    case Step::kStatus:
      return write_status(now);
  }
  return Next::kEnd;
}

AutoscalerMemory* AutoscalerSync::memory() const {
  const auto found = tools_.memories.find(autoscaler_->metadata.uid);
  return found != tools_.memories.end() ? &found->second : nullptr;
}

Next AutoscalerSync::find_target_kind(Now now) {
  const auto& target = autoscaler_->target;
  if (const autoscaling::PluralKind* known = tools_.kinds.find(target.api_version, target.kind)) {
    target_kind_ = *known;
    return Next::kStep;
  }
  const auto path = autoscaling::version_path(target.api_version);
  if (!path) return plan_without_scale(path.error(), now);
  tools_.shared.client.get(*path, then(&AutoscalerSync::on_target_kind));
  return Next::kWait;
}

Next AutoscalerSync::on_target_kind(const Result<api::Json>& outcome, Now now) {
  const auto found = tools_.kinds.learn(autoscaler_->target.api_version, autoscaler_->target.kind, outcome);
  if (!found) return plan_without_scale(found.error(), now);
  target_kind_ = *found;
  return Next::kStep;
}

Next AutoscalerSync::read_scale() {
  // cannot fail: the apiVersion was parsed before
  scale_path_ = autoscaling::scale_path(*autoscaler_, target_kind_).value();
  tools_.shared.client.get(scale_path_, then(&AutoscalerSync::on_scale));
  return Next::kWait;
}

Next AutoscalerSync::on_scale(const Result<api::Json>& outcome, Now now) {
  if (!outcome) return plan_without_scale(outcome.error(), now);
  scale_document_ = *outcome;
  scale_ = autoscaling::read_scale(*outcome);
  return Next::kStep;
}

/// Metrics are read only if this autoscaler is the only one of the pods.
Next AutoscalerSync::select() {
  selecting_ = {key_};
  const auto selector = api::parse_label_selector(scale_.selector);
  if (selector && !scale_.selector.empty()) {
    if (AutoscalerMemory* own = memory()) own->selector = *selector;
    find_pods(*selector);
    find_others_that_select();
  }
  const bool asks =
      selecting_.size() == 1 && !scale_.selector.empty() && autoscaling::needs_metrics(*autoscaler_, scale_);
  if (asks) targets_ = autoscaling::metric_targets(*autoscaler_);
  return Next::kStep;
}

void AutoscalerSync::find_pods(const api::LabelSelector& selector) {
  visit_namespace(tools_.shared.pods.cache().all(), autoscaler_->metadata.ns,
                  [&](const std::string&, const autoscaling::PodPtr& pod) {
                    if (selector.matches(pod->metadata.labels)) pods_.push_back(pod);
                  });
}

void AutoscalerSync::find_others_that_select() {
  for (const auto& [uid, other] : tools_.memories) {
    if (other.ns != autoscaler_->metadata.ns || other.key == key_) continue;
    const AutoscalerPtr known = tools_.autoscalers.find(other.key);
    const bool same_target = known && known->target == autoscaler_->target;
    const bool same_pods = other.selector && std::ranges::any_of(pods_, [&other](const autoscaling::PodPtr& pod) {
                             return other.selector->matches(pod->metadata.labels);
                           });
    if (same_target || same_pods) selecting_.push_back(other.key);
  }
  std::ranges::sort(selecting_);
}

Next AutoscalerSync::find_described_kind(Now now) {
  if (answers_.size() == targets_.size()) {
    steps_.go_to(Step::kPlan);
    return Next::kStep;
  }
  asked_ = now.mono;
  described_.clear();
  const autoscaling::MetricTarget& target = next_target();
  if (target.kind != autoscaling::MetricKind::kObject) return Next::kStep;
  if (const auto* known = tools_.kinds.find(target.described.api_version, target.described.kind)) {
    described_ = known->text();
    return Next::kStep;
  }
  const auto path = autoscaling::version_path(target.described.api_version);
  if (!path) return add_answer(path.error(), now);
  tools_.shared.client.get(*path, then(&AutoscalerSync::on_described_kind));
  return Next::kWait;
}

Next AutoscalerSync::on_described_kind(const Result<api::Json>& outcome, Now now) {
  const auto& described = next_target().described;
  const auto found = tools_.kinds.learn(described.api_version, described.kind, outcome);
  if (!found) return add_answer(found.error(), now);
  described_ = found->text();
  return Next::kStep;
}

Next AutoscalerSync::read_metric() {
  std::string path = autoscaling::question_path(next_target(), autoscaler_->metadata.ns, scale_.selector, described_);
  tools_.shared.client.get(std::move(path), then(&AutoscalerSync::on_metric));
  return Next::kWait;
}

Next AutoscalerSync::on_metric(const Result<api::Json>& outcome, Now now) {
  return add_answer(outcome, now);
}

/// Takes the answer with the values of the next metric, or the error in its place.
Next AutoscalerSync::add_answer(const Result<api::Json>& answer, Now now) {
  answers_.push_back({next_target(), answer});
  waited_.push_back(now.mono - asked_);
  steps_.go_to(Step::kDescribedKind);
  return Next::kStep;
}

Next AutoscalerSync::plan(Now now) {
  const AutoscalerMemory* own = memory();
  if (own == nullptr) {
    steps_.go_to(Step::kStatus);
    return Next::kStep;
  }
  plan_ = autoscaling::plan_autoscaler(
      {*autoscaler_, scale_, pods_, selecting_, answers_, own->history, tools_.settings}, now);
  count_metrics();
  return Next::kStep;
}

Next AutoscalerSync::resize() {
  if (!plan_.replicas) return Next::kStep;
  api::Json scale = scale_document_;
  scale.make({"spec"})["replicas"] = *plan_.replicas;
  tools_.shared.client.update(scale_path_, std::move(scale), then(&AutoscalerSync::on_resized));
  return Next::kWait;
}

Next AutoscalerSync::on_resized(const Result<api::Json>& outcome, Now now) {
  if (outcome) {
    action_ = action_of(*plan_.replicas, scale_.replicas);
    autoscaling::record_scaled(plan_, *autoscaler_, scale_, tools_.settings.down_stabilization, now);
  } else {
    autoscaling::record_not_scaled(plan_, *autoscaler_, outcome.error(), now);
  }
  return Next::kStep;
}

Next AutoscalerSync::plan_without_scale(const Error& error, Now now) {
  plan_ = autoscaling::plan_without_scale(*autoscaler_, error, now);
  if (const AutoscalerMemory* own = memory()) plan_.history = own->history;
  steps_.go_to(Step::kStatus);
  return Next::kStep;
}

Next AutoscalerSync::write_status(Now now) {
  tools_.queue.done(key_);
  tools_.queue.add(key_, now.mono + tools_.settings.period);
  AutoscalerMemory* own = memory();
  if (own == nullptr) return Next::kEnd;
  own->history = plan_.history;
  for (const autoscaling::AutoscalerEvent& event : plan_.events) {
    tools_.shared.events.record(client::reference_to(*autoscaler_),
                                event.warning ? client::EventType::kWarning : client::EventType::kNormal, event.reason,
                                event.message, now);
  }
  if (plan_.status == autoscaler_->status) {
    count(true, now);
    return Next::kEnd;
  }
  const api::ObjectMeta& metadata = autoscaler_->metadata;
  api::Json patch = api::Json::object({{"metadata", api::Json::object({{"uid", metadata.uid}})},
                                       {"status", autoscaling::status_document(plan_.status)}});
  tools_.shared.client.patch(client::object_path(api::HorizontalPodAutoscaler::kApiVersion, "horizontalpodautoscalers",
                                                 metadata.ns, metadata.name, "status"),
                             client::PatchType::kMerge, std::move(patch), then(&AutoscalerSync::on_status_written));
  return Next::kWait;
}

Next AutoscalerSync::on_status_written(const Result<api::Json>& outcome, Now now) {
  count(outcome.has_value(), now);
  if (!outcome && outcome.error().code != ErrorCode::kNotFound) {
    tools_.shared.log.warning("the status of an autoscaler was not written",
                              {{"autoscaler", key_}, {"error", outcome.error().text()}});
  }
  return Next::kEnd;
}

void AutoscalerSync::count(bool status_written, Now now) {
  Failure failure = plan_.failed || !status_written ? Failure::kInternal : Failure::kNone;
  if (std::ranges::count(autoscaler_->target.api_version, '/') > 1) failure = Failure::kSpec;  // no version
  tools_.metrics.count_sync(action_, failure, now.mono - begin_);
}

/// Counts, for each metric, how its proposal compares with the replicas in the status.
void AutoscalerSync::count_metrics() {
  const std::int32_t present = autoscaler_->status.current_replicas;
  for (std::size_t i = 0; i < plan_.proposals.size(); ++i) {
    const std::optional<std::int32_t>& proposal = plan_.proposals[i];
    tools_.metrics.count_metric(targets_[i].kind, proposal ? action_of(*proposal, present) : Action::kNone,
                                proposal ? Failure::kNone : Failure::kInternal, waited_[i]);
  }
}

}  // namespace spillway::controllers
