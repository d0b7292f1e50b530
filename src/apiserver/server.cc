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
#include "apiserver/aggregation/local_apis.h"
#include "apiserver/aggregation/remote_apis.h"
#include "apiserver/aggregation/remote_discovery.h"
#include "apiserver/aggregation/remote_fetch.h"
#include "apiserver/audit/auditor.h"
#include "apiserver/cache_feed.h"
#include "apiserver/collect/bootstrap.h"
#include "apiserver/collect/client_authorities.h"
#include "apiserver/collect/expiry.h"
#include "apiserver/collectors.h"
#include "apiserver/custom/custom_kinds.h"
#include "apiserver/custom/definition_controller.h"
#include "apiserver/flow/flow_control.h"
#include "apiserver/kinds/advice/advice.h"
#include "apiserver/kinds/kind_table.h"
#include "apiserver/ports/future_player.h"
#include "apiserver/read/core.h"
#include "apiserver/read/memory_account.h"
#include "apiserver/read/reader.h"
#include "apiserver/read/storage_report.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/pages.h"
#include "apiserver/request/request_metrics.h"
#include "apiserver/request/request_trace.h"
#include "apiserver/resource_paths.h"
#include "apiserver/security/pod_security.h"
#include "apiserver/security/pod_security_metrics.h"
#include "apiserver/signing/signing_check.h"
#include "apiserver/webhooks/conversion_calls.h"
#include "apiserver/webhooks/webhook_admission.h"
#include "apiserver/webhooks/webhook_table.h"
#include "apiserver/write/committer.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <span>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr Duration kAnswerWithin = seconds(60);
constexpr std::string_view kMemoryPage = "/debug/memory";

}  // namespace

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
        reader_(core_, hub_, slices_, long_reads_),
        roles_(core_),
        node_authorizer_(core_),
        authorizer_(node_authorizer_, roles_),
        node_restriction_(core_),
        escalation_(roles_),
        param_access_(core_, authorizer_),
        signing_(authorizer_, options_.certificates),
        pod_security_metrics_(metrics),
        pod_security_(core_, pod_security_metrics_),
        webhook_table_(core_),
        policy_table_(core_),
        conversions_(core_, options_.webhooks),
        webhooks_(core_, webhook_table_, policy_table_, options_.webhooks, authorizer_, metrics),
        bound_tokens_(core_),
        custom_kinds_(core_, registry_, hub_),
        definition_limits_(core_),
        paths_({core_, reader_, writer_, remover_, storage_report_, authorizer_, roles_, node_restriction_,
                bound_tokens_, webhooks_, metrics},
               options_),
        bootstrap_secrets_(core_, options_.bootstrap_tokens),
        remote_apis_(core_),
        remote_fetch_(core_, options_.aggregated),
        remote_discovery_(core_, remote_apis_, remote_fetch_),
        aggregation_(core_, options_.aggregated, options_.scheme),
        proxy_authorities_(core_, writer_, {.clients = {}, .proxies = options_.proxy_ca_pem}),
        collectors_(core_, custom_kinds_, writer_, remover_, authorizer_, remote_fetch_, remote_apis_, options_),
        compaction_(core_, options_.compaction_interval),
        pages_(registry_, metrics, options_.version, slices_, &remote_discovery_),
        metrics_(metrics),
        flows_({options_.fair, options_.flows, options_.seats},
               {core_, hub_, metrics, [this](RequestId id, const auto& refusal) { take_turn(id, refusal); }}),
        acts_(!store.is_shared()),
        calls_(slices_) {
    for (const auto& origin : cache_.origins()) feeds_.push_back(std::make_unique<CacheFeed>(core_, hub_, *origin));
    core_.clock = options_.clock;
    core_.calls = &calls_;
    core_.converter = &conversions_;
    writer_.add_check(node_restriction_);
    writer_.add_check(escalation_);
    writer_.add_check(param_access_);
    writer_.add_check(signing_);
    writer_.add_check(definition_limits_);
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
    ready_ = std::move(ready);
    loading_ = feeds_.size();
    for (const auto& feed : feeds_) {
      feed->start([this](Outcome outcome) {
        if (!outcome) return fail_start(outcome.error());
        if (--loading_ == 0) loaded();
      });
    }
  }

  RequestId handle(api::Request request, std::shared_ptr<const api::UserInfo> user,
                   std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink, Now now) {
    const Driven driven(driven_);
    set_time(now);
    const RequestId id = ++last_id_;
    if (read == nullptr) read = this->read(request, *user, Body::kNo);
    auto exchange =
        std::make_shared<Exchange>(id, std::move(request), std::move(user), std::move(read), std::move(sink),
                                   new_uid(core_.rng), [this](Exchange& done, int code) { finished(done, code); });
    exchange->started = now.mono;
    if (options_.tracer != nullptr) exchange->steps.keep();
    in_flight_.emplace(id, Open{exchange, std::nullopt, {}});
    metrics_.set_in_flight(in_flight_.size());
    take_in(exchange);
    return id;
  }

  /// Thread: any. A table of resources and the configuration of flows do not change.
  std::shared_ptr<const ReadRequest> read(const api::Request& request, const api::UserInfo& user, Body body) const {
    auto read = std::make_shared<ReadRequest>(read_request(registry_.table(), request));
    if (!read->understood) read->asked = audited_attributes(request);
    read->flow = flows_.schema_of(user, read->asked);
    if (body == Body::kYes) read_body(request, *read);
    return read;
  }

  void abandon(RequestId id) {
    const auto open = in_flight_.find(id);
    if (open == in_flight_.end()) return;
    const ExchangePtr exchange = open->second.exchange;
    exchange->abandon();
  }

  void on_wakeup(Now now) {
    const Driven driven(driven_);
    set_time(now);
    timers_.run_due(now.mono);
  }

  std::optional<Instant> next_wakeup() const { return timers_.next(); }

  void stop() {
    stopping_ = true;
    hub_.end_all();
  }

  std::size_t in_flight() const { return in_flight_.size(); }

  // WatchCache::Listener
  void on_cache_event(ResourceCache& cache, const EventPtr& event) override {
    hub_.on_event(cache, event);
    for (Collector* knower : knowers_) knower->see(cache, event);
    proxy_authorities_.see(cache, event);
    collectors_.see(cache, event);
  }

  void on_cache_unreadable(std::string_view store_key, const Unreadable& value) override {
    storage_report_.on_unreadable(store_key, value);
  }

  void on_cache_progress() override {
    for (const auto& feed : feeds_) feed->on_progress();
    reader_.on_progress();
    for (Collector* knower : knowers_) knower->run();
    remote_discovery_.follow();
    proxy_authorities_.run();
    collectors_.run();
    storage_report_.count();
  }

  void act(bool on, Now now) {
    const Driven driven(driven_);
    set_time(now);
    acts_ = on;
    if (serving_) act_as_told();
  }

  void announce(std::uint16_t port, std::vector<ServingAddress> addresses, Now now) {
    const Driven driven(driven_);
    set_time(now);
    collectors_.kubernetes_service().announce(port, std::move(addresses));
  }

  void set_client_ca(std::string pem, Now now) {
    const Driven driven(driven_);
    set_time(now);
    collectors_.client_authorities().set(std::move(pem));
  }

  void on_cache_lost(Origin& origin, const Error& error) override {
    if (feed_of(origin).on_lost(error)) return;
    core_.log.error("the store is lost", {{"store", origin.label()}, {"error", error.text()}});
    if (!origin.is_main()) return hub_.end_all(origin);
    lost_ = error.text();
    hub_.end_all();
  }

 private:
  struct Open {
    ExchangePtr exchange;
    std::optional<TimerQueue::Id> deadline;
    FlowControl::Ticket ticket;
  };

  /// Marks that the caller will read next_wakeup() itself.
  class Driven {
   public:
    explicit Driven(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}

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

  void loaded() {
    storage_report_.choose_media_type();
    for (Collector* knower : knowers_) knower->begin();
    remote_discovery_.follow();
    compaction_.start();
    custom_kinds_.when_settled([this] {
      if (acts_) act_as_told();
      std::vector<api::Json> more;
      if (options_.aggregated != nullptr) more = built_in_api_services(registry_);
      create_cluster_objects(core_, writer_, std::move(more), [this](Outcome outcome) {
        if (!outcome) return fail_start(outcome.error());
        serving_ = true;
        act_as_told();
        if (ready_) std::exchange(ready_, nullptr)({});
      });
    });
  }

  void act_as_told() {
    if (options_.controllers == Controllers::kNone) return;
    collectors_.act(acts_);
    acts_ ? proxy_authorities_.end() : proxy_authorities_.begin();
  }

  void fail_start(const Error& error) {
    lost_ = error.text();
    if (ready_) std::exchange(ready_, nullptr)(error);
  }

  void finished(Exchange& exchange, int code) {
    const auto open = in_flight_.find(exchange.id());
    if (open != in_flight_.end()) {
      if (open->second.deadline) timers_.cancel(*open->second.deadline);
      flows_.leave(exchange, open->second.ticket);
      in_flight_.erase(open);
    }
    metrics_.set_in_flight(in_flight_.size());
    metrics_.set_watches(hub_.open_count());
    if (code == 0) return;
    metrics_.answered(exchange, code, core_.now.mono);
    if (options_.tracer != nullptr) trace_request(*options_.tracer, exchange, code, core_.now);
  }

  /// The reason why no request is served; empty if requests are served.
  std::string why_not_served() const {
    if (!lost_.empty()) return lost_;
    if (stopping_) return "shutting down";
    return serving_ && !feeds_.front()->is_rebasing() ? "" : "loading";
  }

  /// The reason why this resource cannot be served now; empty: it can.
  std::string why_not_served(const Resource* resource) const {
    if (std::string why = why_not_served(); !why.empty() || resource == nullptr || !resource->stored()) return why;
    const CacheFeed& feed = feed_of(core_.cache.of(*resource).origin());
    if (!feed.lost().empty()) return feed.lost();
    return feed.is_rebasing() ? "loading" : "";
  }

  CacheFeed& feed_of(const Origin& origin) const { return *feeds_.at(origin.index()); }

  void add_health_of_stores(std::vector<HealthCheck>& checks) const {
    for (const auto& feed : feeds_) {
      const Origin& origin = feed->origin();
      if (origin.is_main()) continue;
      checks.push_back(
          {.name = "store/" + origin.name(), .cure = HealthCheck::Cure::kRestart, .problem = feed->lost()});
      checks.push_back({.name = "store-writes/" + origin.name(), .problem = origin.store().refusing().value_or("")});
    }
  }

  std::string what_is_loading() const {
    std::string names;
    for (const auto& feed : feeds_) {
      if (!feed->is_loading()) continue;
      if (!names.empty()) names += " and ";
      names += feed->origin().is_main() ? "the store" : "the store of " + feed->origin().name();
    }
    return names.empty() ? names : fmt::format("the objects of {} are being loaded", names);
  }

  /// The checks of each part, in the order in which parts start. Names that upstream has mean the same.
  std::vector<HealthCheck> health() const {
    using Cure = HealthCheck::Cure;
    std::vector<HealthCheck> checks{{.name = "ping", .cure = Cure::kRestart, .problem = {}},
                                    {.name = "store", .cure = Cure::kRestart, .problem = lost_},
                                    {.name = "store-writes", .problem = core_.store.refusing().value_or("")}};
    add_health_of_stores(checks);
    checks.push_back({.name = "informer-sync", .problem = what_is_loading()});
    checks.push_back({.name = "poststarthook/bootstrap-objects",
                      .problem = serving_ ? "" : "what every cluster has is not all there yet"});
    if (options_.checks) {
      for (HealthCheck& check : options_.checks()) checks.push_back(std::move(check));
    }
    checks.push_back({.name = "shutdown", .problem = stopping_ ? "the server is shutting down" : ""});
    return checks;
  }

  /// Waits until acknowledged writes of other servers are visible here: those to the object's store if the request
  /// needs the present state, and those to the main store if the request's rights depend on them. A refusal always
  /// waits for the main store.
  void take_in(const ExchangePtr& exchange) {
    if (!core_.store.is_shared() || !exchange->asked.is_resource || !why_not_served().empty()) {
      return judge(exchange, exchange->read().understood);
    }
    Origin& own = origin_of(*exchange);
    if (!own.is_main()) return catch_up_apart(exchange, own);
    if (!is_about_the_present(*exchange) && !is_refused(*exchange)) return judge(exchange, exchange->read().understood);
    own.barrier([this, exchange](const Result<store::Revision>& reached) { judge_by(exchange, reached); });
  }

  /// The store of the requested resource; the main one if the request is for no object.
  Origin& origin_of(const Exchange& exchange) const {
    const auto& route = exchange.read().route;
    const bool stored = route && route->resource != nullptr && route->resource->stored();
    return stored ? core_.cache.of(*route->resource).origin() : *cache_.origins().front();
  }

  void judge_by(const ExchangePtr& exchange, const Result<store::Revision>& reached) {
    if (exchange->finished()) return;
    judge(exchange,
          reached ? api::StatusResult<void>() : api::retry_status(reached.error().code, reached.error().message, 1));
  }

  /// A resource in a store of its own stays available while the main store is down; authorization then uses the cached
  /// roles.
  void catch_up_apart(const ExchangePtr& exchange, Origin& own) {
    const bool refused = is_refused(*exchange);
    const bool present = is_about_the_present(*exchange);
    if (!refused && !present) return judge(exchange, exchange->read().understood);

    struct Wait {
      std::size_t open = 0;
      Result<store::Revision> result = store::Revision();
    };

    Origin& main = *cache_.origins().front();
    const bool asks_main = refused || main.store().is_full() || !main.store().refusing();
    const auto wait = std::make_shared<Wait>(Wait{.open = (asks_main ? 1U : 0U) + (present ? 1U : 0U)});
    const auto reached = [this, exchange, wait](bool counts) {
      return [this, exchange, wait, counts](const Result<store::Revision>& result) {
        if (!result && counts && wait->result) wait->result = result.error();
        if (--wait->open == 0) judge_by(exchange, wait->result);
      };
    };
    if (asks_main) main.barrier(reached(refused));
    if (present) own.barrier(reached(true));
  }

  bool is_refused(const Exchange& exchange) const {
    return !check_token(exchange) || !authorizer_.authorize(exchange.user(), exchange.asked).allowed;
  }

  /// Answers that end a write without one, such as a conflict, are about the present, too.
  static bool is_about_the_present(const Exchange& exchange) {
    const auto given = [&](std::string_view name) {
      const std::string* value = exchange.target.find(name);
      return value != nullptr && !value->empty();
    };
    const std::string& verb = exchange.asked.verb;
    // The query of a proxied request belongs to the proxied server, and its address must be the present one.
    if (exchange.asked.subresource == "proxy") return true;
    const bool reads = verb == "get" || verb == "list" || verb == "watch";
    return !reads || (!given("resourceVersion") && !given("continue"));
  }

  /// Written down where the audit log wants it, before anything is done. `understood`: else it is answered so, once it
  /// is clear that its sender may ask.
  void judge(const ExchangePtr& exchange, const api::StatusResult<void>& understood) {
    if (leads_nowhere(*exchange) && custom_kinds_.is_settling() && custom_kinds_.has_room()) {
      // The kind may be one whose objects are just being read.
      limit_time(exchange);
      return custom_kinds_.when_settled([this, exchange, understood] {
        if (!exchange->finished()) judge(exchange, understood);
      });
    }
    if (exchange->asked.is_resource && exchange->read().table != registry_.table()) reroute(*exchange);
    if (const Outcome bound = check_token(*exchange); !bound) return refuse_token(*exchange, bound.error());
    auto carry_out = [this, understood](const ExchangePtr& taken) {
      if (!understood) return taken->fail(understood.error());
      admit(taken);
      limit_time(taken);
    };
    auto record = options_.auditor == nullptr ? nullptr : options_.auditor->begin(*exchange);
    if (record == nullptr) return carry_out(exchange);
    AuditRecord& kept = *record;
    exchange->observe(std::move(record));
    limit_time(exchange);  // also of the wait for the log
    kept.receive([waiting = std::weak_ptr(exchange), carry_out = std::move(carry_out)](const Outcome& may) {
      const ExchangePtr taken = waiting.lock();
      if (taken == nullptr || taken->finished()) return;  // the client has gone, or the time is up
      if (!may) return taken->fail(may.error());
      carry_out(taken);
    });
  }

  static bool leads_nowhere(const Exchange& exchange) {
    const auto& route = exchange.read().route;
    return exchange.asked.is_resource && !route && route.error().code == 404;
  }

  /// Parses the request again, because kinds were added or removed since.
  void reroute(Exchange& exchange) const {
    auto read = std::make_shared<ReadRequest>(read_request(registry_.table(), exchange.request()));
    read->flow = exchange.read().flow;
    exchange.reroute(std::move(read));
  }

  /// A request waits for its turn where others go before it.
  void admit(const ExchangePtr& exchange) {
    const auto open = in_flight_.find(exchange->id());
    if (open == in_flight_.end()) return;
    std::optional<api::Status> refusal;
    const FlowGate::Entry entry = flows_.enter(*exchange, open->second.ticket, refusal);
    if (exchange->asked.action == Verb::kWatch) {
      exchange->on_standing = [this, id = exchange->id()] {
        const auto standing = in_flight_.find(id);
        if (standing != in_flight_.end()) flows_.stand(*standing->second.exchange, standing->second.ticket);
      };
    }
    if (refusal) return exchange->fail(*refusal);
    if (entry == FlowGate::Entry::kRuns) dispatch(exchange);
  }

  void take_turn(RequestId id, const std::optional<api::Status>& refusal) {
    const ExchangePtr exchange = in_flight_.at(id).exchange;
    if (refusal) return exchange->fail(*refusal);
    dispatch(exchange);
    limit_time(exchange);
  }

  /// Checks that the objects which the token is bound to still exist.
  Outcome check_token(const Exchange& exchange) const {
    const auto& token = exchange.user().token;
    return token && serving_ ? bound_tokens_.check(*token) : Outcome();
  }

  void refuse_token(Exchange& exchange, const Error& why) {
    if (options_.auditor != nullptr) {
      options_.auditor->refused(exchange.request(), nullptr, exchange.audit_id(), 401,
                                "Authentication failed, attempted: bearer");
    }
    exchange.fail(make_error(ErrorCode::kUnauthorized, "Unauthorized: {}", why.message));
  }

  /// Sets a deadline for the answer, unless the request is long-running.
  void limit_time(const ExchangePtr& exchange) {
    const auto open = in_flight_.find(exchange->id());
    if (open == in_flight_.end()) return;
    std::optional<TimerQueue::Id>& deadline = open->second.deadline;
    if (is_long_running(exchange->route) || exchange->waits_for_others()) {
      if (deadline) timers_.cancel(*std::exchange(deadline, std::nullopt));
    } else if (!deadline) {
      deadline = timers_.at(core_.now.mono + kAnswerWithin, [exchange] {
        exchange->fail(
            api::retry_status(ErrorCode::kTimeout, "request did not complete within the allotted timeout", 1));
      });
    }
  }

  void dispatch(const ExchangePtr& exchange) {
    exchange->dispatched = core_.now.mono;
    if (exchange->user().token && !serving_) {
      return exchange->fail(api::retry_status(ErrorCode::kServiceUnavailable, why_not_served(), 1));
    }
    const api::Method method = exchange->request().method;
    const RequestAttributes& asked = exchange->asked;
    // The request may have waited long for the audit log or for flow control.
    if (asked.is_resource && exchange->read().table != registry_.table()) reroute(*exchange);
    if (asked.is_resource && !why_not_served().empty()) {
      return exchange->fail(api::retry_status(ErrorCode::kServiceUnavailable, why_not_served(), 1));
    }
    const auto& route = exchange->read().route;
    if (route) exchange->route = *route;  // set before the check, so that refused requests are counted by route as well
    const auto& form = exchange->read().form;
    if (form && asked.is_resource) exchange->form = *form;  // a refusal is written so as well
    const Verdict verdict = authorizer_.authorize(exchange->user(), asked);
    if (AnswerObserver* observer = exchange->observer()) {
      observer->on_verdict(*exchange, verdict.allowed, verdict.reason);
    }
    if (!verdict.allowed) return exchange->fail(refusal_status(exchange->user(), asked, verdict));
    if (const RemoteApiPtr api = remote_apis_.find(exchange->target)) return aggregation_.perform(exchange, *api);
    if (asked.path == "/metrics") flows_.show();
    if (is_health_page(exchange->target)) {
      if (pages_.answer(exchange, health())) return;
    } else if (pages_.answer(exchange, {})) {
      return;
    }
    if (!asked.is_resource && method == api::Method::kGet && options_.pages) {
      if (auto page = options_.pages(asked.path)) {
        const std::string type(page->header("Content-Type"));
        std::erase_if(page->headers, [](const auto& header) { return header.first == "Content-Type"; });
        return exchange->answer(page->status, std::move(page->body), type, std::move(page->headers));
      }
    }
    if (!asked.is_resource && method == api::Method::kGet && answers_slowly(exchange)) return;
    if (auto table = flows_.page(asked.path); table && method == api::Method::kGet) {
      return exchange->answer(200, *std::move(table), "text/plain; charset=utf-8");
    }
    if (asked.path == kMemoryPage && method == api::Method::kGet) return show_memory(exchange);
    if (asked.path == kWhatIfPath && method == api::Method::kPost && options_.futures != nullptr) return play(exchange);
    if (!asked.is_resource) return exchange->answer(404, "404 page not found\n", "text/plain; charset=utf-8");
    if (!route) return exchange->fail(route.error());
    if (!form) return exchange->fail(form.error());
    if (const std::string why = why_not_served(route->resource); !why.empty()) {
      return exchange->fail(api::retry_status(ErrorCode::kServiceUnavailable, why, 1));
    }
    paths_.perform(exchange);
  }

  /// Answers with the memory of this process by owner, once all objects have been counted.
  void show_memory(const ExchangePtr& exchange) {
    slices_.add([this, exchange, account = MemoryAccount(cache_)](SliceBudget& budget) mutable {
      if (exchange->finished()) return true;
      if (!account.step(budget)) return false;
      telemetry::MemoryRows rows = account.rows();
      rows.push_back({"lists: items in protobuf", reader_.items().size(), reader_.items().bytes()});
      rows.push_back({"watches", hub_.open_count(), hub_.heap_bytes()});
      if (options_.memory) std::ranges::move(options_.memory(), std::back_inserter(rows));
      exchange->answer(200, telemetry::memory_table(rows), "text/plain; charset=utf-8",
                       {{"X-Content-Type-Options", "nosniff"}});
      return true;
    });
  }

  /// Starts a page that answers later. False: the path is not one of them.
  bool answers_slowly(const ExchangePtr& exchange) {
    if (!options_.slow_pages) return false;
    return options_.slow_pages(exchange->asked.path, [this, waiting = std::weak_ptr(exchange)](api::Response answer) {
      const ExchangePtr asker = waiting.lock();
      if (asker == nullptr) return;  // the client has gone, or this server has ended
      core_.catch_up();
      const std::string type(answer.header("Content-Type"));
      asker->answer(answer.status, std::move(answer.body), type, {{"X-Content-Type-Options", "nosniff"}});
    });
  }

  /// Runs a what-if request in the player. The request's seat is released meanwhile: the player has limits of its own.
  void play(const ExchangePtr& exchange) {
    const RequestId id = exchange->id();
    exchange->wait_for_others([this, id] { options_.futures->abandon(id); });
    flows_.stand(*exchange, in_flight_.at(id).ticket);
    options_.futures->play(id, exchange->request(), exchange->shared_user(), [this, exchange](api::Response answer) {
      core_.catch_up();
      const std::string type(answer.header("Content-Type"));
      exchange->answer(answer.status, std::move(answer.body), type, {{"X-Content-Type-Options", "nosniff"}});
    });
  }

  Options options_;
  ResourceRegistry registry_{kinds::kind_hooks};
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
  std::vector<std::unique_ptr<CacheFeed>> feeds_;  // in the order of the cache's origins
  std::size_t loading_ = 0;                        // feeds that have not finished their first start
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
  BoundTokens bound_tokens_;
  CustomKinds custom_kinds_;
  DefinitionLimits definition_limits_;
  ResourcePaths paths_;
  BootstrapSecrets bootstrap_secrets_;
  RemoteApis remote_apis_;
  RemoteFetch remote_fetch_;
  RemoteDiscovery remote_discovery_;
  AggregationPath aggregation_;
  ClientAuthorities proxy_authorities_;  // while another server acts: each has a proxy certificate of its own
  Collectors collectors_;
  const std::array<Collector*, 6> knowers_{&roles_,        &bootstrap_secrets_, &webhook_table_,
                                           &policy_table_, &custom_kinds_,      &remote_apis_};  // these write nothing
  Compaction compaction_;
  Pages pages_;
  RequestMetrics metrics_;
  FlowControl flows_;

  std::move_only_function<void(Outcome)> ready_;
  bool driven_ = false;
  bool serving_ = false;
  bool acts_ = false;  // this server runs the collectors of its store
  bool stopping_ = false;
  std::string lost_;
  RequestId last_id_ = 0;
  std::map<RequestId, Open> in_flight_;
  SlicedCalls calls_;  // last: what it runs to its end uses the rest
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
