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
    : api_(api),
      log_(log),
      node_(std::move(node)),
      extended_(extended),
      ties_(std::move(ties)),
      back_off_(kFirstWait, kLongestWait) {}

std::string NodeRegistration::path(std::string_view subresource) const {
  return client::object_path("v1", "nodes", {}, node_, subresource);
}

void NodeRegistration::start(Now now) {
  back_off_.reset();
  wait(now);
}

void NodeRegistration::wait(Now now) {
  api_.at(now.mono + back_off_.next(), [this](Now later) { attempt(later); });
}

void NodeRegistration::attempt(Now now) {
  log_.info("attempting to register node", {{"node", node_}});
  api::Node initial = ties_.initial(now);
  const auto on_answer = [this, initial](const Result<api::Json>& outcome, Now answered) {
    on_created(initial, outcome, answered);
  };
  api_.create(client::object_path("v1", "nodes", {}), api::encode(initial), on_answer);
}

void NodeRegistration::on_created(const api::Node& initial, const Result<api::Json>& outcome, Now now) {
  if (outcome) {
    log_.info("node registered", {{"node", node_}});
    return ties_.registered(now);
  }
  if (!continues_after(outcome.error().code)) return fail("node not registered", outcome.error(), now);
  api_.get(path(), [this, initial](const Result<api::Json>& existing, Now answered) {
    on_existing(initial, existing, answered);
  });
}

void NodeRegistration::on_existing(const api::Node& initial, const Result<api::Json>& outcome, Now now) {
  const Result<api::Node> existing = outcome ? api::decode<api::Node>(*outcome) : Result<api::Node>(outcome.error());
  if (!existing) return fail("the existing Node could not be read", existing.error(), now);
  log_.info("node was previously registered", {{"node", node_}});
  api::Node wanted = *existing;
  if (!reconcile_node(initial, extended_, wanted)) return ties_.registered(now);
  api_.patch(path("status"), client::PatchType::kStrategicMerge, node_patch(*existing, wanted),
             [this](const Result<api::Json>& patched, Now then) { on_reconciled(patched, then); });
}

void NodeRegistration::on_reconciled(const Result<api::Json>& outcome, Now now) {
  outcome ? ties_.registered(now) : fail("node not reconciled", outcome.error(), now);
}

void NodeRegistration::fail(std::string_view what, const Error& error, Now now) {
  log_.warning(what, {{"node", node_}, {"error", error.text()}});
  wait(now);
}

}  // namespace spillway::agent
