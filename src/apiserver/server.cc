#include "apiserver/server.h"

#include "apiserver/access/bootstrap_secrets.h"
#include "apiserver/access/bound_tokens.h"
#include "apiserver/access/escalation.h"
#include "apiserver/access/gatekeeper.h"
#include "apiserver/access/node_authorizer.h"
#include "apiserver/access/node_restriction.h"
#include "apiserver/access/param_access.h"
#include "apiserver/access/role_rules.h"
#include "apiserver/aggregation/aggregation_path.h"
#include "apiserver/aggregation/remote_apis.h"
#include "apiserver/aggregation/remote_discovery.h"
#include "apiserver/aggregation/remote_fetch.h"
#include "apiserver/chain/non_resource_paths.h"
#include "apiserver/chain/request_handler.h"
#include "apiserver/chain/request_rights.h"
#include "apiserver/chain/resource_paths.h"
#include "apiserver/chain/store_barriers.h"
#include "apiserver/collect/expiry.h"
#include "apiserver/custom/custom_kinds.h"
#include "apiserver/custom/definition_controller.h"
#include "apiserver/flow/flow_control.h"
#include "apiserver/flow/flow_feed.h"
#include "apiserver/flow/flow_limits.h"
#include "apiserver/kinds/advice/advice.h"
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/read/core.h"
#include "apiserver/read/reader.h"
#include "apiserver/read/storage_report.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/request/pages.h"
#include "apiserver/security/pod_security.h"
#include "apiserver/security/pod_security_metrics.h"
#include "apiserver/serving/collectors.h"
#include "apiserver/serving/server_health.h"
#include "apiserver/serving/server_start.h"
#include "apiserver/serving/serving_state.h"
#include "apiserver/signing/signing_check.h"
#include "apiserver/webhooks/conversion_calls.h"
#include "apiserver/webhooks/endpoint_gate.h"
#include "apiserver/webhooks/webhook_admission.h"
#include "apiserver/webhooks/webhook_table.h"
#include "apiserver/write/committer.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <array>
#include <utility>

namespace spillway::apiserver {

/// The parts of a server, put together. An event with a time sets the time of all of them.
class ApiServer::Impl final : public WatchCache::Listener {
 public:
  Impl(store::Store& store, telemetry::Registry& metrics, telemetry::Log log, Options options)
      : options_(std::move(options)),
        cache_(registry_, *this, store, options_.separate),
        core_{
            registry_,          store,           cache_, timers_, std::move(log), Rng(options_.seed).fork("apiserver"),
            rules_of(options_), options_.storage},
        storage_report_(core_, metrics),
        committer_(core_),
        writer_(core_, committer_),
        remover_(core_, committer_),
        slices_(timers_, core_.now),
        long_reads_(timers_, core_.now),
        hub_(core_, slices_, long_reads_),
        reader_(core_, hub_, slices_, long_reads_, options_.compaction_interval * 3 / 2),
        roles_(core_),
        node_authorizer_(core_),
        authorizer_(node_authorizer_, roles_),
        node_restriction_(core_, authorizer_),
        escalation_(roles_),
        param_access_(core_, authorizer_),
        signing_(authorizer_, options_.certificates),
        pod_security_metrics_(metrics),
        pod_security_(core_, pod_security_metrics_),
        webhook_table_(core_),
        policy_table_(core_),
        conversions_(core_, options_.webhooks),
        webhooks_(core_, webhook_table_, policy_table_, options_.webhooks, authorizer_, metrics),
        gate_(webhooks_),
        bound_tokens_(core_),
        custom_kinds_(core_, registry_, hub_),
        definition_limits_(core_),
        paths_({core_, reader_, writer_, remover_, storage_report_, authorizer_, roles_, node_restriction_,
                bound_tokens_, metrics},
               options_),
        bootstrap_secrets_(core_, options_.bootstrap_tokens),
        remote_apis_(core_),
        remote_fetch_(core_, options_.aggregated),
        remote_discovery_(core_, remote_apis_, remote_fetch_),
        aggregation_(core_, options_.aggregated, options_.scheme),
        collectors_(core_, custom_kinds_, writer_, remover_, authorizer_, remote_fetch_, remote_apis_, options_),
        compaction_(core_, options_.compaction_interval),
        pages_(registry_, metrics, options_.version, slices_, &remote_discovery_),
        flows_({options_.fair, options_.flows, options_.seats},
               {core_, hub_, metrics, [this](RequestId id, const auto& refusal) { requests_.on_turn(id, refusal); }}),
        flow_feed_(core_, flows_),
        flow_limits_(flow_feed_),
        state_(core_, hub_),
        health_(core_, state_, options_.checks),
        start_({core_, state_, storage_report_, observers_, remote_discovery_, compaction_, custom_kinds_, writer_,
                collectors_},
               options_),
        rights_(state_, bound_tokens_, authorizer_),
        barriers_(core_, rights_),
        non_resource_paths_({core_, reader_, hub_, slices_, pages_, flows_, health_}, options_),
        requests_({core_, state_, rights_, barriers_, custom_kinds_, options_.auditor, flows_, remote_apis_,
                   aggregation_, non_resource_paths_, gate_, paths_},
                  hub_, metrics, options_.tracer),
        calls_(slices_) {
    core_.clock = options_.clock;
    core_.calls = &calls_;
    core_.converter = &conversions_;
    writer_.add_check(node_restriction_);
    writer_.add_check(escalation_);
    writer_.add_check(param_access_);
    writer_.add_check(signing_);
    writer_.add_check(definition_limits_);
    writer_.add_check(flow_limits_);
    writer_.add_check(pod_security_);
    writer_.add_check(adviser_);
    writer_.ask_webhooks(webhooks_);
    remover_.ask_webhooks(webhooks_);
    if (options_.controllers == Controllers::kOwn) writer_.warn_of_unattended();
    timers_.on_earlier([this] {
      if (!driven_ && options_.rearm) options_.rearm();
    });
  }

