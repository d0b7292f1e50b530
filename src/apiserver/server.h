// The API server as an engine: requests in, answers into sinks, state in the store, reads from the watch cache.
// Thread: loop. It owns no thread, socket or clock; wire/ and the in-process transport feed it, sim/ does too.
// Source: spec "API server contract".
#pragma once

#include "api/exchange/exchange.h"
#include "apiserver/collect/kubernetes_objects.h"
#include "apiserver/serving/server_options.h"
#include "base/error.h"
#include "base/time.h"
#include "store/store.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

struct ReadRequest;

using RequestId = std::uint64_t;

class ApiServer {
 public:
  using Controllers = ServerOptions::Controllers;
  using Options = ServerOptions;

  /// `store`: the main one.
  ApiServer(store::Store& store, telemetry::Registry& metrics, telemetry::Log log, Options options);
  ~ApiServer();

  /// Loads the store into the cache and creates what every cluster has (namespaces, priority classes, service
  /// accounts). `ready` is called once; an error means the store cannot be served.
  void start(Now now, std::move_only_function<void(Outcome)> ready);

  /// Answers into `sink`, now or later. `user` has been authenticated.
  RequestId handle(api::Request request, api::UserInfo user, std::shared_ptr<api::ResponseSink> sink, Now now);
  /// Handles a request that read() has parsed; `read` null: it is parsed now.
  RequestId handle(api::Request request, std::shared_ptr<const api::UserInfo> user,
                   std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink, Now now);

  enum class Body : std::uint8_t { kNo, kYes };

  /// Parses a request, with its body where that is wanted. Pure. Thread: any, while the server lives.
  std::shared_ptr<const ReadRequest> read(const api::Request& request, const api::UserInfo& user, Body body) const;

  /// The client has disconnected: nothing more is written to its sink.
  void abandon(RequestId id);

  /// Makes this server of a store the active one: it collects garbage, empties namespaces, counts disruption budgets
  /// and signs requests of nodes. A server with an unshared store is active from the beginning. May change at any time,
  /// also before start().
  void act(bool on, Now now);

  /// Sets the addresses at which pods reach this server, and all servers of its store: writes the Service `kubernetes`
  /// with its endpoints. Called at any time after start(), and at each change. `port`: above 0.
  void announce(std::uint16_t port, std::vector<ServingAddress> addresses, Now now);

  /// Replaces Options::client_ca_pem.
  void set_client_ca(std::string pem, Now now);

  void on_wakeup(Now now);
  std::optional<Instant> next_wakeup() const;

  /// Refuses new requests with 503, ends all watches. Afterwards in_flight() falls to zero.
  void stop();
  std::size_t in_flight() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::apiserver
