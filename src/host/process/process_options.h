// Options of the process runtime, and the parts of this node's host that all its classes use. Thread: any (values).
#pragma once

#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "base/time.h"
#include "host/cgroup/node_slice.h"
#include "host/logs/container_log.h"
#include "host/network/pod_networks.h"
#include "host/probes/network_prober.h"
#include "host/reaction/host_events.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

struct ProcessRuntimeOptions {
  std::string state_dir;
  LogLimits logs;
  agent::PressureStats pressure = agent::PressureStats::kLeftOut;
  /// Limit of all pods of the node; like the kubelet's --max-pods it bounds the memory of the runtime.
  std::size_t pods_max = 1000;
  /// kNamespaces: pods may be confined (agent::PodIsolation); what that takes is made at once.
  enum class Isolation { kNone, kNamespaces } isolation = Isolation::kNone;
  Duration housekeeping = seconds(2);  // between two searches for cgroups without pods
  std::vector<std::string> hidden;     // files and directories that no confined pod sees, beside the state directory
  SecureStreams secure_streams;        // for probes and hooks
  /// Containers have supervisors, and those of an earlier process keep running and are reported as PodsFound.
  /// check_supervision() checks that this is possible.
  bool keeps_pods = false;
  /// Pods that have a network namespace of their own are attached to this network; nullopt: they have only loopback.
  std::optional<PodNetworkOptions> network = std::nullopt;
};

/// The host of the runtime's pods. All outlive the classes that use them.
struct ProcessHost {
  runtime::Loop& loop;
  const NodeSlice& slice;
  HostEvents& events;
  const telemetry::Log& log;
  const ProcessRuntimeOptions& options;
};

}  // namespace spillway::host
