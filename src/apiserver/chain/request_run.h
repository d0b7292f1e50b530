// One request on its way through the handler chain, from its arrival to the part that executes it. The order of its
// steps is at the top of request_run.cc; they have the names of upstream's filters. Authentication by certificate or
// token and impersonation come before (wire/server/request_intake.h), since they need no object of the cluster.
//
// Some steps wait: for other servers of a shared store, custom kinds, the audit log, seats, webhooks. Each passes a
// callback that keeps the run; the answer arrives at an on_ function, which chooses the next step. Once the exchange is
// finished, the run takes no further step.
// Thread: loop. Bounds: kAnswerWithin for an answer, unless the request is long-running or waits for another program.
// Source: spec "API server contract", 4; k8s.io/apiserver 1.32, DefaultBuildHandlerChain.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "apiserver/flow/flow_control.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "base/step_list.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace spillway::apiserver {

class AggregationPath;
class Auditor;
class CustomKinds;
class EndpointGate;
class NonResourcePaths;
class RemoteApis;
class RequestRights;
class ResourcePaths;
class ServingState;
class StoreBarriers;

/// The parts that a step uses; each is the filter of its name, or a place that requests are dispatched to.
struct ChainTools {
  Core& core;
  const ServingState& state;
  const RequestRights& rights;
  StoreBarriers& barriers;
  CustomKinds& kinds;
  const Auditor* auditor;  // null: no audit log is kept
  FlowControl& flows;
  const RemoteApis& remote_apis;
  AggregationPath& aggregation;
  NonResourcePaths& pages;
  EndpointGate& admission;
  ResourcePaths& resources;
};

class RequestRun final : public std::enable_shared_from_this<RequestRun> {
 public:
  enum class Step : std::uint8_t {
    kCatchUp,              // wait until the writes of other servers are visible, where the answer depends on them
    kCustomKinds,          // wait for custom kinds that are being read, if the resource may be one of them
    kAuthentication,       // check that the objects exist which the token is bound to
    kAudit,                // record the arrival; wait until the audit log has kept it, where it must
    kRequestInfo,          // refuse a request that was not understood, or for which a store could not catch up
    kPriorityAndFairness,  // wait for seats
    kServing,              // refuse requests while the server does not serve; find the route
    kAuthorization,        // refuse users without the right
    kAggregation,          // forward requests for APIs of other servers
    kNonResource,          // answer requests that are for no resource
    kResource,             // refuse resources and formats that do not exist, or whose store is away
    kAdmission,            // let webhooks change or reject a request that writes no object of its own kind
    kDispatch,             // execute the verb; writes pass their own admission (apiserver/write/object_write.h)
  };

  /// `tools` must outlive the run, but for its destruction. `finished`: see Exchange. It calls close().
  RequestRun(ChainTools& tools, std::uint64_t id, api::Request request, std::shared_ptr<const api::UserInfo> user,
             std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink,
             Exchange::Finished finished);

  Exchange& exchange() { return exchange_; }

  /// Runs steps until one waits or the request is dispatched or answered. Called by the one that starts it, then by the
  /// run itself.
  void advance();

  /// The request has waited for seats: it has them, or is refused.
  void on_turn(const std::optional<api::Status>& refusal);

  /// The exchange is finished: gives back the seats and the deadline.
  void close();

 private:
  // The steps, and what follows from their answers.
  Next run(Step step);
  Next catch_up();
  Next on_caught_up(const Result<store::Revision>& reached);
  Next await_custom_kinds();
  Next authenticate();
  Next record_arrival();
  Next on_recorded(const Outcome& kept);
  Next check_request_info();
  Next take_seats();
  Next check_serving();
  Next authorize();
  Next forward_to_other_server();
  Next answer_page();
  Next check_resource();
  Next admit();
  Next dispatch();

  // Moves between steps, and the end.
  void resume(Next next);
  Next refuse(const api::Status& status);
  Next unavailable(const std::string& why);
  Next hand_over();

  bool has_no_route() const;
  void follow_table();
  void limit_time();
  ExchangePtr shared_exchange();

  ChainTools& tools_;
  StepList<Step> steps_;
  Exchange exchange_;  // parts that answer it share the run's ownership
  FlowControl::Ticket ticket_;
  std::optional<TimerQueue::Id> deadline_;
  std::optional<Error> lag_;  // the error of a store that could not catch up
};

}  // namespace spillway::apiserver
