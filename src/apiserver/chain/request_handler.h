// The open requests of a server: begins a run for each request, finds it when its client disconnects or flow control
// lets it run, and counts it when it is answered. Thread: loop, but for read(). Bounds: open requests are limited by
// their connections and by flow control. Source: spec "API server contract", 4, 16.
#pragma once

#include "api/exchange/exchange.h"
#include "apiserver/chain/request_run.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/request/request_metrics.h"
#include "telemetry/metrics.h"
#include "telemetry/tracer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace spillway::apiserver {

class RequestHandler {
 public:
  /// `tracer` null: requests leave no spans. All of them outlive the handler.
  RequestHandler(const ChainTools& tools, WatchHub& hub, telemetry::Registry& metrics, telemetry::Tracer* tracer)
      : tools_(tools), hub_(hub), metrics_(metrics), tracer_(tracer) {}

  RequestHandler(const RequestHandler&) = delete;
  RequestHandler& operator=(const RequestHandler&) = delete;

  /// Parses a request, without its body. Thread: any: a table of resources and a plan of flows do not change.
  std::shared_ptr<ReadRequest> read(const api::Request& request, const api::UserInfo& user) const;

  /// Answers into `sink`, now or later. `read` null: the request is parsed now. Returns the id of the request.
  std::uint64_t handle(api::Request request, std::shared_ptr<const api::UserInfo> user,
                       std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink);

  /// The client has disconnected. Nothing happens if the request has been answered.
  void abandon(std::uint64_t id);

  /// Flow control has let a request run, or refuses it.
  void on_turn(std::uint64_t id, const std::optional<api::Status>& refusal);

  std::size_t in_flight() const { return open_.size(); }

 private:
  void on_finished(Exchange& exchange, int code);

  ChainTools tools_;
  WatchHub& hub_;
  RequestMetrics metrics_;
  telemetry::Tracer* tracer_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<RequestRun>> open_;
};

}  // namespace spillway::apiserver
