// Questions to the authorizer of the server:
// authorizer.group("apps").resource("deployments").check("create").allowed().
#include "api/text/names.h"
#include "policy/cel/functions.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

namespace spillway::cel {

namespace {

/// The cost of a check: the rules of every role may be read.
constexpr std::uint64_t kCheckUnits = 350'000;

const AccessRequest& asked(const Call& call) {
  return *call[0].as<Access>().request;
}

Result<Value> next(const Call& call, AccessStage stage, std::string AccessRequest::* field) {
  AccessRequest request = asked(call);
  request.*field = std::string(call.string(1));
  return Value(Access{.stage = stage, .request = std::make_shared<const AccessRequest>(std::move(request))});
}

Result<Value> path(const Call& call) {
  if (call.string(1).empty()) return evaluation_error("path must not be empty");
  return next(call, AccessStage::kPath, &AccessRequest::path);
}

Result<Value> group(const Call& call) {
  return next(call, AccessStage::kGroup, &AccessRequest::group);
}

Result<Value> resource(const Call& call) {
  if (call.string(1).empty()) return evaluation_error("resource must not be empty");
  return next(call, AccessStage::kResource, &AccessRequest::resource);
}

Result<Value> subresource(const Call& call) {
  return next(call, AccessStage::kResource, &AccessRequest::subresource);
}

Result<Value> in_namespace(const Call& call) {
  return next(call, AccessStage::kResource, &AccessRequest::ns);
}

Result<Value> named(const Call& call) {
  return next(call, AccessStage::kResource, &AccessRequest::name);
}

Result<Value> by_fields(const Call& call) {
  if (!call.budget.charge_bytes(call.string(1).size())) return over_budget();
  return next(call, AccessStage::kResource, &AccessRequest::field_selector);
}

Result<Value> by_labels(const Call& call) {
  if (!call.budget.charge_bytes(call.string(1).size())) return over_budget();
  return next(call, AccessStage::kResource, &AccessRequest::label_selector);
}

Result<Value> service_account(const Call& call) {
  if (!api::dns1123_label_errors(call.string(1)).empty()) {
    return evaluation_error("Invalid service account namespace");
  }
  if (!api::dns1123_subdomain_errors(call.string(2)).empty()) return evaluation_error("Invalid service account name");
  AccessRequest request = asked(call);
  request.account = ServiceAccount{.ns = std::string(call.string(1)), .name = std::string(call.string(2))};
  return Value(
      Access{.stage = AccessStage::kAuthorizer, .request = std::make_shared<const AccessRequest>(std::move(request))});
}

Result<Value> check(const Call& call) {
  if (!call.budget.charge(kCheckUnits)) return over_budget();
  AccessRequest request = asked(call);
  request.verb = std::string(call.string(1));
  if (call.check == nullptr || !*call.check) return evaluation_error("there is no authorizer");
  return Value(Access{.stage = AccessStage::kDecision,
                      .request = {},
                      .decision = std::make_shared<const AccessDecision>((*call.check)(request))});
}

Result<Value> allowed(const Call& call) {
  return Value(call[0].as<Access>().decision->allowed);
}

Result<Value> reason(const Call& call) {
  return Value::text(call[0].as<Access>().decision->reason);
}

/// errored(): always false, because the authorizers of this server always decide.
Result<Value> errored(const Call& /*call*/) {
  return Value(false);
}

Result<Value> error(const Call& /*call*/) {
  return Value::text("");
}

constexpr std::array kAuthorizationRows = std::to_array<Definition>({
    {"path", "kubernetes.authorization.Authorizer, string -> kubernetes.authorization.PathCheck", path, kMember},
    {"serviceAccount", "kubernetes.authorization.Authorizer, string, string -> kubernetes.authorization.Authorizer",
     service_account, kMember},
    {"group", "kubernetes.authorization.Authorizer, string -> kubernetes.authorization.GroupCheck", group, kMember},
    {"resource", "kubernetes.authorization.GroupCheck, string -> kubernetes.authorization.ResourceCheck", resource,
     kMember},
    {"subresource", "kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
     subresource, kMember},
    {"namespace", "kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
     in_namespace, kMember},
    {"name", "kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck", named,
     kMember},
    {"fieldSelector", "kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
     by_fields, kMember},
    {"labelSelector", "kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
     by_labels, kMember},
    {"check", "kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.Decision", check, kMember},
    {"check", "kubernetes.authorization.PathCheck, string -> kubernetes.authorization.Decision", check, kMember},
    {"allowed", "kubernetes.authorization.Decision -> bool", allowed, kMember},
    {"reason", "kubernetes.authorization.Decision -> string", reason, kMember},
    {"errored", "kubernetes.authorization.Decision -> bool", errored, kMember},
    {"error", "kubernetes.authorization.Decision -> string", error, kMember},
});

}  // namespace

std::span<const Definition> authorization() {
  return kAuthorizationRows;
}

}  // namespace spillway::cel
