// The state shared by the parts of one agent. Parts call each other only through the Agent that owns them.
// Thread: loop. Lifetime: everything referred to outlives the parts.
#pragma once

#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "api/json/json.h"
#include "api/object/event.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "telemetry/log.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

struct AgentContext {
  const AgentOptions& options;
  const MachineInfo& machine;
  client::ApiClient& api;
  /// The client for lease and node status alone: no other call waits before them, and their time-out is short.
  client::ApiClient& heartbeats;
  client::EventRecorder& events;
  const telemetry::Log& log;
  /// Commands of the current step, in order.
  std::vector<HostCommand>& host_commands;

  /// The time-out of a heartbeat: the shorter of status update frequency and lease duration.
  Duration heartbeat_timeout() const;
  /// "?timeout=10s": the same time-out, as a query for the API server.
  std::string heartbeat_query() const;
};

/// Seconds since then, for people; null: never.
api::Json age_of(std::optional<Instant> at, Now now);

/// The node as events name it: its name in place of the uid, without version.
api::ObjectReference node_reference(const std::string& node_name);

}  // namespace spillway::agent
