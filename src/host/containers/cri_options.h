// Options of the runtime whose containers are a container runtime's, and the parts of this node's host that all its
// classes use. Thread: any (values).
#pragma once

#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "agent/cri/linux_resources.h"
#include "agent/cri/sandbox_config.h"
#include "base/time.h"
#include "host/cgroup/node_slice.h"
#include "host/containers/credential_plugins.h"
#include "host/containers/cri_owner.h"
#include "host/containers/image_collector.h"
#include "host/cri/cri_calls.h"
#include "host/logs/container_log.h"
#include "host/probes/network_prober.h"
#include "host/reaction/host_events.h"
#include "host/systemd/slice_units.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::host {

/// The end of a container, or its failed start, waits this long for the state of the sandbox.
inline constexpr Duration kSandboxDoubtMax = seconds(1);

struct CriRuntimeOptions {
  std::string state_dir;
  std::string runtime_name;  // "containerd": the scheme of container ids; empty: read from the runtime
  std::string socket;        // the runtime's, for its statistics
  std::string image_socket;  // its image service; empty: the same socket
  std::string owner;         // marks the pods of this node in a runtime that others use too
  std::size_t pods_max = 1000;
  agent::PressureStats pressure = agent::PressureStats::kLeftOut;
  agent::ResourceFacts resources;
  agent::DnsFacts dns;
  std::string resolver_file;  // read anew for each sandbox; empty: only `dns` is used
  bool seccomp_default = false;
  agent::ImageGcPolicy image_gc;
  std::string credential_plugin_dir;  // has the programs of `credential_providers`
  std::vector<agent::CredentialProvider> credential_providers = {};
  std::string pod_logs_dir;   // all pods; empty: logs are kept in the directory of their pod
  std::string log_links_dir;  // links to logs, for collectors; empty: there are none
  LogLimits logs;             // a container's: bytes of one file, and number of files
  Duration log_check_interval = seconds(10);
  std::size_t parallel_pulls = 1;
  std::int64_t pulls_per_second = 0;           // more fail with "pull QPS exceeded"; 0: not limited
  std::int64_t pull_burst = 10;                // pulls at once, before that pace counts
  Duration request_timeout = kRuntimeCallMax;  // for calls that nothing else bounds
  std::size_t log_workers = 1;                 // threads that rotate logs
  SecureStreams secure_streams;                // for probes and hooks
  SliceUnits* slices = nullptr;                // systemd's cgroup driver: what makes the slices of pods; borrowed
};

/// The host of the runtime's pods. All outlive the classes that use them. `calls`: delivers no answer after its end.
struct CriHost {
  runtime::Loop& loop;
  const NodeSlice& slice;
  RuntimeCalls& calls;
  HostEvents& events;
  const telemetry::Log& log;
  const CriRuntimeOptions& options;
  const CriOwner& owner;
};

}  // namespace spillway::host
