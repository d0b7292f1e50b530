// A node as the scheduler and the agent count it: the object and the requests of its pods, in whole numbers rounded
// once per pod, as upstream. Thread: any (plain values). Source: spec "Pod admission", 6, 10, 15; vectors
// admission/fit, admission/pod_requests, admission/scheduler_filter.
#pragma once

#include "api/object/host_ports.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "policy/node_volumes.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace spillway::policy {

/// Amounts of resources as integers; sums saturate.
struct Amounts {
  std::int64_t milli_cpu = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t ephemeral_storage_bytes = 0;
  std::map<std::string, std::int64_t, std::less<>> scalars;  // extended resources, huge pages, attachable volumes

  friend bool operator==(const Amounts&, const Amounts&) = default;

  Amounts& operator+=(const Amounts& other);
};

/// Amounts, each rounded away from zero. Resources that fit does not count are left out.
Amounts amounts_of(const api::ResourceList& resources);

/// The amounts that a newly arrived pod requests, from its spec alone: the status of its containers does not count.
Amounts requested_by(const api::Pod& pod, const api::PodFeatures& features = {});

/// One pod's share in the load of its node.
struct PodLoad {
  Amounts requested;
  /// Used for scoring: a container without a request counts as 100m cpu and 200 MiB memory, so that a node full of such
  /// containers does not seem empty.
  std::int64_t scored_milli_cpu = 0;
  std::int64_t scored_memory_bytes = 0;

  friend bool operator==(const PodLoad&, const PodLoad&) = default;
};

PodLoad load_of(const api::Pod& pod, const api::PodFeatures& features = {});

struct NodeLoad {
  std::shared_ptr<const api::Node> node;
  Amounts allocatable;  // the node's status.allocatable, in whole numbers
  std::int64_t pods_max = 0;
  Amounts requested;
  std::int64_t scored_milli_cpu = 0;
  std::int64_t scored_memory_bytes = 0;
  std::int64_t pod_count = 0;
  std::optional<std::int32_t> lowest_priority;  // the lowest priority of the node's pods; nullopt: there are none
  api::UsedHostPorts ports;
  NodeVolumes volumes;
  std::map<std::string, std::int64_t, std::less<>> image_bytes;  // on the node, by every name an image has

  NodeLoad() = default;

  explicit NodeLoad(std::shared_ptr<const api::Node> of) { set_node(std::move(of)); }

  void set_node(std::shared_ptr<const api::Node> to);
  /// Adds the pod, with the sums that only scores use.
  void add(const api::Pod& pod, const api::PodFeatures& features = {});
  /// Adds the pod without changing the sums for scores.
  void add_unscored(const api::Pod& pod, const api::PodFeatures& features = {});

 private:
  void count(const api::Pod& pod);
};

}  // namespace spillway::policy
