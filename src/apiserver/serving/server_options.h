// The options of an API server, and the parts of its process that it uses. Thread: any (plain values).
#pragma once

#include "api/exchange/exchange.h"
#include "apiserver/read/origin.h"
#include "apiserver/read/stored_form.h"
#include "apiserver/request/health.h"
#include "apiserver/resource/kind_hooks.h"
#include "base/time.h"
#include "base/version.h"
#include "policy/flow/built_in.h"
#include "telemetry/memory_table.h"
#include "telemetry/tracer.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class AggregatedGateway;
class Auditor;
class BootstrapTokens;
class CertificateReader;
class FutureSimulator;
class NodeGateway;
class PodGateway;
class RequestAuthority;
class TokenAuthenticator;
class TokenSigner;
class WebhookCaller;

struct ServerOptions {
  /// Controllers of the server's objects, apart from clients over the network.
  enum class Controllers {
    kUnknown,  // other processes may run controllers
    kOwn,      // ours alone: creating an object that they do not handle gets a warning
    kNone      // none, and no collectors of the server: it only answers requests
  };

  std::uint64_t seed = 0;                  // for uids, generated names, watch time-outs
  std::string version{program_version()};  // Spillway's; /version answers v1.36.0-spillway.<version>
  Controllers controllers = Controllers::kUnknown;
  NodeGateway* gateway = nullptr;
  PodGateway* pods = nullptr;                           // null: servers in pods cannot be reached
  std::string_view scheme = "https";                    // the server's, as clients use it
  const TokenSigner* signer = nullptr;                  // null: no tokens are issued
  std::optional<Duration> token_life_max = {};          // nullopt: as long as each request asks
  const TokenAuthenticator* authenticator = nullptr;    // null: no tokens are reviewed
  const CertificateReader* certificates = nullptr;      // null: no certificates are requested or issued
  const RequestAuthority* serving_authority = nullptr;  // null: the serving certificates of agents are not signed
  const RequestAuthority* client_authority = nullptr;   // null: the client certificates of nodes are not signed
  BootstrapTokens* bootstrap_tokens = nullptr;          // null: bootstrap tokens are not accepted
  WebhookCaller* webhooks = nullptr;                    // null: admission webhooks cannot be called
  AggregatedGateway* aggregated = nullptr;              // null: no other servers' APIs are served
  FutureSimulator* futures = nullptr;                   // null: what-if requests get 404
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
  std::vector<SeparateStore> separate = {};   // stores of resources that are not in the main store
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
  /// Pages that take a while: false for a path that is not one of them. `answer` is called at most once, now or later
  /// on the loop. May be empty.
  std::function<bool(std::string_view path, std::function<void(api::Response)> answer)> slow_pages;
};

}  // namespace spillway::apiserver
