// Gives the scheduler's rules the labels of namespaces, and the selectors of Services, ReplicationControllers,
// ReplicaSets and StatefulSets. Thread: loop.
#pragma once

#include "api/object/replication_controller.h"
#include "api/object/service.h"
#include "api/object/workload.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "policy/scheduling/queueing_hints.h"
#include "policy/scheduling/surroundings.h"

#include <functional>

namespace spillway::controllers {

class SurroundingsFeed {
 public:
  using OnChange = std::function<void(const scheduling::ClusterChange&)>;

  /// `on_change`: called for a change that may let pods in.
  SurroundingsFeed(client::ApiClient& client, scheduling::Surroundings& around, OnChange on_change);
  SurroundingsFeed(const SurroundingsFeed&) = delete;
  SurroundingsFeed& operator=(const SurroundingsFeed&) = delete;

 private:
  template <typename Owner>
  void follow(client::Informer<Owner>& owners);

  scheduling::Surroundings& around_;
  OnChange on_change_;
  client::Informer<api::Namespace> namespaces_;
  client::Informer<api::Service> services_;
  client::Informer<api::ReplicationController> replication_controllers_;
  client::Informer<api::ReplicaSet> replica_sets_;
  client::Informer<api::StatefulSet> stateful_sets_;
};

}  // namespace spillway::controllers
