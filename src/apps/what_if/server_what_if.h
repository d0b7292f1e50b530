// Runs the what-if simulations that clients request at /ui/what-if. The loop only passes pages of lists on to a file,
// as for any client; the child, which has nothing but that file and the scenario, does the rest. Thread: loop. Bounds:
// one at a time, ClusterReading::Limits, LimitedRun::Limits.
#pragma once

#include "apiserver/ports/future_simulator.h"
#include "apps/what_if/cluster_reading.h"
#include "apps/what_if/what_if_run.h"
#include "runtime/loop.h"
#include "wire/server/http_server.h"

#include <cstdint>
#include <memory>
#include <string_view>

namespace spillway::apps {

class ServerWhatIf final : public apiserver::FutureSimulator {
 public:
  /// `scheme`: of the server's origin, "https".
  ServerWhatIf(runtime::Loop& loop, std::string_view scheme) : loop_(loop), scheme_(scheme) {}

  /// Reads from `server` from now on, which outlives this or the next end().
  void read_from(wire::RequestHandler& server) { server_ = &server; }

  /// Refuses waiting and future requests.
  void end();

  /// Errors are those of start_what_if(), and 400, 403, 413, 422: an invalid question; 429: another one is being
  /// played; and the server's answers to `requester` for lists.
  void simulate(std::uint64_t id, const api::Request& asked, std::shared_ptr<const api::UserInfo> requester,
                Done done) override;
  void abandon(std::uint64_t id) override;

 private:
  void on_read(ClusterReading::Ended ended);
  void answer(api::Response response);

  runtime::Loop& loop_;
  std::string_view scheme_;
  wire::RequestHandler* server_ = nullptr;
  std::uint64_t id_ = 0;  // the running simulation's
  Done done_;             // null: none is
  sim::WhatIf question_;
  std::unique_ptr<ClusterReading> reading_;
  std::unique_ptr<LimitedRun> run_;
};

}  // namespace spillway::apps
