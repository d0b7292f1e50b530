#include "apiserver/chain/resource_paths.h"

#include "apiserver/resource/custom_kind.h"

#include <string_view>

namespace spillway::apiserver {

namespace {

/// Clients get it with every answer, as for a version of a custom kind that its definition calls deprecated.
constexpr std::string_view kEndpointsDeprecated =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

}  // namespace

ResourcePaths::ResourcePaths(const Parts& parts, const ServerOptions& options)
    : storage_(parts.storage),
      authorizer_(parts.authorizer),
      reader_(parts.reader),
      renewals_(parts.core, parts.writer, parts.metrics,
                options.short_renewals ? Renewals::Short::kYes : Renewals::Short::kNo),
      write_path_(parts.core, parts.writer, renewals_, parts.remover, parts.reader, parts.authorizer),
      scale_(parts.core, parts.writer),
      binding_(parts.core, parts.writer),
      eviction_(parts.core, parts.writer, parts.remover),
      log_(parts.core, options.gateway, open_to_nodes_),
      connect_(parts.core, options.gateway, open_to_nodes_),
      usage_(parts.core, options.gateway),
      components_(parts.core, options.controllers == ServerOptions::Controllers::kOwn
                                  ? ComponentStatuses::Components::kInProcess
                                  : ComponentStatuses::Components::kElsewhere),
      proxy_(
          parts.core,
          {.nodes = options.gateway, .pods = options.pods, .scheme = options.scheme, .open_to_nodes = &open_to_nodes_}),
      tokens_(parts.core, parts.node_restriction, options.signer, options.token_life_max),
      reviews_(parts.core, parts.authorizer, parts.roles, parts.bound_tokens, options.authenticator) {}

/// A WebSocket begins with GET, and yet it runs a program: the right to read is not enough.
void ResourcePaths::connect(const ExchangePtr& exchange) {
  if (exchange->request().method == api::Method::kGet) {
    RequestAttributes creating = exchange->asked;
    creating.verb = "create";
    const Verdict verdict = authorizer_.authorize(exchange->user(), creating);
    if (!verdict.allowed) return exchange->fail(refusal_status(exchange->user(), creating, verdict));
  }
  connect_.connect(exchange);
}

void ResourcePaths::perform(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  if (route.resource->custom != nullptr && !route.resource->custom->deprecation.empty()) {
    exchange->warnings.push_back(route.resource->custom->deprecation);
  }
  if (route.resource->is("", "Endpoints")) exchange->warnings.emplace_back(kEndpointsDeprecated);
  if (const auto readable = storage_.check(route); !readable) return exchange->fail(readable.error());
  if (!route.resource->stored()) return perform_unstored(exchange);
  switch (route.subresource == nullptr ? SubresourceId::kNone : route.subresource->id) {
    case SubresourceId::kScale:
      return scale_.perform(exchange);
    case SubresourceId::kBinding:
      return binding_.create(exchange);
    case SubresourceId::kEviction:
      return eviction_.create(exchange);
    case SubresourceId::kLog:
      return log_.get(exchange);
    case SubresourceId::kExec:
      return connect(exchange);
    case SubresourceId::kProxy:
      return proxy_.perform(exchange);
    case SubresourceId::kNone:
    case SubresourceId::kStatus:
    case SubresourceId::kEphemeralContainers:
    case SubresourceId::kResize:
    case SubresourceId::kFinalize:
    case SubresourceId::kApproval:
      return perform_generic(exchange);
    case SubresourceId::kToken:
      return tokens_.create(exchange);
  }
}

void ResourcePaths::perform_unstored(const ExchangePtr& exchange) {
  const Resource& resource = *exchange->route.resource;
  if (resource.is("", "Binding")) return binding_.create(exchange);
  if (resource.is("", "ComponentStatus")) return components_.read(exchange);
  return exchange->route.verb == Verb::kCreate ? reviews_.create(exchange) : usage_.read(exchange);
}

void ResourcePaths::perform_generic(const ExchangePtr& exchange) {
  switch (exchange->route.verb) {
    case Verb::kGet:
      return reader_.get(exchange);
    case Verb::kList:
      return reader_.list(exchange);
    case Verb::kWatch:
      return reader_.watch(exchange);
    case Verb::kCreate:
      return write_path_.create(exchange);
    case Verb::kUpdate:
      return write_path_.update(exchange);
    case Verb::kPatch:
      return write_path_.patch(exchange);
    case Verb::kDelete:
      return write_path_.remove(exchange);
    case Verb::kDeleteCollection:
      return write_path_.remove_collection(exchange);
  }
}

}  // namespace spillway::apiserver
