// Keeps the EndpointSlices of Services that select pods. What follows from a look is decided by
// policy/endpoints/slice_plan.h; its writes go out one after the other, and the next look waits until the cache shows
// them. Slices of Services that are gone are collected as garbage. Thread: loop.
// Source: Kubernetes docs, "EndpointSlices"; spec "Scheduler and workloads", 16.
#pragma once

#include "api/object/endpoints.h"
#include "controllers/endpoints/service_controller.h"
#include "controllers/endpoints/slice_writes.h"
#include "controllers/endpoints/slices_by_service.h"
#include "policy/endpoints/slice_plan.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace spillway::controllers {

class EndpointSliceController final : public ServiceController {
 public:
  EndpointSliceController(Shared shared, client::Informer<api::Service>& services,
                          client::Informer<api::EndpointSlice>& slices, telemetry::Registry& metrics);

  /// What the cache of slices has to read: those of this controller alone.
  static std::string_view slices_query();

 private:
  void look(const std::string& key, Now now) override;
  void forget(const std::string& key) override;
  void on_node(const std::string& name, Now now);
  void on_written(const std::string& key, const api::Service& service,
                  const std::optional<SliceWrites::Failure>& failure, Now now);

  SlicesByService slices_;
  SliceWrites writes_;
  std::map<std::string, std::set<std::string>> waiting_for_node_;  // keys of Services
};

}  // namespace spillway::controllers
