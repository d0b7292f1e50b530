#include "wire/client/connection_plan.h"

#include "wire/http/client_rank.h"

#include <algorithm>

namespace spillway::wire {
namespace {

/// True for a GET of one node, which an agent sends before it writes its status.
bool reads_one_node(api::Method method, std::string_view path) {
  constexpr std::string_view kNodes = "/api/v1/nodes/";
  return method == api::Method::kGet && path.starts_with(kNodes) &&
         path.find('/', kNodes.size()) == std::string_view::npos;
}

bool may_share(const PlannedConnection& connection, const PlannedExchange& exchange, const PlanBounds& bounds) {
  if (connection.closing || connection.single) return false;
  switch (connection.spoken) {
    case Spoken::kHttp11:
      return exchange.kind == ExchangeKind::kCall && connection.carried == 0 && !exchange.anew;
    case Spoken::kHttp2:
      return connection.lane == exchange.lane && connection.carried < connection.streams_max && !exchange.anew;
    case Spoken::kUndecided:
      return connection.lane == exchange.lane && connection.carried < bounds.streams_max;
  }
  return false;
}

Placement open_over_http11(const PlannedExchange& exchange, std::span<const PlannedConnection> connections,
                           const PlanBounds& bounds) {
  if (exchange.kind == ExchangeKind::kStream) return {.what = Placement::What::kOpen, .single = true};
  const auto for_calls = std::ranges::count_if(
      connections, [](const auto& each) { return !each.single && each.spoken != Spoken::kHttp2; });
  if (static_cast<std::size_t>(for_calls) >= bounds.call_connections_max) return {};
  return {.what = Placement::What::kOpen};
}

Placement open_over_http2(const PlannedExchange& exchange, std::span<const PlannedConnection> connections,
                          Spoken expected, const PlanBounds& bounds) {
  const auto in_lane = std::ranges::count_if(connections, [&](const auto& each) {
    return !each.single && !each.closing && each.spoken != Spoken::kHttp11 && each.lane == exchange.lane;
  });
  const std::size_t most = expected == Spoken::kUndecided ? 1 : bounds.http2_connections_max;
  if (static_cast<std::size_t>(in_lane) >= most) return {};
  return {.what = Placement::What::kOpen};
}

}  // namespace

Lane lane_of(ExchangeKind kind, api::Method method, std::string_view target) {
  if (kind != ExchangeKind::kCall) return Lane::kOrdinary;
  const bool heartbeat = class_of(ClientRank::kVital, method, target) == RequestClass::kHeartbeat ||
                         reads_one_node(method, target.substr(0, target.find('?')));
  return heartbeat ? Lane::kHeartbeats : Lane::kOrdinary;
}

Placement place(const PlannedExchange& exchange, std::span<const PlannedConnection> connections, Spoken expected,
                const PlanBounds& bounds) {
  if (exchange.kind == ExchangeKind::kUpgrade)
    return {.what = Placement::What::kOpen, .single = true, .upgrades = true};
  // Prefers an open connection to one that is being opened, which may fail.
  for (const bool open : {true, false}) {
    for (const PlannedConnection& each : connections) {
      if ((each.spoken != Spoken::kUndecided) != open || !may_share(each, exchange, bounds)) continue;
      if (!open && expected == Spoken::kHttp11) continue;  // an HTTP/1.1 connection carries one call at a time
      return {.what = Placement::What::kUse, .id = each.id};
    }
  }
  const Placement opened = expected == Spoken::kHttp11 ? open_over_http11(exchange, connections, bounds)
                                                       : open_over_http2(exchange, connections, expected, bounds);
  if (opened.what != Placement::What::kWait || !exchange.anew) return opened;
  return place({.kind = exchange.kind, .lane = exchange.lane}, connections, expected, bounds);
}

}  // namespace spillway::wire
