#include "apiserver/chain/request_run.h"

#include "apiserver/aggregation/aggregation_path.h"
#include "apiserver/aggregation/remote_apis.h"
#include "apiserver/audit/auditor.h"
#include "apiserver/chain/non_resource_paths.h"
#include "apiserver/chain/request_rights.h"
#include "apiserver/chain/resource_paths.h"
#include "apiserver/chain/store_barriers.h"
#include "apiserver/custom/custom_kinds.h"
#include "apiserver/serving/serving_state.h"
#include "apiserver/webhooks/endpoint_gate.h"

#include <array>
#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

// clang-format off
/// A request, step by step. Each wait is followed by steps that do not rely on what was found before it.
constexpr auto kStepsOfRequest = [] {
  using enum RequestRun::Step;
  return std::array{
      kCatchUp,
      kCustomKinds,
      kAuthentication,
      kAudit,
      kRequestInfo,
      kPriorityAndFairness,
      kServing,
      kAuthorization,
      kAggregation,
      kNonResource,
      kResource,
      kAdmission,
      kDispatch,
  };
}();
// clang-format on

/// Upstream's --request-timeout: afterwards the client gets a 504 and may repeat the request.
constexpr Duration kAnswerWithin = seconds(60);

}  // namespace

RequestRun::RequestRun(ChainTools& tools, std::uint64_t id, api::Request request,
                       std::shared_ptr<const api::UserInfo> user, std::shared_ptr<const ReadRequest> read,
                       std::shared_ptr<api::ResponseSink> sink, Exchange::Finished finished)
    : tools_(tools),
      steps_(kStepsOfRequest),
      exchange_(id, std::move(request), std::move(user), std::move(read), std::move(sink), new_uid(tools.core.rng),
                std::move(finished)) {
  exchange_.started = tools_.core.now.mono;
  exchange_.release_seats = [this] {
    if (!exchange_.finished()) tools_.flows.release_seats(exchange_, ticket_);
  };
}

void RequestRun::advance() {
  const auto self = shared_from_this();  // an answer takes the run out of the table of open requests
  while (!exchange_.finished() && run(steps_.take()) == Next::kStep) {
  }
}

Next RequestRun::run(Step step) {
  switch (step) {
    case Step::kCatchUp:
      return catch_up();
    case Step::kCustomKinds:
      return await_custom_kinds();
    case Step::kAuthentication:
      return authenticate();
    case Step::kAudit:
      return record_arrival();
    case Step::kRequestInfo:
      return check_request_info();
    case Step::kPriorityAndFairness:
      return take_seats();
    case Step::kServing:
      return check_serving();
    case Step::kAuthorization:
      return authorize();
    case Step::kAggregation:
      return forward_to_other_server();
    case Step::kNonResource:
      return answer_page();
    case Step::kResource:
      return check_resource();
    case Step::kAdmission:
      return admit();
    case Step::kDispatch:
      return dispatch();
  }
  return Next::kEnd;
}

/// Continues after the answer that a step waited for.
void RequestRun::resume(Next next) {
  if (next == Next::kStep) advance();
}

Next RequestRun::refuse(const api::Status& status) {
  exchange_.fail(status);
  return Next::kEnd;
}

Next RequestRun::unavailable(const std::string& why) {
  return refuse(api::retry_status(ErrorCode::kServiceUnavailable, why, 1));
}

/// Another part answers the exchange, or has done so.
Next RequestRun::hand_over() {
  limit_time();
  return Next::kEnd;
}

Next RequestRun::catch_up() {
  if (!exchange_.asked.is_resource || !tools_.state.refusal().empty()) return Next::kStep;
  const bool waits =
      tools_.barriers.wait(exchange_, [self = shared_from_this()](const Result<store::Revision>& reached) {
        self->resume(self->on_caught_up(reached));
      });
  return waits ? Next::kWait : Next::kStep;
}

Next RequestRun::on_caught_up(const Result<store::Revision>& reached) {
  if (!reached) lag_ = reached.error();
  return Next::kStep;
}

bool RequestRun::has_no_route() const {
  const auto& route = exchange_.read().route;
  return exchange_.asked.is_resource && !route && route.error().code == 404;
}

/// Parses the request again if kinds were added or removed since it was parsed.
void RequestRun::follow_table() {
  if (!exchange_.asked.is_resource) return;
  ResourceTablePtr table = tools_.core.registry.table();
  if (exchange_.read().table == table) return;
  auto read = std::make_shared<ReadRequest>(read_request(std::move(table), exchange_.request()));
  read->flow = exchange_.read().flow;
  exchange_.reroute(std::move(read));
}

/// The objects of the kind may still be being read.
Next RequestRun::await_custom_kinds() {
  if (!has_no_route() || !tools_.kinds.is_reading() || !tools_.kinds.has_room()) {
    follow_table();
    return Next::kStep;
  }
  limit_time();
  tools_.kinds.when_read([self = shared_from_this()] {
    self->steps_.go_to(Step::kCustomKinds);  // another kind may be read by now
    self->advance();
  });
  return Next::kWait;
}

