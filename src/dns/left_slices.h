// Removes the EndpointSlices of kube-dns that DNS servers left behind which were killed: no pod may query a server that
// has stopped. For a process that alone uses its store, so that every slice but its own is such a one. Done once, at
// the start, and again until it has succeeded. Thread: loop. Bounds: one call at a time.
#pragma once

#include "client/api_client.h"
#include "client/engine.h"
#include "telemetry/log.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::dns {

class LeftSlices final : public client::ApiEngine {
 public:
  /// `own`: name of the slice of this server, which stays; empty: it has none.
  LeftSlices(std::string own, Rng rng, telemetry::Log log);

  std::string_view name() const override { return "spillway-dns-left-slices"; }

  void start(Now now) override;

  void on_api_event(const client::ApiEvent& event, Now now) override { client_.on_api_event(event, now); }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  void find();
  void on_found(const Result<api::Json>& found, Now now);
  void remove(const std::string& slice);
  void on_removed(const std::string& slice, const Result<api::Json>& removed, Now now);
  void retry(const Error& error, Now now);

  std::string own_;
  telemetry::Log log_;
  client::ApiClient client_;
};

}  // namespace spillway::dns
