// Scales what HorizontalPodAutoscalers name: reads the scale subresource of the target and the metrics of the spec, and
// writes the number of replicas that policy/autoscaling decides. Each is synced when it is new or changed, and then
// every Settings::period. Recent recommendations are kept in memory, as upstream keeps it. The target is one of the
// autoscaler's own namespace: no member of it becomes part of a path without being checked or encoded. Thread: loop.
// Bounds: one sync of an autoscaler at a time, one call of it at a time; 64 kinds of targets are cached. Source:
// Kubernetes docs, "Horizontal Pod Autoscaling"; spec "Scheduler and workloads", 20.
#pragma once

#include "api/object/horizontal_autoscaler.h"
#include "api/object/selector.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "controllers/workloads/autoscaler_metrics.h"
#include "policy/autoscaling/autoscaler_plan.h"
#include "policy/autoscaling/scale_path.h"
#include "telemetry/metrics.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace spillway::controllers {

class HorizontalAutoscalerController {
 public:
  HorizontalAutoscalerController(Shared shared, client::Informer<api::HorizontalPodAutoscaler>& autoscalers,
                                 telemetry::Registry& metrics, autoscaling::Settings settings);
  HorizontalAutoscalerController(const HorizontalAutoscalerController&) = delete;
  HorizontalAutoscalerController& operator=(const HorizontalAutoscalerController&) = delete;

  /// Once the caches are filled.
  void start(Now now);
  /// Works off what is due; called at the end of every step.
  void run(Now now);

 private:
  using AutoscalerPtr = std::shared_ptr<const api::HorizontalPodAutoscaler>;
  struct Look;
  using LookPtr = std::shared_ptr<Look>;

  /// State of an autoscaler, by its UID.
  struct Memory {
    std::string ns;
    std::string key;
    autoscaling::History history;
    std::optional<api::LabelSelector> selector;  // the target's, once it is known
  };

  using Resolved = std::function<void(const Result<autoscaling::PluralKind>& plural, Now now)>;

  void on_autoscaler(const AutoscalerPtr& before, const AutoscalerPtr& after, Now now);
  void arm();
  void look(const std::string& key, Now now);
  /// Asks the API server what it calls a kind.
  void resolve(const std::string& api_version, const std::string& kind, Resolved done, Now now);
  void ask_scale(const LookPtr& look, const autoscaling::PluralKind& plural);
  void on_scale(const LookPtr& look, const api::Json& document, Now now);
  /// The pods of the target, and who selects them besides.
  void select(Look& look);
  void ask_metrics(const LookPtr& look, Now now);
  void ask_metric(const LookPtr& look, autoscaling::MetricTarget target, const std::string& described);
  void decide(const LookPtr& look, Now now);
  void resize(const LookPtr& look, Now now);
  void give_up(const LookPtr& look, const Error& error, Now now);
  void finish(const LookPtr& look, Now now);
  void count(const LookPtr& look, bool status_written, Now now);
  void count_metrics(const Look& look);

  Shared shared_;
  client::Informer<api::HorizontalPodAutoscaler>& autoscalers_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  AutoscalerMetrics autoscaler_metrics_;
  const autoscaling::Settings settings_;
  std::map<std::string, Memory> memory_;                                            // by uid
  std::map<std::pair<std::string, std::string>, autoscaling::PluralKind> plurals_;  // by apiVersion and kind
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