  void start(Now now, std::move_only_function<void(Outcome)> ready) {
    set_time(now);
    start_.begin(std::move(ready));
  }

  RequestId handle(api::Request request, std::shared_ptr<const api::UserInfo> user,
                   std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink, Now now) {
    const Driven driven(*this, now);
    return requests_.handle(std::move(request), std::move(user), std::move(read), std::move(sink));
  }

  /// Thread: any.
  std::shared_ptr<const ReadRequest> read(const api::Request& request, const api::UserInfo& user, Body body) const {
    auto read = requests_.read(request, user);
    if (body == Body::kYes) read_body(request, *read);
    return read;
  }

  void abandon(RequestId id) { requests_.abandon(id); }

  void on_wakeup(Now now) {
    const Driven driven(*this, now);
    timers_.run_due(now.mono);
  }

  std::optional<Instant> next_wakeup() const { return timers_.next(); }

  void stop() {
    state_.begin_shutdown();
    hub_.end_all();
  }

  std::size_t in_flight() const { return requests_.in_flight(); }

  // WatchCache::Listener
  void on_cache_event(ResourceCache& cache, const EventPtr& event) override {
    hub_.on_event(cache, event);
    for (Collector* observer : observers_) observer->see(cache, event);
    collectors_.see(cache, event);
  }

  void on_cache_unreadable(std::string_view store_key, const Unreadable& value) override {
    storage_report_.on_unreadable(store_key, value);
  }

  void on_cache_progress() override {
    state_.on_progress();
    reader_.on_progress();
    for (Collector* observer : observers_) observer->run();
    remote_discovery_.follow();
    collectors_.run();
    storage_report_.count();
  }

  void on_cache_lost(Origin& origin, const Error& error) override { state_.on_lost(origin, error); }

  void act(bool on, Now now) {
    const Driven driven(*this, now);
    collectors_.set_active(on);
  }

  void announce(std::uint16_t port, std::vector<ServingAddress> addresses, Now now) {
    const Driven driven(*this, now);
    collectors_.kubernetes_service().announce(port, std::move(addresses));
    collectors_.service_addresses().announce();
  }

  void set_client_ca(std::string pem, Now now) {
    const Driven driven(*this, now);
    collectors_.client_authorities().set(std::move(pem));
  }

 private:
  /// Sets the time, and marks that the caller will read next_wakeup() itself.
  class Driven {
   public:
    Driven(Impl& server, Now now) : flag_(server.driven_), before_(std::exchange(flag_, true)) { server.set_time(now); }

    ~Driven() { flag_ = before_; }

    Driven(const Driven&) = delete;
    Driven& operator=(const Driven&) = delete;

   private:
    bool& flag_;
    bool before_;
  };

