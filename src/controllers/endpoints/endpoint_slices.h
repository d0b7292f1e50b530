// Keeps the EndpointSlices of Services that select pods. Each sync is planned by policy/endpoints/slice_plan.h; its
// writes are sent one after the other, and the next sync waits until the cache shows them. Slices of Services that are
// gone are collected as garbage. Hints for zones follow the nodes (policy/endpoints/ topology_hints.h): a Service is
// synced again when a zone has too few of its endpoints. Thread: loop. Cost: all nodes are read once after changes of
// theirs, if there are such hints.
// Metrics: endpoint_slice_controller_syncs{result}, endpoint_slice_controller_changes{operation}.
// Source: Kubernetes docs, "EndpointSlices"; spec "Scheduler and workloads", 16.
#pragma once

#include "api/object/endpoints.h"
#include "controllers/endpoints/slice_controller.h"
#include "policy/endpoints/slice_plan.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace spillway::controllers {

class EndpointSliceController final : public SliceController {
 public:
  EndpointSliceController(Shared shared, client::Informer<api::Service>& services,
                          client::Informer<api::EndpointSlice>& slices, const SelectedPods& selected,
                          telemetry::Registry& metrics);

  /// The query of the slice cache: the slices of this controller alone.
  static std::string_view slices_query();

 private:
  void sync(const std::string& key, Now now) override;
  void forget(const std::string& key) override;
  void prepare(Now now) override;
  void on_node(const std::string& name, Now now);
  void measure_zones(Now now);
  void on_synced(const std::string& key, SyncResult how) override;
  void record_hints(const std::string& key, const api::Service& service, const endpoints::SlicePlan& plan, Now now);

  using GivenByFamily = std::map<endpoints::Family, endpoints::EndpointsByZone>;

  /// Metrics by the names of kube-controller-manager.
  struct Metrics {
    explicit Metrics(telemetry::Registry& metrics);

    telemetry::Counter done;
    telemetry::Counter stale;
    telemetry::Counter failed;
    std::map<std::string_view, telemetry::Counter> changes;
  };

  Metrics metrics_;
  std::set<std::string> incomplete_;  // Services with a pod whose node is unknown
  endpoints::ZoneShares zones_;
  bool zones_are_old_ = true;                    // a node has changed since
  std::map<std::string, GivenByFamily> hinted_;  // by the key of the Service: hints by capacity that it has
  std::map<std::string, std::set<std::string>> waiting_for_node_;  // keys of Services
};

}  // namespace spillway::controllers
