#include "proxy/service_proxy.h"

#include "policy/network/frame_rules.h"
#include "policy/network/nft_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::proxy {
namespace {

constexpr std::size_t kServicesInStep = 200;
constexpr int kLoadBurst = 2;
constexpr Duration kFirstRetry = seconds(1);

std::string of_node(const std::string& name) {
  return "fieldSelector=metadata.name%3D" + name;
}

/// Equal texts mean equal rules of all Services.
std::string fingerprint(const network::RuleSettings& settings) {
  network::RuleChange change;
  change.family = settings.family;
  network::RulePart frame = network::frame_rules(settings);
  change.chains = std::move(frame.chains);
  for (auto& [target, elements] : frame.targets) change.added.merge(elements);
  return fmt::format("{}\n{}\n{}\n{}", network::change_text(change), settings.zone, settings.masquerade_all,
                     settings.node_ip ? network::text_of(*settings.node_ip) : "");
}

}  // namespace

ServiceProxy::ServiceProxy(Options options, Rng rng, telemetry::Log log, telemetry::Registry& metrics)
    : options_(std::move(options)),
      log_(std::move(log)),
      client_("kube-proxy", rng.fork("client")),
      services_(client_, client::object_path("v1", "services", ""),
                std::string(network::kProxiedSelector) + "&fieldSelector=spec.clusterIP%21%3DNone"),
      slices_(client_, client::object_path("discovery.k8s.io/v1", "endpointslices", ""),
              std::string(network::kProxiedSelector)),
      nodes_(client_, client::object_path("v1", "nodes", ""), of_node(options_.settings.node_name)),
      table_(options_.settings.families, options_.settings.node_name),
      metrics_(metrics),
      back_off_(kFirstRetry, options_.sync_period) {
  services_.cache().listen({[this](const auto& before, const auto& after, Now now) {
    metrics_.count_service_change();
    table_.on_service(before, after);
    mark_changed(now);
  }});
  slices_.cache().listen({[this](const auto& before, const auto& after, Now now) {
    metrics_.count_endpoint_change();
    table_.on_slice(before, after);
    mark_changed(now);
  }});
  nodes_.cache().listen({[this](const auto&, const auto&, Now now) {
    if (client_.synced()) renew_settings(now);
  }});
}

void ServiceProxy::start(Now now) {
  bucket_.emplace(BucketKind::kContinuous, 1e9F / static_cast<float>(options_.min_sync_period.count()), kLoadBurst,
                  now.mono);
  client_.when_synced([this](Now synced) {
    renew_settings(synced);
    mark_changed(synced);
  });
  client_.start(now);
}

void ServiceProxy::on_api_event(const client::ApiEvent& event, Now now) {
  client_.on_api_event(event, now);
  schedule(now);
}

void ServiceProxy::on_wakeup(Now now) {
  client_.on_wakeup(now);
  schedule(now);
}

std::vector<ProxyCommand> ServiceProxy::take_proxy_commands() {
  return std::exchange(commands_, {});
}

void ServiceProxy::on_addresses(std::vector<std::string> addresses, Now now) {
  if (addresses == addresses_) return;
  addresses_ = std::move(addresses);
  if (client_.synced()) renew_settings(now);
  schedule(now);
}

void ServiceProxy::mark_changed(Now now) {
  if (waiting_since_) return;
  waiting_since_ = now.mono;
  metrics_.record_queued(now.wall);
}

void ServiceProxy::renew_settings(Now now) {
  const auto node = nodes_.cache().find(options_.settings.node_name);
  std::vector<network::RuleSettings> settings;
  std::vector<std::string> fingerprints;
  for (const network::Family family : options_.settings.families) {
    settings.push_back(rule_settings(options_.settings, family, node.get(), addresses_));
    fingerprints.push_back(fingerprint(settings.back()));
  }
  if (fingerprints == settings_in_effect_) return;
  settings_in_effect_ = std::move(fingerprints);
  table_.set_settings(std::move(settings));
  mark_changed(now);
}

void ServiceProxy::schedule(Now now) {
  if (!client_.synced() || !waiting_since_ || loading_) return wake_up_.set(client_, std::nullopt);
  Instant due = *waiting_since_ + options_.delay;
  if (retry_at_) due = std::max(due, *retry_at_);
  if (const auto grant = bucket_->next_grant(now.mono)) due = std::max(due, *grant);
  if (now.mono < due) return wake_up_.set(client_, due);
  // Many marks are worked through in several steps, so that none takes long.
  if (!table_.update(kServicesInStep)) return wake_up_.set(client_, now.mono);
  wake_up_.set(client_, std::nullopt);
  load(now);
}

void ServiceProxy::load(Now now) {
  waiting_since_.reset();
  retry_at_.reset();
  flows_changed_ = table_.take_flows_changed() || flows_changed_;
  if (auto checks = table_.health_check_ports(); checks != health_checks_) {
    health_checks_ = checks;
    commands_.emplace_back(ServeHealthChecks{std::move(checks)});
  }
  std::vector<network::RuleChange> changes = table_.take_changes(now.mono);
  if (changes.empty()) return on_up_to_date(now);
  (void)bucket_->try_take(now.mono);
  loading_ = ++last_id_;
  loading_whole_ = std::ranges::any_of(changes, &network::RuleChange::whole);
  load_began_ = now.mono;
  commands_.emplace_back(LoadRules{*loading_, std::move(changes)});
}

void ServiceProxy::on_loaded(std::uint64_t id, const Outcome& outcome, Now now) {
  if (loading_ != id) return;
  loading_.reset();
  if (!outcome) {
    metrics_.count_failure();
    const Duration wait = back_off_.next();
    log_.error("packet rules could not be loaded",
               {{"error", outcome.error().text()}, {"retry_seconds", wait / seconds(1)}});
    table_.begin_anew();
    mark_changed(now);
    retry_at_ = now.mono + wait;
  } else {
    back_off_.reset();
    if (!last_loaded_) log_.info("packet rules loaded", {{"services", static_cast<std::uint64_t>(services())}});
    metrics_.record_loaded(loading_whole_, now.mono - load_began_, now.wall);
    on_up_to_date(now);
  }
  schedule(now);
}

void ServiceProxy::on_up_to_date(Now now) {
  last_loaded_ = now.wall;
  if (!std::exchange(flows_changed_, false)) return;
  commands_.emplace_back(DeleteFlows{std::make_shared<network::FlowCheck>(table_.flow_check())});
}

bool ServiceProxy::is_healthy(Instant now) const {
  if (!last_loaded_) return false;
  const Duration patience = options_.sync_period * 2;
  if (loading_ && now - load_began_ > patience) return false;
  return !waiting_since_ || now - *waiting_since_ <= patience;
}

bool ServiceProxy::is_node_eligible() const {
  const auto node = nodes_.cache().find(options_.settings.node_name);
  return node && is_eligible(*node);
}

}  // namespace spillway::proxy
