// Settings of a node that its packet rules depend on, besides Services and their endpoints. Thread: any (values).
#pragma once

#include "policy/network/service_ports.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::network {

/// Distinguishes packets of pods of the cluster from others.
struct LocalDetector {
  enum class By : std::uint8_t { kNothing, kSource, kInterface, kInterfacePrefix };

  By by = By::kNothing;
  api::IpRange range;     // kSource
  std::string interface;  // kInterface, kInterfacePrefix

  bool exists() const { return by != By::kNothing; }
};

/// Settings of the rules for one address family.
struct RuleSettings {
  Family family = Family::kIPv4;
  LocalDetector detector;
  bool masquerade_all = false;
  std::uint32_t masquerade_mark = 0x4000;  // a single bit
  NodePortAddresses node_port_addresses;
  std::optional<api::IpAddress> node_ip;
  std::vector<api::IpRange> service_ranges;  // empty: unknown
  /// Up to this many endpoints, a list has its chains in the frame.
  std::size_t spread_max = 64;
  std::string zone;  // the node's; empty: none
};

}  // namespace spillway::network
