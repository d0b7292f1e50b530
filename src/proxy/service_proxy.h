// The proxy of a node as an engine: reads Services, EndpointSlices and its Node, and returns changes of packet rules as
// commands. One change is in flight at a time; later ones are merged. A change follows the first cause within `delay`,
// and not more often than one per `min_sync_period` in the long run. After a failure all rules are written anew, after
// a wait that doubles up to `sync_period`. Nothing is written before Services and EndpointSlices were listed
// completely. Thread: loop. Source: Kubernetes docs, "Virtual IPs and Service Proxies", kube-proxy.
#pragma once

#include "api/object/endpoints.h"
#include "api/object/node.h"
#include "api/object/proxied_service.h"
#include "base/back_off.h"
#include "base/rng.h"
#include "base/token_bucket.h"
#include "client/api_client.h"
#include "client/engine.h"
#include "client/informer.h"
#include "client/wake_up.h"
#include "telemetry/log.h"

#include "proxy/own_node.h"
#include "proxy/proxy_metrics.h"
#include "proxy/service_table.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::proxy {

// Commands beyond those of ApiEngine.

/// Command: loads the changes in one transaction; answered once by on_loaded().
struct LoadRules {
  std::uint64_t id = 0;
  std::vector<network::RuleChange> changes;
};

/// Deletes UDP entries of the connection table whose server does not serve any more. Not answered.
struct DeleteFlows {
  std::shared_ptr<const network::FlowCheck> check;
};

/// Command: serves health checks for these Services and no others. Not answered.
struct ServeHealthChecks {
  std::vector<HealthCheckPort> ports;
};

using ProxyCommand = std::variant<LoadRules, DeleteFlows, ServeHealthChecks>;

class ServiceProxy final : public client::ApiEngine {
 public:
  struct Options {
    Settings settings;
    Duration sync_period = seconds(30);     // between attempts after failures, at most
    Duration min_sync_period = seconds(1);  // two may follow at once
    Duration delay = milliseconds(20);
  };

  ServiceProxy(Options options, Rng rng, telemetry::Log log, telemetry::Registry& metrics);
  ServiceProxy(const ServiceProxy&) = delete;
  ServiceProxy& operator=(const ServiceProxy&) = delete;

  std::string_view name() const override { return "kube-proxy"; }

  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

  /// The commands since the last call, in order.
  std::vector<ProxyCommand> take_proxy_commands();

  /// The answer to LoadRules.
  void on_loaded(std::uint64_t id, const Outcome& outcome, Now now);
  /// The addresses of this machine's interfaces, changed or not.
  void on_addresses(std::vector<std::string> addresses, Now now);

  /// Rules were loaded, and none waits for longer than twice the sync period.
  bool is_healthy(Instant now) const;
  /// True if the Node exists, is not being deleted, and is not about to be removed.
  bool is_node_eligible() const;

  std::optional<WallTime> last_loaded() const { return last_loaded_; }

  std::size_t services() const { return table_.services(); }

 private:
  void mark_changed(Now now);
  void renew_settings(Now now);
  void schedule(Now now);
  void load(Now now);
  void on_up_to_date(Now now);

  Options options_;
  telemetry::Log log_;
  client::ApiClient client_;
  client::Informer<api::ProxiedService> services_;
  client::Informer<api::EndpointSlice> slices_;
  client::Informer<api::Node> nodes_;
  ServiceTable table_;
  ProxyMetrics metrics_;
  std::vector<std::string> addresses_;
  std::vector<std::string> settings_in_effect_;  // frames as text, to see if they change
  std::optional<Instant> waiting_since_;         // the first change that is not loaded
  std::optional<TokenBucket> bucket_;            // limits loads
  std::optional<std::uint64_t> loading_;
  bool loading_whole_ = false;
  Instant load_began_{};
  bool flows_changed_ = false;
  std::optional<Instant> retry_at_;
  BackOff back_off_;
  std::uint64_t last_id_ = 0;
  std::optional<WallTime> last_loaded_;
  client::WakeUp wake_up_;
  std::vector<HealthCheckPort> health_checks_;
  std::vector<ProxyCommand> commands_;
};

}  // namespace spillway::proxy
