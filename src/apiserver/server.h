// The API server as an engine: requests in, answers into sinks, state in the store, reads from the watch cache.
// Thread: loop. It owns no thread, socket or clock; wire/ and the in-process transport feed it, sim/ does too.
// Source: spec "API server contract".
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "apiserver/collect/kubernetes_objects.h"
#include "apiserver/read/origin.h"
#include "apiserver/read/stored_form.h"
#include "apiserver/request/health.h"
#include "apiserver/resource/kind_hooks.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/flow/built_in.h"
#include "store/store.h"
#include "telemetry/log.h"
#include "telemetry/memory_table.h"
#include "telemetry/metrics.h"
#include "telemetry/tracer.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class AggregatedGateway;
class Auditor;
class CertificateReader;
class FuturePlayer;
class NodeGateway;
class PodGateway;
class BootstrapTokens;
class RequestAuthority;
struct ReadRequest;
class TokenAuthenticator;
class TokenSigner;
class WebhookCaller;

using RequestId = std::uint64_t;

class ApiServer {
 public:
  /// Controllers of the server's objects, apart from clients over the network.
  enum class Controllers {
    kUnknown,  // other processes, if any
    kOwn,      // ours alone: creating an object that they do not handle gets a warning
    kNone      // none, and no collectors of the server: it only answers requests
  };

  struct Options {
    std::uint64_t seed = 0;         // for uids, generated names, watch time-outs
    std::string version = "0.1.0";  // Spillway's; /version answers v1.32.0-spillway.<version>
    Controllers controllers = Controllers::kUnknown;
    NodeGateway* gateway = nullptr;
    PodGateway* pods = nullptr;                           // null: servers in pods cannot be reached
    std::string_view scheme = "https";                    // the server's, as clients use it
    const TokenSigner* signer = nullptr;                  // null: no tokens are issued
    std::optional<Duration> token_life_max = {};          // nullopt: as long as each request wants
    const TokenAuthenticator* authenticator = nullptr;    // null: no tokens are reviewed
    const CertificateReader* certificates = nullptr;      // null: no certificates are requested or issued
    const RequestAuthority* serving_authority = nullptr;  // null: the serving certificates of agents are not signed
    const RequestAuthority* client_authority = nullptr;   // null: the client certificates of nodes are not signed
    BootstrapTokens* bootstrap_tokens = nullptr;          // null: they are not kept
    WebhookCaller* webhooks = nullptr;                    // null: admission webhooks cannot be asked
    AggregatedGateway* aggregated = nullptr;              // null: no other servers' APIs are served
    FuturePlayer* futures = nullptr;                      // null: what would happen is not played
    const Auditor* auditor = nullptr;                     // null: no audit log is kept
    telemetry::Tracer* tracer = nullptr;                  // null: requests leave no spans
    std::string root_ca_pem = {};                         // by which pods verify the server; empty: none is published
    std::string proxy_ca_pem = {};                        // the authority of the certificate that `aggregated` shows
    std::string client_ca_pem = {};                       // authorities that verify clients; empty: certificates off
    AdmissionRules admission;
    bool fair = true;                                            // false: requests run in the order of arrival
    flow::Configuration flows = flow::built_in_configuration();  // the priorities of requests
    int seats = 600;                                             // concurrent requests that are not exempt; above 0
    /// Heartbeats take the short way (write/renewals.h). Without it they are written all the same, at more cost.
    bool short_renewals = true;
    StorageOptions storage = {};
    std::vector<SeparateStore> separate = {};   // for resources that do not live in the main store
    Duration compaction_interval = minutes(5);  // so much of each store's history is kept; 0: all
    /// The time in callbacks of the store and of agents. Empty: the time of the last event.
    std::function<Now()> clock;
    /// Called when next_wakeup() has moved to an earlier instant inside a callback of the store. May be empty: then the
    /// driver reads next_wakeup() after each callback of the store.
    std::function<void()> rearm;
    /// The health of parts of the process that must be ready before requests are served. May be empty.
    std::function<std::vector<HealthCheck>()> checks;
    /// The memory of the other parts of this process, for the page /debug/memory. May be empty.
    std::function<telemetry::MemoryRows()> memory;
    /// Pages of other parts of this process: the answer to a GET of this path, for callers who may; nullopt for a path
    /// that is not one of them. May be empty.
    std::function<std::optional<api::Response>(std::string_view path)> pages;
    /// The same of pages that take a while: false for a path that is not one of them. `answer` is called at most once,
    /// now or later on the loop. May be empty.
    std::function<bool(std::string_view path, std::function<void(api::Response)> answer)> slow_pages;
  };

  /// `store`: the main one.
  ApiServer(store::Store& store, telemetry::Registry& metrics, telemetry::Log log, Options options);
  ~ApiServer();

  /// Loads the store into the cache and creates what every cluster has (namespaces, priority classes, service
  /// accounts). `ready` is called once; an error means the store cannot be served.
  void start(Now now, std::move_only_function<void(Outcome)> ready);

  /// Answers into `sink`, now or later. `user` has been authenticated.
  RequestId handle(api::Request request, api::UserInfo user, std::shared_ptr<api::ResponseSink> sink, Now now);
  /// The same of a request that read() has read; null: it is read now.
  RequestId handle(api::Request request, std::shared_ptr<const api::UserInfo> user,
                   std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink, Now now);

  enum class Body : std::uint8_t { kNo, kYes };

  /// Parses a request, with its body where that is wanted. Pure. Thread: any, while the server lives.
  std::shared_ptr<const ReadRequest> read(const api::Request& request, const api::UserInfo& user, Body body) const;

  /// The client is gone: nothing more is written to its sink.
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
