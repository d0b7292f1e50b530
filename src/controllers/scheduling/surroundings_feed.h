// Tells the scheduler's rules how namespaces are labelled, and which Services, ReplicationControllers, ReplicaSets and
// StatefulSets select which pods. Thread: loop.
#pragma once

#include "api/object/replication_controller.h"
#include "api/object/service.h"
#include "api/object/workload.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "policy/scheduling/surroundings.h"

#include <functional>

namespace spillway::controllers {

class SurroundingsFeed {
 public:
  /// `on_namespace`: labels of one have changed, which may let pods in.
  SurroundingsFeed(client::ApiClient& client, scheduling::Surroundings& around, std::function<void()> on_namespace);
  SurroundingsFeed(const SurroundingsFeed&) = delete;
  SurroundingsFeed& operator=(const SurroundingsFeed&) = delete;

 private:
  template <typename Owner>
  void follow(client::Informer<Owner>& owners);

  scheduling::Surroundings& around_;
  client::Informer<api::Namespace> namespaces_;
  client::Informer<api::Service> services_;
  client::Informer<api::ReplicationController> replication_controllers_;
  client::Informer<api::ReplicaSet> replica_sets_;
  client::Informer<api::StatefulSet> stateful_sets_;
};

}  // namespace spillway::controllers
