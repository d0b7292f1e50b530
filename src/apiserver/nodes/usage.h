// metrics.k8s.io: the usage of nodes and pods, for `kubectl top` and autoscalers. Nothing is stored: the agents are
// queried. Thread: loop. Source: Kubernetes docs, "Resource metrics pipeline"; spec "API server contract", 18.
#pragma once

#include "apiserver/nodes/usage_collector.h"
#include "apiserver/read/selection.h"
#include "apiserver/request/exchange.h"

#include <string>
#include <vector>

namespace spillway::apiserver {

class UsagePath {
 public:
  UsagePath(Core& core, NodeGateway* gateway) : core_(core), collector_(core, gateway) {}

  /// GET of one object, or of a list.
  void read(const ExchangePtr& exchange);

 private:
  using Objects = std::vector<ObjectPtr>;

  void answer(const ExchangePtr& exchange, const Objects& objects) const;
  static const std::vector<ContainerUsage>* containers_of(const StoredObject& pod, const NodeUsage& usage);
  std::optional<api::Json> node_metrics(const StoredObject& node) const;
  std::optional<api::Json> pod_metrics(const StoredObject& pod) const;

  Core& core_;
  UsageCollector collector_;
};

}  // namespace spillway::apiserver
