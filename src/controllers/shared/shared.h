// State shared by the controllers of one process: one client and one cache per collection; each has its own event
// recorder.
// Thread: loop. Everything is owned by the ControllerSet and outlives its controllers.
#pragma once

#include "api/object/lease.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/workload.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "telemetry/log.h"

namespace spillway::controllers {

struct Shared {
  client::ApiClient& client;
  client::EventRecorder& events;
  const telemetry::Log& log;
  client::Informer<api::Node>& nodes;
  client::Informer<api::Pod>& pods;
  client::Informer<api::Lease>& leases;
  client::Informer<api::ReplicaSet>& replica_sets;
  client::Informer<api::DaemonSet>& daemon_sets;
};

}  // namespace spillway::controllers
