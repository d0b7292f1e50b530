#include "controllers/driven_controller.h"

#include "controllers/node_responses.h"

#include <utility>

namespace spillway::controllers {

namespace {

constexpr Duration kForEver = hours(24 * 365);

}  // namespace

DrivenController::DrivenController(Options options)
    : client_("test", Rng(1), {.call_timeout = kForEver, .watch_silence = kForEver}),
      nodes_(client_, "/api/v1/nodes"),
      pods_(client_, "/api/v1/pods"),
      leases_(client_, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"),
      replica_sets_(client_, "/apis/apps/v1/replicasets"),
      daemon_sets_(client_, "/apis/apps/v1/daemonsets"),
      // All events of the controller, before any is combined or held back.
      events_(client_, Rng(2), "node-controller", {}, {.similar_max = 1'000'000, .object_burst = 1'000'000}),
      metrics_(registry_),
      gate_({}, log_, registry_),
      pods_by_node_(pods_.cache()),
      lifecycle_(
          {client_, events_, log_, nodes_, pods_, leases_, replica_sets_, daemon_sets_},
          [this, listed = std::move(options.pods_can_be_listed)](const std::string& node) {
            return listed(node) ? std::optional(pods_by_node_.on(node)) : std::nullopt;
          },
          metrics_, gate_, Rng(3), options.lifecycle, make_node_response),
      cloud_({client_, events_, log_, nodes_, pods_, leases_, replica_sets_, daemon_sets_}, gate_, Rng(4),
             options.cloud) {}

void DrivenController::start(Now now) {
  client_.start(now);
  client_.when_synced([this](Now then) {
    lifecycle_.start(then);
    cloud_.start({then.mono + nanoseconds(1), then.wall});  // behind the pass
  });
}

void DrivenController::on_api_event(const client::ApiEvent& event, Now now) {
  client_.on_api_event(event, now);
  cloud_.run(now);
}

void DrivenController::on_wakeup(Now now) {
  client_.on_wakeup(now);
  cloud_.run(now);
}

}  // namespace spillway::controllers
