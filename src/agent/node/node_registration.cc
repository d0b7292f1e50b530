#include "agent/node/node_registration.h"

#include "agent/node/node_object.h"
#include "agent/node/node_patch.h"
#include "api/codec/codec.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr Duration kFirstWait = milliseconds(100);  // as upstream; doubled after each failure
constexpr Duration kLongestWait = seconds(7);       // as upstream

/// True if registration continues after a creation that failed with this code: the node exists, or may not be created.
bool continues_after(ErrorCode code) {
  return code == ErrorCode::kAlreadyExists || code == ErrorCode::kForbidden;
}

}  // namespace

NodeRegistration::NodeRegistration(client::ApiClient& api, const telemetry::Log& log, std::string node,
                                   ExtendedResources extended, Ties ties)
    : api_(api), log_(log), node_(std::move(node)), extended_(extended), ties_(std::move(ties)) {}

std::string NodeRegistration::path(std::string_view subresource) const {
  return client::object_path("v1", "nodes", {}, node_, subresource);
}

void NodeRegistration::start(Now now) {
  back_off_ = kFirstWait;
  wait(now);
}

void NodeRegistration::wait(Now now) {
  api_.at(now.mono + back_off_, [this](Now later) { attempt(later); });
  back_off_ = std::min(back_off_ * 2, kLongestWait);
}

void NodeRegistration::attempt(Now now) {
  log_.info("attempting to register node", {{"node", node_}});
  api::Node initial = ties_.initial(now);
  api_.create(client::object_path("v1", "nodes", {}), api::encode(initial),
              [this, initial](const Result<api::Json>& outcome, Now answered) {
                if (outcome) {
                  log_.info("node registered", {{"node", node_}});
                  return ties_.registered(answered);
                }
                if (continues_after(outcome.error().code)) return reconcile(initial);
                log_.warning("node not registered", {{"node", node_}, {"error", outcome.error().text()}});
                wait(answered);
              });
}

void NodeRegistration::reconcile(const api::Node& initial) {
  api_.get(path(), [this, initial](const Result<api::Json>& outcome, Now answered) {
    const Result<api::Node> existing = outcome ? api::decode<api::Node>(*outcome) : Result<api::Node>(outcome.error());
    if (!existing) {
      log_.warning("existing node not read", {{"node", node_}, {"error", existing.error().text()}});
      return wait(answered);
    }
    log_.info("node was previously registered", {{"node", node_}});
    api::Node wanted = *existing;
    if (!reconcile_node(initial, extended_, wanted)) return ties_.registered(answered);
    api_.patch(path("status"), client::PatchType::kStrategicMerge, node_patch(*existing, wanted),
               [this](const Result<api::Json>& patched, Now then) {
                 if (patched) return ties_.registered(then);
                 log_.warning("node not reconciled", {{"node", node_}, {"error", patched.error().text()}});
                 wait(then);
               });
  });
}

}  // namespace spillway::agent
