// Gives Services of type LoadBalancer the addresses of this machine, as status.loadBalancer.ingress, so that the
// service proxy of the machine leads connections to them. A Service gets them only if each of its ports is free: of
// Services that want one port, the oldest has it, and a port at which a program of the machine listens is no Service's,
// so that the right to write Services does not take over the machine's own servers. Services of another implementation
// (spec.loadBalancerClass) are left alone. Thread: loop. Bounds: 16 writes in flight; 100 ports of a Service and 16
// addresses of the machine; a step ends after 1,600 trials of a port, and may finish the Service in hand; a Service
// that waits for a program's port is checked again after 1 s, then 2 s, up to 60 s. Source: Kubernetes docs, "Service",
// type LoadBalancer.
#pragma once

#include "api/object/proxied_service.h"
#include "api/text/ip_address.h"
#include "client/engine.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "telemetry/log.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::controllers {

class MachineBalancer final : public client::ApiEngine {
 public:
  struct Options {
    std::vector<std::string> addresses;  // the machine's; loopback addresses are left out
    /// True if a program of the machine listens at the port of the address. Answers at once.
    std::function<bool(const std::string& address, std::string_view protocol, std::int32_t port)> is_taken;
  };

  MachineBalancer(Options options, Rng rng, telemetry::Log log);

  std::string_view name() const override { return "machine-balancer"; }

  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  using ServicePtr = std::shared_ptr<const api::ProxiedService>;
  using Port = std::pair<std::string, std::int32_t>;                       // protocol, number
  using Claimant = std::pair<std::optional<WallTime>, client::ObjectKey>;  // the older first

  void on_service(const ServicePtr& before, const ServicePtr& after, Now now);
  void claim(const client::ObjectKey& key, const api::ProxiedService& service, Now now);
  void release(const client::ObjectKey& key, const api::ProxiedService& service, Now now);
  void run(Now now);
  void sync(const client::ObjectKey& key, Now now);
  /// Too many ports, or the older Service that has a port of this one, as a sentence; empty: neither.
  std::string refusal(const client::ObjectKey& key, const api::ProxiedService& service) const;
  /// The port of the Service at which a program of the machine listens, as a sentence; empty: there is none.
  std::string taken_port(const api::ProxiedService& service, const std::vector<std::string>& addresses);
  void report(const client::ObjectKey& key, const api::ProxiedService& service, const std::string& why, Now now);
  /// The addresses of the Service's families.
  std::vector<std::string> addresses_of(const api::ProxiedService& service) const;
  void write(const client::ObjectKey& key, const ServicePtr& service, const std::vector<std::string>& addresses);
  void on_written(const client::ObjectKey& key, const Result<api::Json>& written, Now now);

  Options options_;
  telemetry::Log log_;
  client::ApiClient client_;
  client::Informer<api::ProxiedService> services_;
  client::EventRecorder events_;
  client::WorkQueue queue_{{.retry_min = seconds(1), .retry_max = seconds(60)}};
  client::WakeUp wake_up_;
  std::map<Port, std::set<Claimant>> claimants_;
  std::map<client::ObjectKey, std::string> obstacles_;  // reported last
  std::size_t writes_ = 0;
  std::size_t port_trials_ = 0;  // trials of ports in this step
};

}  // namespace spillway::controllers
