// The scale subresource: autoscaling/v1 Scale as a view of the replicas of a workload.
// Thread: loop. Source: spec "API server contract", 2 (deployments/scale, replicasets/scale).
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/write/writer.h"

namespace spillway::apiserver {

/// The Scale of a Deployment, ReplicaSet, ReplicationController or StatefulSet document.
api::Json scale_of(const api::Json& workload);

class ScalePath {
 public:
  ScalePath(Core& core, Writer& writer) : core_(core), writer_(writer) {}

  /// GET, PUT and PATCH of RES/NAME/scale.
  void perform(const ExchangePtr& exchange);

 private:
  void get(const ExchangePtr& exchange);
  void change(const ExchangePtr& exchange);
  void show(const ExchangePtr& exchange, const ObjectPtr& object);

  Core& core_;
  Writer& writer_;
};

}  // namespace spillway::apiserver
