// Selects the entries of the connection table to delete because their endpoint does not serve any more. Only UDP: a
// flow without an end of its own would be sent to a dead address for as long as its client sends. TCP and SCTP entries
// stay, so that connections can end in order. Thread: any (values).
// Source: Kubernetes docs, "Virtual IPs and Service Proxies"; nftables wiki, "Connection tracking".
#pragma once

#include "policy/network/endpoint_choice.h"
#include "policy/network/service_ports.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace spillway::network {

/// A UDP entry of the connection table.
struct Flow {
  api::IpAddress destination;  // destination before translation
  std::int32_t destination_port = 0;
  api::IpAddress server;  // the source of answers

  friend bool operator==(const Flow&, const Flow&) = default;
};

/// The servers that may answer at the UDP addresses of Services, in one family. A port without any serving endpoint is
/// left out, so its flows stay.
class FlowCheck {
 public:
  void add(const ServicePort& port, std::span<const Endpoint> endpoints);

  /// The destination is one of a Service, and no serving endpoint of it has the address of the server.
  bool is_stale(const Flow& flow) const;

  bool empty() const { return servers_.empty(); }

 private:
  using Servers = std::set<api::IpAddress>;

  std::vector<Servers> servers_;
  std::map<std::pair<api::IpAddress, std::int32_t>, std::size_t> by_address_;
  std::map<std::int32_t, std::size_t> by_node_port_;
};

/// The endpoints of a Service changed, and one of its ports has UDP before or after: flows may be left behind.
bool may_have_stale_flows(const MergedEndpoints& before, const MergedEndpoints& after);

}  // namespace spillway::network
