// A node as the scheduler counts it: the object and what the pods bound to it ask for.
// Thread: any (plain values).
#pragma once

#include "api/host_ports.h"
#include "api/node.h"
#include "api/pod.h"

#include <cstdint>
#include <memory>

namespace spillway::scheduling {

struct NodeLoad {
  std::shared_ptr<const api::Node> node;
  api::ResourceList requested;  // sum of the effective requests of its pods
  std::int64_t pod_count = 0;
  api::UsedHostPorts ports;

  void add(const api::Pod& pod) {
    for (const auto& [name, amount] : api::effective_requests(pod.spec)) requested[name] += amount;
    ++pod_count;
    ports.add(pod.spec);
  }
};

}  // namespace spillway::scheduling
