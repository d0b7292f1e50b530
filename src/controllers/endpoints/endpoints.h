// Keeps the Endpoints of Services that select pods: the form in which older clients read the endpoints of a Service.
// policy/endpoints/endpoints_plan.h decides their content. They are deleted with their Service. Thread: loop. Source:
// Kubernetes docs, "Service", Endpoints; spec "Scheduler and workloads", 16.
#pragma once

#include "api/object/endpoints.h"
#include "controllers/endpoints/service_controller.h"
#include "controllers/endpoints/unseen_writes.h"

#include <memory>
#include <set>
#include <string>

namespace spillway::controllers {

class EndpointsController final : public ServiceController {
 public:
  EndpointsController(Shared shared, client::Informer<api::Service>& services,
                      client::Informer<api::Endpoints>& endpoints, const SelectedPods& selected,
                      telemetry::Registry& metrics);

  /// Also syncs Endpoints without a Service, which may have been deleted while no controller ran.
  void start(Now now) override;

 private:
  using EndpointsPtr = std::shared_ptr<const api::Endpoints>;

  void sync(const std::string& key, Now now) override;
  void forget(const std::string& key) override;
  void on_endpoints(const EndpointsPtr& before, const EndpointsPtr& after, Now now);
  void remove(const std::string& key, Now now);
  /// `version`: of the object that was removed.
  void on_removed(const std::string& key, const std::string& version, const Result<api::Json>& outcome, Now now);
  void write(const std::string& key, const ServicePtr& service, const api::Endpoints& next);
  void on_written(const std::string& key, const ServicePtr& service, bool created, const Result<api::Json>& outcome,
                  Now now);

  client::Informer<api::Endpoints>& endpoints_;
  UnseenWrites unseen_;
};

}  // namespace spillway::controllers
