// The paths that a node's server serves, one row each, and a request to one of them. A request is parsed once: the gate
// asks about the right of its row, and the endpoint carries out the handler of the same row with the same target.
// Thread: any (pure). Source: Kubernetes docs, "Kubelet authentication/authorization"; spec "Node agent", 12.2, 12.3.
#pragma once

#include "agent/serving/node_access.h"
#include "api/exchange/exchange.h"

#include <span>
#include <string_view>

namespace spillway::agent {

enum class NodeHandler {
  kPage,
  kHealth,
  kLogs,
  kNodeLogs,
  kRunningPods,
  kSummary,
  kRecording,
  kExec,
  kAttach,
  kPortForward,
  kCheckpoint
};

/// The handlers that upstream's enableDebuggingHandlers turns off: programs, ports and logs of pods, logs of the node,
/// the pods of the runtime.
constexpr bool leads_into_pods(NodeHandler handler) {
  using enum NodeHandler;
  return handler == kExec || handler == kAttach || handler == kPortForward || handler == kLogs ||
         handler == kNodeLogs || handler == kRunningPods;
}

/// One row of the table.
struct NodeRoute {
  enum class Methods { kGet, kGetAndPost, kPost };
  /// kCreate: by any method, so that a client with a right to read cannot run programs by a method that reads.
  enum class Verb { kOfMethod, kCreate };

  std::string_view path;  // a segment "*" stands for any one segment, "**" at the end for one or more
  NodeHandler handler = NodeHandler::kPage;
  Methods methods = Methods::kGet;
  Verb verb = Verb::kOfMethod;
};

/// All rows. No two of them match one path.
std::span<const NodeRoute> node_routes();

/// A request and its row. Invariant: the row is the one that the path of the target matches.
class NodeRequest {
 public:
  /// kBadRequest, kNotFound: as api::parse_strict_target; kNotFound: no row matches the path.
  static Result<NodeRequest> parse(api::Request request);

  const NodeRoute& route() const { return *route_; }

  const api::Target& target() const { return target_; }

  const api::Request& request() const { return request_; }

  /// The right that the gate asks the API server about.
  NodeAccess access(FineGrained fine_grained) const;

  /// False: the answer is 405.
  bool is_served_method() const;

 private:
  NodeRequest(api::Request request, api::Target target, const NodeRoute& route);

  api::Request request_;
  api::Target target_;
  const NodeRoute* route_;
};

}  // namespace spillway::agent
