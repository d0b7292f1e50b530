// The options of an agent. Defaults are upstream's; fixed after start.
// Thread: any (plain values). Source: Kubernetes docs, "Kubelet Configuration (v1beta1)"; spec "Node agent", 21.
#pragma once

#include "agent/contract/dns_facts.h"
#include "agent/contract/enforcement_settings.h"
#include "agent/contract/shutdown_settings.h"
#include "api/object/meta.h"
#include "api/object/pod.h"
#include "api/object/taint.h"
#include "base/bytes.h"
#include "base/followed_version.h"
#include "base/time.h"
#include "policy/admission/static_cpus.h"
#include "policy/admission/static_memory.h"
#include "policy/admission/topology.h"
#include "policy/eviction/cache_reclaim.h"
#include "policy/eviction/decide.h"
#include "policy/eviction/memory_watch.h"
#include "policy/eviction/threshold_parse.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// The interval between observations of the node's memory, by the distance to the next threshold: interval = headroom /
/// (2 x rate), where rate is twice the steepest fall of the last ten seconds or `fall_floor_per_second`, whichever is
/// more. Source: spec "Wake-up sources", 6.
struct ObserveOptions {
  Duration interval_min = milliseconds(1);
  Duration interval_max = seconds(1);
  Bytes fall_floor_per_second = Bytes{4'000'000'000};
};

struct EvictionOptions {
  eviction::ThresholdConfig thresholds{.hard = eviction::default_hard_thresholds(),
                                       .enforce_pods = eviction::EnforcePods::kYes};
  Duration pressure_transition_period = minutes(5);
  std::int64_t max_pod_grace_period_seconds = 0;
  eviction::LocalStorageLimits local_storage_limits = eviction::LocalStorageLimits::kEnforced;
  /// A whole pass at least this often.
  Duration monitoring_interval = seconds(10);
  /// The longest wait for the end of a victim before the next pass.
  Duration cleanup_wait = seconds(30);
  eviction::MemoryWatch memory_watch;
  /// Reclaim page cache of pods before one of them is evicted for memory.
  eviction::Relief relief = eviction::Relief::kOff;
  /// The kernel's OOM killer may act while memory.available is still this large: 0 for a slice.
  Bytes blind_zone;
  /// The expected blind zone when memory runs out, estimated from machines of this size. 0 for a slice.
  Bytes blind_zone_ahead;
  ObserveOptions observe;
};

/// kOutOfDisk: as agents up to 1.12 report: condition OutOfDisk, no PIDPressure, no lease, a patch at every update.
enum class StatusProfile { kLeases, kOutOfDisk };

/// The treatment of extended resources of an existing node. kForget: the machine has no record of its devices.
enum class ExtendedResources { kKeep, kForget };

enum class CloudProvider { kNone, kExternal };

/// kOn: ephemeral-storage is a resource of the node.
enum class LocalStorageIsolation { kOff, kOn };

/// Upstream's feature gate KubeletPSI: pressure stall figures in the statistics.
enum class PressureStats { kLeftOut, kReported };

/// Upstream's feature gate SupplementalGroupsPolicy: the node reports whether its runtime implements
/// supplementalGroupsPolicy.
enum class SupplementalGroupPolicies { kOff, kOn };

enum class AttachDetach { kByController, kByAgent };

/// kNone: another component creates the node; the agent reports the status of the existing one.
enum class Registration { kSchedulable, kUnschedulable, kNone };

/// Options of the managers that assign CPUs, memory and devices to containers.
struct ManagerOptions {
  admission::TopologyOptions topology;
  admission::CpuOptions cpus;  // without `reserved_milli`, which follows from the reservation
  admission::MemoryOptions memory;

  /// True if cgroups of containers are restricted to CPUs and NUMA nodes.
  bool pins() const { return cpus.policy != "none" || memory.policy != "None"; }
};

/// The pods whose containers find an address in their variables.
enum class AddressReach : std::uint8_t { kAllPods, kHostNetwork };

/// A host name or an address, and a port above 0.
struct ApiServerAddress {
  std::string host;
  std::uint16_t port = 0;
  AddressReach reach = AddressReach::kAllPods;  // the other pods have the Service `kubernetes`
};

struct AgentOptions {
  std::string node_name;
  std::string event_component = "kubelet";  // the reporting component in events
  api::StringMap labels;                    // e.g. topology.kubernetes.io/zone; they override the built-in ones
  std::vector<api::Taint> taints;
  Registration registration = Registration::kSchedulable;
  api::ResourceList system_reserved;
  api::ResourceList kube_reserved;
  EnforcementSettings enforcement;
  EvictionOptions eviction;
  Duration lease_duration = seconds(40);  // renewed every quarter of it
  Duration status_update_frequency = seconds(10);
  Duration status_report_frequency = minutes(5);
  /// Names and prefixes ("net.core.*") of kernel parameters that pods may set beyond the safe ones.
  std::vector<std::string> allowed_unsafe_sysctls;
  bool seccomp_default = false;  // containers without a seccomp profile get RuntimeDefault
  /// File or directory of pods that run independently of the API server; empty: none.
  std::string static_pod_path;
  std::string static_pod_url;                   // address where static pods are defined; empty: none
  Duration file_check_frequency = seconds(20);  // the longest time between two reads
  /// The time after which the sources of volumes are read again, plus up to half of it.
  Duration sync_frequency = minutes(1);
  std::string cluster_domain;  // the end of names of pods and services
  DnsFacts dns;                // the inputs of pods' resolvers
  ManagerOptions managers;
  bool containers_swap = false;  // swapBehavior LimitedSwap: containers of Burstable pods may swap
  /// Without groups no pod is ended gracefully when the node shuts down.
  ShutdownSettings shutdown;
  std::int64_t pods_max = 110;
  std::optional<std::int64_t> pod_pids_max;  // per pod; nullopt: no limit
  Bytes container_log_max = mebibytes(10);   // per file
  std::int64_t container_log_files_max = 5;  // per container
  std::int64_t container_log_workers = 1;    // number of logs that are rotated at the same time
  std::int64_t pods_per_core = 0;            // 0: pods_max alone counts
  Duration restart_delay_max = minutes(5);   // for a container that ends again and again
  std::int64_t status_images_max = 50;       // -1: all
  float events_per_second = 50;              // written to the API server; repeats that wait are written as one
  int events_burst = 100;
  StatusProfile status_profile = StatusProfile::kLeases;
  LocalStorageIsolation local_storage = LocalStorageIsolation::kOn;
  ExtendedResources extended_resources = ExtendedResources::kKeep;
  PressureStats pressure_stats = PressureStats::kLeftOut;
  SupplementalGroupPolicies group_policies = SupplementalGroupPolicies::kOff;
  AttachDetach attach_detach = AttachDetach::kByController;
  CloudProvider cloud_provider = CloudProvider::kNone;
  std::vector<std::string> node_ips;  // at most two
  std::string provider_id;
  /// The address in KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT of containers, on a node without a service
  /// proxy; nullopt: the Service `kubernetes`, as with the kubelet.
  std::optional<ApiServerAddress> api_server;
  /// The reason why pods of the process runtime have no addresses of their own, for their events; empty: no event.
  std::string shared_network_because;
  std::int32_t daemon_port = 10250;
  std::string kubelet_version{kFollowedVersion};
};

/// Upstream's hard thresholds, except that a node of less than 1 GiB, where 100Mi would be most of it, gets a tenth of
/// its memory (at least 16Mi) as memory.available threshold.
eviction::SignalMap hard_thresholds_for(Bytes node_memory);

}  // namespace spillway::agent