  void set_time(Now now) {
    core_.now = now;
    cache_.set_time(now.mono);
  }

  /// Token and root CA volumes are added only if this server has a signer and a root CA: otherwise the pods would wait
  /// forever.
  static AdmissionRules rules_of(const Options& options) {
    AdmissionRules rules = options.admission;
    rules.token_volumes = rules.token_volumes && options.signer != nullptr && !options.root_ca_pem.empty();
    return rules;
  }

  Options options_;
  ResourceRegistry registry_{kinds::kind_rows()};
  TimerQueue timers_;
  WatchCache cache_;
  Core core_;
  StorageReport storage_report_;
  Committer committer_;
  Writer writer_;
  Remover remover_;
  SliceQueue slices_;
  LongReads long_reads_;
  WatchHub hub_;
  Reader reader_;
  RoleRules roles_;
  NodeAuthorizer node_authorizer_;
  Gatekeeper authorizer_;
  NodeRestriction node_restriction_;
  EscalationCheck escalation_;
  ParamAccess param_access_;
  SigningCheck signing_;
  PodSecurityMetrics pod_security_metrics_;
  PodSecurity pod_security_;
  Adviser adviser_;
  WebhookTable webhook_table_;
  PolicyTable policy_table_;
  ConversionCalls conversions_;
  WebhookAdmission webhooks_;
  EndpointGate gate_;
  BoundTokens bound_tokens_;
  CustomKinds custom_kinds_;
  DefinitionLimits definition_limits_;
  ResourcePaths paths_;
  BootstrapSecrets bootstrap_secrets_;
  RemoteApis remote_apis_;
  RemoteFetch remote_fetch_;
  RemoteDiscovery remote_discovery_;
  AggregationPath aggregation_;
  Collectors collectors_;
  Compaction compaction_;
  Pages pages_;
  FlowControl flows_;
  FlowFeed flow_feed_;
  FlowLimits flow_limits_;
  // Collectors that write nothing.
  const std::array<Collector*, 7> observers_{&roles_,        &bootstrap_secrets_, &webhook_table_, &policy_table_,
                                             &custom_kinds_, &remote_apis_,       &flow_feed_};

  ServingState state_;
  ServerHealth health_;
  ServerStart start_;
  RequestRights rights_;
  StoreBarriers barriers_;
  NonResourcePaths non_resource_paths_;
  RequestHandler requests_;
  bool driven_ = false;
  SlicedCalls calls_;  // last, because unfinished calls use the other members
};

ApiServer::ApiServer(store::Store& store, telemetry::Registry& metrics, telemetry::Log log, Options options)
    : impl_(std::make_unique<Impl>(store, metrics, std::move(log), std::move(options))) {}

ApiServer::~ApiServer() = default;

void ApiServer::start(Now now, std::move_only_function<void(Outcome)> ready) {
  impl_->start(now, std::move(ready));
}

RequestId ApiServer::handle(api::Request request, api::UserInfo user, std::shared_ptr<api::ResponseSink> sink,
                            Now now) {
  return handle(std::move(request), std::make_shared<const api::UserInfo>(std::move(user)), nullptr, std::move(sink),
                now);
}

RequestId ApiServer::handle(api::Request request, std::shared_ptr<const api::UserInfo> user,
                            std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink, Now now) {
  return impl_->handle(std::move(request), std::move(user), std::move(read), std::move(sink), now);
}

std::shared_ptr<const ReadRequest> ApiServer::read(const api::Request& request, const api::UserInfo& user,
                                                   Body body) const {
  return impl_->read(request, user, body);
}

void ApiServer::abandon(RequestId id) {
  impl_->abandon(id);
}

void ApiServer::on_wakeup(Now now) {
  impl_->on_wakeup(now);
}

std::optional<Instant> ApiServer::next_wakeup() const {
  return impl_->next_wakeup();
}

void ApiServer::announce(std::uint16_t port, std::vector<ServingAddress> addresses, Now now) {
  impl_->announce(port, std::move(addresses), now);
}

void ApiServer::set_client_ca(std::string pem, Now now) {
  impl_->set_client_ca(std::move(pem), now);
}

void ApiServer::act(bool on, Now now) {
  impl_->act(on, now);
}

void ApiServer::stop() {
  impl_->stop();
}

std::size_t ApiServer::in_flight() const {
  return impl_->in_flight();
}

}  // namespace spillway::apiserver
