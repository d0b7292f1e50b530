#include "apiserver/webhooks/endpoint_gate.h"

#include "apiserver/request/body.h"
#include "apiserver/webhooks/admission_options.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;
using webhooks::Operation;

/// POST to a collection of bindings is the older form of POST to a pod's own.
bool is_binding(const Route& route) {
  return route.subresource == nullptr && route.resource->is("", "Binding");
}

bool connects(const Route& route) {
  const Subresource* part = route.subresource;
  return part != nullptr && (part->id == SubresourceId::kExec || part->id == SubresourceId::kProxy);
}

const api::Type* type_of(const Route& route) {
  if (is_binding(route)) return api::find_kind("v1", "Binding");
  const Subresource& part = *route.subresource;
  const std::string version =
      part.group.empty() ? std::string(part.version) : fmt::format("{}/{}", part.group, part.version);
  return api::find_kind(version, part.kind);
}

/// The object in the request; an error is left to the endpoint, which reports it in its own words.
StatusResult<Json> asked_for(const Exchange& exchange) {
  if (connects(exchange.route)) return connect_options(exchange);
  const api::Type* type = type_of(exchange.route);
  if (type == nullptr) return make_error(ErrorCode::kInternalError, "no such kind");
  std::vector<std::string> warnings;
  return read_object(exchange.request(), *type, FieldValidation::kIgnore, warnings);
}

/// The path's; of a binding the one in the body, which may be missing.
std::string name_of(const Exchange& exchange) {
  if (!is_binding(exchange.route)) return exchange.route.name;
  const auto body = asked_for(exchange);
  return body ? std::string(body->string_at({"metadata", "name"})) : std::string();
}

}  // namespace

bool EndpointGate::concerns(const Route& route) {
  if (route.subresource == nullptr) return is_binding(route);
  switch (route.subresource->id) {
    case SubresourceId::kBinding:
    case SubresourceId::kEviction:
    case SubresourceId::kToken:
    case SubresourceId::kExec:
    case SubresourceId::kProxy:
      return true;
    case SubresourceId::kNone:
    case SubresourceId::kStatus:
    case SubresourceId::kScale:
    case SubresourceId::kLog:
    case SubresourceId::kEphemeralContainers:
    case SubresourceId::kResize:
    case SubresourceId::kFinalize:
    case SubresourceId::kApproval:
      return false;
  }
  return false;
}

struct EndpointGate::Passage {
  ExchangePtr exchange;
  std::move_only_function<void()> proceed;
  AdmissionPtr admission;
  Json object;
  bool changed = false;
};

void EndpointGate::pass(const ExchangePtr& exchange, std::move_only_function<void()> proceed) {
  const Route& route = exchange->route;
  if (!concerns(route)) return proceed();
  // The query of a connection belongs to the program at its other end.
  const auto dry_run = connects(route) ? nullptr : exchange->target.find("dryRun");
  const std::string name = name_of(*exchange);
  if (is_binding(route) && exchange->observer() != nullptr) exchange->observer()->on_name(name);
  AdmissionPtr admission = admission_.begin(exchange, connects(route) ? Operation::kConnect : Operation::kCreate,
                                            route.ns, name, dry_run != nullptr && !dry_run->empty());
  if (admission == nullptr) return proceed();
  auto object = asked_for(*exchange);
  if (!object) return proceed();
  if (!connects(route)) {
    (*object)["metadata"]["name"] = name;
    (*object)["metadata"]["namespace"] = route.ns;
  }
  auto passage =
      std::make_shared<Passage>(Passage{exchange, std::move(proceed), std::move(admission), *std::move(object), false});
  mutate(passage);
}

void EndpointGate::mutate(const PassagePtr& passage) {
  passage->admission->mutate(passage->object, Json(), [this, passage](StatusResult<std::optional<Json>> result) {
    if (!result) return passage->exchange->fail(result.error());
    if (*result) {
      passage->object = **std::move(result);
      passage->changed = true;
    }
    if (passage->admission->may_repeat()) return mutate(passage);
    validate(passage);
  });
}

void EndpointGate::validate(const PassagePtr& passage) {
  passage->admission->validate(passage->object, Json(), [passage](const StatusResult<void>& result) {
    if (!result) return passage->exchange->fail(result.error());
    if (passage->exchange->finished()) return;
    if (passage->changed) passage->exchange->replace_body(passage->object);
    passage->proceed();
  });
}

}  // namespace spillway::apiserver
