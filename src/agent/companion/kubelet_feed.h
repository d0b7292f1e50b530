// Reads the kubelet's own pages over HTTP: its configuration, again every few minutes because a restart may change it,
// and its pods, unless those are read from the API server. An engine: no I/O, one transport to the kubelet.
// Thread: loop. Source: spec "Node agent", 12.3 (/pods, /configz).
#pragma once

#include "agent/companion/kubelet_settings.h"
#include "api/object/pod.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/engine.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// The reason why the kubelet does not serve `page` ("/pods"), with a remedy if it rejects the client. One line.
std::string explain_refusal(const Error& error, std::string_view page);

class KubeletFeed final : public client::ApiEngine {
 public:
  struct Options {
    bool pods = false;
    Duration pods_period = seconds(1);
    Duration config_period = minutes(5);
    Duration retry = seconds(5);  // after a configuration that could not be read
  };

  struct Listener {
    std::function<void(Result<KubeletSettings>, Now)> on_settings;
    std::function<void(Result<std::vector<api::Pod>>, Now)> on_pods;
  };

  KubeletFeed(Options options, Rng rng, Listener listener);

  std::string_view name() const override { return "kubelet-feed"; }

  void start(Now now) override;

  void on_api_event(const client::ApiEvent& event, Now now) override { api_.on_api_event(event, now); }

  void on_wakeup(Now now) override { api_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return api_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return api_.take_api_commands(); }

 private:
  void read_settings();
  void on_settings(const Result<api::Json>& outcome, Now now);
  void read_pods();
  void on_pods(const Result<api::Json>& outcome, Now now);

  Options options_;
  Listener listener_;
  client::ApiClient api_;
};

}  // namespace spillway::agent
