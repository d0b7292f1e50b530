#include "controllers/workloads/horizontal_autoscaler.h"

#include "controllers/workloads/autoscaler_sync.h"

#include <memory>
#include <optional>

namespace spillway::controllers {

namespace {

bool same_wishes(const api::HorizontalPodAutoscaler& one, const api::HorizontalPodAutoscaler& other) {
  return one.target == other.target && one.min_replicas == other.min_replicas &&
         one.max_replicas == other.max_replicas && one.metrics == other.metrics && one.behavior == other.behavior;
}

}  // namespace

HorizontalAutoscalerController::HorizontalAutoscalerController(
    Shared shared, client::Informer<api::HorizontalPodAutoscaler>& autoscalers, telemetry::Registry& metrics,
    autoscaling::Settings settings)
    : shared_(shared),
      autoscalers_(autoscalers),
      queue_metrics_(metrics, "horizontalpodautoscaler"),
      autoscaler_metrics_(metrics),
      settings_(settings) {
  autoscalers_.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_autoscaler(before, after, now); }});
}

void HorizontalAutoscalerController::start(Now now) {
  started_ = true;
  for (const auto& [key, autoscaler] : autoscalers_.cache().all()) queue_.add(key, now.mono);
}

void HorizontalAutoscalerController::on_autoscaler(const AutoscalerPtr& before, const AutoscalerPtr& after, Now now) {
  const bool another = !before || !after || before->metadata.uid != after->metadata.uid;
  if (before && another) memories_.erase(before->metadata.uid);
  if (!after) return;
  const std::string key = client::key_of(after->metadata);
  if (another) memories_[after->metadata.uid] = {after->metadata.ns, key, {}, {}};
  if (started_ && (another || !same_wishes(*before, *after))) queue_.add(key, now.mono);
}

void HorizontalAutoscalerController::run(Now now) {
  if (!started_) return;
  while (const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono)) sync(*key, now);
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void HorizontalAutoscalerController::arm() {
  wake_up_.set(shared_.client, queue_.next_due());
}

void HorizontalAutoscalerController::sync(const std::string& key, Now now) {
  const AutoscalerPtr autoscaler = autoscalers_.cache().find(key);
  if (!autoscaler) {
    queue_.done(key);
    return queue_.forget(key);
  }
  const AutoscalerTools tools{shared_, autoscalers_.cache(), autoscaler_metrics_, settings_, kinds_, memories_, queue_};
  std::make_shared<AutoscalerSync>(tools, autoscaler, now)->advance(now);
}

}  // namespace spillway::controllers
