// Creates the Service by which pods find the DNS server of this process, and keeps its EndpointSlice: both are written
// once at the start, and again until that has succeeded. An existing Service of the name is not changed, so that an
// operator may edit it; the slice belongs to this server, and is deleted at its end. Thread: loop.
// Source: Kubernetes DNS specification 1.1.0; kubeadm's Service kube-dns.
#pragma once

#include "client/api_client.h"
#include "client/engine.h"
#include "telemetry/log.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::dns {

/// The label by which slices that this server keeps are found.
inline constexpr std::string_view kSliceManagedBy = "endpointslice.kubernetes.io/managed-by";
inline constexpr std::string_view kSliceManager = "spillway-dns";

class ServiceKeeper final : public client::ApiEngine {
 public:
  struct Options {
    std::string cluster_ip;  // the Service's
    std::string slice;       // name of the EndpointSlice: each server of one store has its own
    std::string address;     // where the server listens. A loopback address, invalid in endpoints: no slice
    std::uint16_t port = 0;  // port for UDP and TCP
  };

  ServiceKeeper(Options options, Rng rng, telemetry::Log log);

  std::string_view name() const override { return "spillway-dns-service"; }

  void start(Now now) override;

  /// Deletes the slice, for a server that ends; `done` is called once the API server has answered. Nothing is written
  /// afterwards. Called once.
  void end(std::function<void()> done);

  void on_api_event(const client::ApiEvent& event, Now now) override { client_.on_api_event(event, now); }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  void find_service();
  void on_found(const Result<api::Json>& found, Now now);
  void create_service();
  void on_created(const Result<api::Json>& made, Now now);
  void begin_slice();
  void create_slice();
  void replace_slice();
  void retry(std::string_view doing, const Error& error, void (ServiceKeeper::*step)(), Now now);

  Options options_;
  telemetry::Log log_;
  bool ending_ = false;
  client::ApiClient client_;
};

}  // namespace spillway::dns
