// Ports that pods hold on their node's addresses.
// Thread: any. Source: spec "Pod admission", 6 (NodePorts); vectors admission/host_ports.
#pragma once

#include "api/object/pod.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace spillway::api {

/// One port of one address; 0.0.0.0 means all of them ("::" does not).
struct HostPort {
  std::string protocol;
  std::int32_t port = 0;
  std::string ip;

  friend auto operator<=>(const HostPort&, const HostPort&) = default;
};

/// The host ports that the containers and sidecars (not the other init containers) of a pod request.
std::set<HostPort> host_ports_of(const PodSpec& spec);

class UsedHostPorts {
 public:
  void add(const PodSpec& spec);
  /// True if one of the pod's ports is taken. A pod does not conflict with itself.
  bool conflicts_with(const PodSpec& spec) const;

  /// Distinct (ip, protocol, port).
  std::size_t size() const { return used_.size(); }

 private:
  bool is_taken(const HostPort& wanted) const;

  std::set<HostPort> used_;
};

}  // namespace spillway::api
