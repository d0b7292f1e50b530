#include "agent/serving/node_request.h"

#include "api/exchange/strict_target.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace spillway::agent {

namespace {

using NodeMethods = NodeRoute::Methods;
using NodeVerb = NodeRoute::Verb;

/// A row that leads into a pod, by WebSocket (GET) or SPDY (POST).
constexpr NodeRoute streamed(std::string_view path, NodeHandler handler) {
  return {.path = path, .handler = handler, .methods = NodeMethods::kGetAndPost, .verb = NodeVerb::kCreate};
}

constexpr auto kNodeRoutes = std::to_array<NodeRoute>({
    {.path = "/healthz", .handler = NodeHandler::kHealth},
    {.path = "/healthz/*", .handler = NodeHandler::kHealth},
    {.path = "/pods"},
    {.path = "/runningpods", .handler = NodeHandler::kRunningPods},
    {.path = "/configz"},
    {.path = "/debug/spillway"},
    {.path = "/debug/spillway/decisions"},
    {.path = "/debug/spillway/recording", .handler = NodeHandler::kRecording},
    {.path = "/debug/spillway/recording/segments/*", .handler = NodeHandler::kRecording},
    {.path = "/debug/spillway/recording/kept/*/*", .handler = NodeHandler::kRecording},
    {.path = "/metrics"},
    {.path = "/metrics/cadvisor"},
    {.path = "/metrics/probes"},
    {.path = "/metrics/resource"},
    {.path = "/metrics/slis"},
    {.path = "/stats/summary", .handler = NodeHandler::kSummary, .methods = NodeMethods::kGetAndPost},
    {.path = "/containerLogs/*/*/*", .handler = NodeHandler::kLogs},
    {.path = "/checkpoint/*/*/*", .handler = NodeHandler::kCheckpoint, .methods = NodeMethods::kPost},
    {.path = "/logs", .handler = NodeHandler::kNodeLogs},
    {.path = "/logs/**", .handler = NodeHandler::kNodeLogs},
    streamed("/exec/*/*/*", NodeHandler::kExec),
    streamed("/exec/*/*/*/*", NodeHandler::kExec),
    streamed("/attach/*/*/*", NodeHandler::kAttach),
    streamed("/attach/*/*/*/*", NodeHandler::kAttach),
    streamed("/portForward/*/*", NodeHandler::kPortForward),
    streamed("/portForward/*/*/*", NodeHandler::kPortForward),
});

bool matches_row(std::string_view row, const std::vector<std::string>& segments) {
  for (const std::string& segment : segments) {
    if (row.empty()) return false;
    row.remove_prefix(1);  // "/"
    if (row == "**") return true;
    const std::string_view wanted = row.substr(0, row.find('/'));
    if (wanted != "*" && wanted != segment) return false;
    row.remove_prefix(wanted.size());
  }
  return row.empty();
}

}  // namespace

std::span<const NodeRoute> node_routes() {
  return kNodeRoutes;
}

NodeRequest::NodeRequest(api::Request request, api::Target target, const NodeRoute& route)
    : request_(std::move(request)), target_(std::move(target)), route_(&route) {}

Result<NodeRequest> NodeRequest::parse(api::Request request) {
  SPILLWAY_TRY(target, api::parse_strict_target(request.target));
  const auto route = std::ranges::find_if(
      kNodeRoutes, [&target](const NodeRoute& each) { return matches_row(each.path, target.segments); });
  if (route == kNodeRoutes.end()) return make_error(ErrorCode::kNotFound, "404 page not found");
  return NodeRequest(std::move(request), std::move(target), *route);
}

NodeAccess NodeRequest::access(FineGrained fine_grained) const {
  const std::string_view verb = route_->verb == NodeVerb::kCreate ? "create" : verb_of(request_.method);
  return node_access(verb, route_->path, fine_grained);
}

bool NodeRequest::is_served_method() const {
  if (request_.method == api::Method::kGet) return route_->methods != NodeMethods::kPost;
  return request_.method == api::Method::kPost && route_->methods != NodeMethods::kGet;
}

}  // namespace spillway::agent
