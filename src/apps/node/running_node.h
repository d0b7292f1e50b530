// A running node of this machine: its cgroup, its runtime, the agent with its journal, and its wake-up sources. Thread:
// loop.
#pragma once

#include "agent/agent.h"
#include "apps/node/device_events.h"
#include "apps/node/lease_renewal.h"
#include "apps/node/manifest_url.h"
#include "apps/node/node_server.h"
#include "apps/node/node_site.h"
#include "apps/node/read_only_server.h"
#include "apps/node/traced_journal.h"
#include "apps/process/host_events.h"
#include "cli/flags/command_line.h"
#include "client/engine.h"
#include "host/cgroup/node_slice.h"
#include "host/devices/device_plugins.h"
#include "host/devices/pod_resources.h"
#include "host/files/journal_file.h"
#include "host/files/manifest_files.h"
#include "host/files/recording_pages.h"
#include "host/files/recording_ring.h"
#include "host/kubelet_endpoint.h"
#include "host/pods/pod_runtime.h"
#include "host/reaction/memory_reaction.h"
#include "host/systemd/slice_units.h"
#include "runtime/engine_driver.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apps {

/// A DNS server that pods of the node can reach.
struct ClusterDns {
  std::string address;
  std::string domain;
};

struct NodePartOptions {
  cli::NodeArgs args;
  std::string name;
  std::string instance;   // name of the cgroup tree; one for each data or state directory
  std::string state_dir;  // directory of this node
  /// The authority of the client certificates that the node's HTTPS server trusts. nullopt: there is no server (the API
  /// server is in this process, and reaches the node without one).
  std::optional<std::string> client_authority_pem;
  std::optional<std::uint16_t> port;  // port of the node's server; 0: any free one; nullopt: the configuration's
  std::vector<std::string> ips;       // the node's addresses, at most two; empty: the machine's
  std::vector<std::string> hidden;    // files and directories that no pod sees, beside the state directory
  /// Replaces the Service `kubernetes` in the variables of containers; nullopt: the Service itself.
  std::optional<agent::ApiServerAddress> api_server = std::nullopt;
  bool keeps_pods = false;  // pods that outlive the process run on when it stops
  /// Directory of the CNI configuration that pods of the process runtime are attached by; empty: they use the machine's
  /// network.
  std::string cni_configuration;
  /// The reason, for the pods' events; empty: no event.
  std::string shared_network_because = {};
  /// The DNS of pods that want the cluster's, unless the node's configuration names another; nullopt: the machine's.
  std::optional<ClusterDns> dns = std::nullopt;
};

/// Made in this order, each using those before it; destroyed in reverse.
struct RunningNode {
  std::string name;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<host::NodeSlice> slice;
  std::unique_ptr<host::SliceUnits> slices;  // null: pods' cgroups are made here
  std::unique_ptr<HostEvents> host_events;
  std::unique_ptr<DeviceEvents> device_events;
  std::unique_ptr<host::JournalFile> journal;
  std::unique_ptr<TracedJournal> trace;            // before the journal; null: nothing is traced
  std::unique_ptr<host::RecordingRing> recording;  // null: none
  std::unique_ptr<host::RecordingPages> recording_pages;
  std::unique_ptr<host::PodRuntime> runtime;
  std::unique_ptr<host::MemoryReaction> reaction;
  std::unique_ptr<host::DevicePlugins> plugins;  // null: device plugins cannot register
  std::unique_ptr<agent::Agent> agent;
  std::unique_ptr<runtime::EngineDriver> driver;
  std::unique_ptr<host::PodResources> pod_resources;  // null: its socket could not be created
  std::unique_ptr<LeaseRenewal> lease;                // null: no renewal of its own, or it has ended
  std::unique_ptr<host::ManifestFiles> manifests;     // null: no directory of static pods is configured
  std::unique_ptr<ManifestUrl> manifest_url;          // null: no URL of static pods is configured
  std::unique_ptr<NodeServer> server;                 // null: the node has no server of its own
  std::unique_ptr<ReadOnlyServer> read_only;          // null: the node has no port without authentication
  std::unique_ptr<host::KubeletEndpoint> endpoint;
  api::Json configuration;  // in effect
  Instant last_step{};      // the agent's
};

/// Makes the cgroup and starts the agent. Called on the site's loop, or before it runs; `lease` is where the node's
/// lease is renewed. Errors name what is missing: rights, a controller, a directory. After an error everything that was
/// made is removed.
Result<std::unique_ptr<RunningNode>> start_node(const NodeSite& site, const NodePartOptions& options,
                                                std::unique_ptr<client::Transport> transport, LeaseRoom lease);

}  // namespace spillway::apps
