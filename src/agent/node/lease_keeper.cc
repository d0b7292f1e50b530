#include "agent/node/lease_keeper.h"

#include "api/text/duration.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {

namespace {

/// A call is repeated this often after 429 or 5xx with Retry-After, as the agent's other heartbeats are.
constexpr int kLeaseCallRetries = 10;

Duration lease_call_timeout(const AgentOptions& options) {
  return std::min(options.status_update_frequency, options.lease_duration);
}

}  // namespace

LeaseKeeper::LeaseKeeper(const AgentOptions& options, Rng rng, telemetry::Log log, telemetry::Registry* metrics,
                         std::function<void()> ask_for_sign)
    : name_("lease-" + options.node_name),
      node_name_(options.node_name),
      log_(std::move(log)),
      ask_for_sign_(std::move(ask_for_sign)),
      client_("spillway-agent", rng.fork("calls"),
              {.call_timeout = lease_call_timeout(options), .retries_max = kLeaseCallRetries}),
      lease_({.node_name = options.node_name,
              .lease_duration = options.lease_duration,
              .query = "?timeout=" + api::format_duration(lease_call_timeout(options))},
             client_, log_, rng.fork("lease")) {
  if (metrics != nullptr) {
    failures_ = metrics->counter("spillway_lease_repeated_failures_total",
                                 "Lease writes that failed after another one had failed in the same run");
  }
  lease_.when_failing_repeatedly([this] { failures_.add(); });
  lease_.renew_only_if([this](Now now) { return may_renew(now); });
}

void LeaseKeeper::start(Now now) {
  client_.start(now);
  lease_.start(now);
}

void LeaseKeeper::on_api_event(const client::ApiEvent& event, Now now) {
  client_.on_api_event(event, now);
}

void LeaseKeeper::on_wakeup(Now now) {
  client_.on_wakeup(now);
}

std::optional<Instant> LeaseKeeper::next_wakeup() const {
  return client_.next_wakeup();
}

std::vector<client::ApiCommand> LeaseKeeper::take_api_commands() {
  return client_.take_api_commands();
}

void LeaseKeeper::on_node_registered(Now now) {
  lease_.on_node_registered(now);
}

void LeaseKeeper::on_sign(Now) {
  asked_.reset();
  if (std::exchange(withheld_, false)) log_.info("lease is renewed again", {{"node", node_name_}});
}

bool LeaseKeeper::may_renew(Now now) {
  if (!asked_) {
    asked_ = now.mono;
    ask_for_sign_();
  }
  const Duration silent = now.mono - *asked_;
  if (silent <= kSignWait) return true;
  if (!std::exchange(withheld_, true)) {
    log_.error("lease is not renewed: the agent's loop is stuck",
               {{"node", node_name_}, {"seconds", silent / seconds(1)}});
  }
  return false;
}

LeaseKeeper::State LeaseKeeper::state() const {
  return {
      .known = lease_.is_known(), .running = lease_.is_running(), .withheld = withheld_, .renewed = lease_.renewed()};
}

}  // namespace spillway::agent
