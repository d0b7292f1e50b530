// The base of the controllers of Endpoints and of EndpointSlices: a queue of Services to sync, filled by changes of
// Services and of the pods behind them. Thread: loop. Bounds: one sync of a Service at a time; retries back off to 60
// s. Cost: selected_pods.h.
#pragma once

#include "api/object/service.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/endpoints/selected_pods.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "policy/endpoints/trigger_times.h"
#include "telemetry/metrics.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class ServiceController {
 public:
  ServiceController(const ServiceController&) = delete;
  ServiceController& operator=(const ServiceController&) = delete;
  virtual ~ServiceController() = default;

  /// Begins to sync. Called once the caches are filled.
  virtual void start(Now now);
  /// Syncs the Services that are due; called at the end of every step.
  void run(Now now);

 protected:
  using ServicePtr = std::shared_ptr<const api::Service>;

  /// `selected`: nullptr if the controller does not depend on pods, and so does not follow them.
  ServiceController(Shared shared, client::Informer<api::Service>& services, const SelectedPods* selected,
                    telemetry::Registry& metrics, std::string_view name);

  /// end(), later() or give_up() must follow.
  virtual void sync(const std::string& key, Now now) = 0;

  /// Runs before the syncs of a step.
  virtual void prepare(Now) {}

  /// The Service was deleted: drops the state kept for it.
  virtual void forget(const std::string& key) = 0;

  void enqueue(const std::string& key, Now now);
  void end(const std::string& key, Now now);
  void later(const std::string& key, Instant due);
  void give_up(const std::string& key, std::string_view doing, const Error& error, Now now);
  void arm();

  ServicePtr find(const std::string& key) const { return services_.cache().find(key); }

  /// The pods that the Service selects, in the order of their keys.
  std::vector<PodPtr> pods_of(const api::Service& service) const { return selected_->pods_of(service); }

  void record_warning(const api::Service& service, std::string_view reason, std::string_view message, Now now);

  Shared shared_;
  endpoints::TriggerTimes trigger_times_;

 private:
  void on_service(const ServicePtr& before, const ServicePtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);

  client::Informer<api::Service>& services_;
  const SelectedPods* selected_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  client::WakeUp wake_up_;
  std::string name_;
  bool started_ = false;
};

}  // namespace spillway::controllers
