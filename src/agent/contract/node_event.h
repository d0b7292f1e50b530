// A change of the node that operators should see.
// Thread: any (a plain value). Source: spec "Node agent", 6.2.
#pragma once

#include <string>
#include <string_view>

namespace spillway::agent {

/// A Normal (or Warning) event on the node.
struct NodeEvent {
  std::string reason;
  std::string message;
  bool warning = false;

  friend bool operator==(const NodeEvent&, const NodeEvent&) = default;
};

/// "Node n1 status is now: NodeReady".
NodeEvent status_event(const std::string& node_name, std::string_view reason);

}  // namespace spillway::agent