Next RequestRun::authenticate() {
  const Outcome bound = tools_.rights.check_token(exchange_);
  if (bound) return Next::kStep;
  if (tools_.auditor != nullptr) {
    tools_.auditor->refused(exchange_.request(), nullptr, exchange_.audit_id(), 401,
                            "Authentication failed, attempted: bearer");
  }
  return refuse(make_error(ErrorCode::kUnauthorized, "Unauthorized: {}", bound.error().message));
}

/// A run whose client has gone does not wait for the log.
Next RequestRun::record_arrival() {
  auto record = tools_.auditor == nullptr ? nullptr : tools_.auditor->begin(exchange_);
  if (record == nullptr) return Next::kStep;
  AuditRecord& kept = *record;
  exchange_.observe(std::move(record));
  limit_time();
  kept.receive([waiting = weak_from_this()](const Outcome& outcome) {
    if (const auto self = waiting.lock()) self->resume(self->on_recorded(outcome));
  });
  return Next::kWait;
}

Next RequestRun::on_recorded(const Outcome& kept) {
  if (exchange_.finished()) return Next::kEnd;
  return kept ? Next::kStep : refuse(kept.error());
}

Next RequestRun::check_request_info() {
  if (lag_) return refuse(api::retry_status(lag_->code, lag_->message, 1));
  const auto& understood = exchange_.read().understood;
  return understood ? Next::kStep : refuse(understood.error());
}

Next RequestRun::take_seats() {
  std::optional<api::Status> refusal;
  const FlowGate::Entry entry = tools_.flows.enter(exchange_, ticket_, refusal);
  if (refusal) return refuse(*refusal);
  if (entry == FlowGate::Entry::kRuns) return Next::kStep;
  limit_time();
  return Next::kWait;
}

void RequestRun::on_turn(const std::optional<api::Status>& refusal) {
  resume(refusal ? refuse(*refusal) : Next::kStep);
}

/// The route is set before the check of rights, so that refused requests are counted by route, too, and the form, so
/// that a refusal is written in it.
Next RequestRun::check_serving() {
  exchange_.dispatched = tools_.core.now.mono;
  if (exchange_.user().token && !tools_.state.is_serving()) return unavailable(tools_.state.refusal());
  follow_table();  // the request may have waited long for the audit log or for seats
  if (exchange_.asked.is_resource) {
    if (const std::string why = tools_.state.refusal(); !why.empty()) return unavailable(why);
    if (const auto& form = exchange_.read().form) exchange_.form = *form;
  }
  if (const auto& route = exchange_.read().route) exchange_.route = *route;
  return Next::kStep;
}

Next RequestRun::authorize() {
  const Verdict verdict = tools_.rights.authorize(exchange_);
  if (AnswerObserver* observer = exchange_.observer()) {
    observer->on_verdict(exchange_, verdict.allowed, verdict.reason);
  }
  return verdict.allowed ? Next::kStep : refuse(refusal_status(exchange_.user(), exchange_.asked, verdict));
}

Next RequestRun::forward_to_other_server() {
  const RemoteApiPtr api = tools_.remote_apis.find(exchange_.target);
  if (!api) return Next::kStep;
  tools_.aggregation.perform(shared_exchange(), *api);
  return hand_over();
}

Next RequestRun::answer_page() {
  if (exchange_.asked.is_resource) return Next::kStep;
  tools_.pages.perform(shared_exchange());
  return hand_over();
}

Next RequestRun::check_resource() {
  const ReadRequest& read = exchange_.read();
  if (!read.route) return refuse(read.route.error());
  if (!read.form) return refuse(read.form.error());
  if (const std::string why = tools_.state.refusal(read.route->resource); !why.empty()) return unavailable(why);
  return Next::kStep;
}

Next RequestRun::admit() {
  if (!EndpointGate::concerns(exchange_.route)) return Next::kStep;
  tools_.admission.pass(shared_exchange(), [self = shared_from_this()] { self->resume(Next::kStep); });
  limit_time();
  return Next::kWait;
}

Next RequestRun::dispatch() {
  tools_.resources.perform(shared_exchange());
  return hand_over();
}

/// Sets a deadline for the answer, unless the request is long-running.
void RequestRun::limit_time() {
  if (exchange_.finished()) return;
  if (is_long_running(exchange_.route) || exchange_.waits_for_others()) {
    if (deadline_) tools_.core.timers.cancel(*std::exchange(deadline_, std::nullopt));
  } else if (!deadline_) {
    deadline_ = tools_.core.timers.at(tools_.core.now.mono + kAnswerWithin, [self = shared_from_this()] {
      self->exchange_.fail(
          api::retry_status(ErrorCode::kTimeout, "request did not complete within the allotted timeout", 1));
    });
  }
}

void RequestRun::close() {
  if (deadline_) tools_.core.timers.cancel(*deadline_);
  tools_.flows.exit(exchange_, ticket_);
}

ExchangePtr RequestRun::shared_exchange() {
  return {shared_from_this(), &exchange_};
}

}  // namespace spillway::apiserver
