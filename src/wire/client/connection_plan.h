// Chooses the connection of an HttpClient for an exchange. Pure. Over HTTP/2 calls and streams share a connection up to
// as many as it takes, then there is another one; heartbeats have connections of their own, so that no list delays
// them. Over HTTP/1.1 calls share a few connections and every stream has its own. Upgraded connections are always
// separate, over HTTP/1.1. Thread: any. Source: spec "HTTP/2", 8.2.
#pragma once

#include "api/exchange/exchange.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace spillway::wire {

enum class ExchangeKind {
  kCall,
  kStream,
  kUpgrade,  // requests an upgrade
};

/// A lane of exchanges: over HTTP/2 exchanges of different lanes share no connection.
enum class Lane { kHeartbeats, kOrdinary };

/// Calls that keep a node alive, or an elected controller in office: small, and late ones are expensive.
Lane lane_of(ExchangeKind kind, api::Method method, std::string_view target);

/// The protocol of a connection; undecided while it is being established.
enum class Spoken { kUndecided, kHttp11, kHttp2 };

/// A connection as the plan sees it.
struct PlannedConnection {
  std::uint64_t id = 0;
  Spoken spoken = Spoken::kUndecided;
  Lane lane = Lane::kOrdinary;
  bool single = false;          // used for one exchange only
  bool closing = false;         // takes nothing new
  std::size_t carried = 0;      // exchanges at the moment
  std::size_t streams_max = 0;  // over HTTP/2
};

struct PlanBounds {
  std::size_t call_connections_max = 8;   // over HTTP/1.1
  std::size_t http2_connections_max = 8;  // in each lane
  std::size_t streams_max = 100;          // used until the server has announced its own limit
};

/// An exchange that waits for a connection.
struct PlannedExchange {
  ExchangeKind kind = ExchangeKind::kCall;
  Lane lane = Lane::kOrdinary;
  /// The last connection had died in silence: others that have been open since may have, too.
  bool anew = false;
};

struct Placement {
  enum class What {
    kUse,   // the connection `id`
    kOpen,  // open a new connection
    kWait,  // until a connection has room
  };

  What what = What::kWait;
  std::uint64_t id = 0;
  bool single = false;    // the new connection is for this exchange only
  bool upgrades = false;  // the new connection must speak HTTP/1.1

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// `expected`: what the server spoke last, or has to speak; undecided before the first connection.
Placement place(const PlannedExchange& exchange, std::span<const PlannedConnection> connections, Spoken expected,
                const PlanBounds& bounds);

}  // namespace spillway::wire
