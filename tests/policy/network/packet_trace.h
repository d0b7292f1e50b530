// The way of a packet through the rules of policy/network, as a kernel would walk the same values.
// Thread: any. Random choices are all made, one after the other.
#pragma once

#include "policy/network/ruleset.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace spillway::network {

/// The first packet of a connection.
struct TracedPacket {
  api::IpAddress source;
  api::IpAddress destination;
  std::string protocol;  // "tcp"
  std::int32_t port = 0;
  std::string interface = "eth0";
};

struct TraceEnd {
  enum class Kind : std::uint8_t { kPass, kEndpoint, kDrop, kReject };

  Kind kind = Kind::kPass;
  std::string to;  // "10.0.0.1:80" of an endpoint
  bool masquerade = false;

  friend auto operator<=>(const TraceEnd&, const TraceEnd&) = default;
};

/// The possible ends. `here`: the addresses of the machine; `remembered`: sets of clients that the source stands in.
std::set<TraceEnd> trace(const RulePart& rules, const TracedPacket& packet, const std::set<api::IpAddress>& here,
                         const std::set<std::string>& remembered = {});

}  // namespace spillway::network
