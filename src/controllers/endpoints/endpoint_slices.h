// Keeps the EndpointSlices of Services that select pods. What follows from a look is decided by
// policy/endpoints/slice_plan.h; its writes go out one after the other, and the next look waits until the cache shows
// them. Slices of Services that are gone are collected as garbage. Thread: loop.
// Source: Kubernetes docs, "EndpointSlices"; spec "Scheduler and workloads", 16.
#pragma once

#include "api/object/endpoints.h"
#include "controllers/endpoints/service_controller.h"
#include "controllers/endpoints/unseen_writes.h"
#include "policy/endpoints/slice_plan.h"

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace spillway::controllers {

class EndpointSliceController final : public ServiceController {
 public:
  EndpointSliceController(Shared shared, client::Informer<api::Service>& services,
                          client::Informer<api::EndpointSlice>& slices, telemetry::Registry& metrics);

  /// What the cache of slices has to read: those of this controller alone.
  static std::string_view slices_query();

 private:
  using SlicePtr = endpoints::SlicePtr;

  /// The writes that a look led to.
  struct Look;
  using LookPtr = std::shared_ptr<Look>;

  void look(const std::string& key, Now now) override;
  void forget(const std::string& key) override;
  void on_slice(const SlicePtr& before, const SlicePtr& after, Now now);
  void on_node(const std::string& name, Now now);
  std::vector<SlicePtr> slices_of(const std::string& key) const;
  void create(const LookPtr& look, Now now);
  void update(const LookPtr& look, Now now);
  void remove(const LookPtr& look, Now now);
  void finish(const LookPtr& look, Now now);
  void fail(const LookPtr& look, std::string_view verb, const std::string& slice, const Error& error, Now now);

  client::Informer<api::EndpointSlice>& slices_;
  UnseenWrites unseen_;
  std::map<std::string, std::map<std::string, SlicePtr>> by_service_;  // by key and by name
  std::map<std::string, std::set<std::string>> waiting_for_node_;      // keys of Services
};

}  // namespace spillway::controllers
