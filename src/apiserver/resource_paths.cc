#include "apiserver/resource_paths.h"

#include "apiserver/resource/custom_kind.h"

namespace spillway::apiserver {

ResourcePaths::ResourcePaths(const Parts& parts, const ApiServer::Options& options)
    : storage_(parts.storage),
      reader_(parts.reader),
      gate_(parts.webhooks),
      renewals_(parts.core, parts.writer, parts.metrics,
                options.short_renewals ? Renewals::Short::kYes : Renewals::Short::kNo),
      write_path_(parts.core, parts.writer, renewals_, parts.remover, parts.reader, parts.authorizer),
      scale_(parts.core, parts.writer),
      binding_(parts.core, parts.writer),
      eviction_(parts.core, parts.writer, parts.remover),
      log_(parts.core, options.gateway, open_to_nodes_),
      connect_(parts.core, options.gateway, open_to_nodes_),
      usage_(parts.core, options.gateway),
      components_(parts.core, options.controllers == ApiServer::Controllers::kOwn
                                  ? ComponentStatuses::Components::kInProcess
                                  : ComponentStatuses::Components::kElsewhere),
      proxy_(
          parts.core,
          {.nodes = options.gateway, .pods = options.pods, .scheme = options.scheme, .open_to_nodes = &open_to_nodes_}),
      tokens_(parts.core, parts.node_restriction, options.signer, options.token_life_max),
      reviews_(parts.core, parts.authorizer, parts.roles, parts.bound_tokens, options.authenticator) {}

void ResourcePaths::perform(const ExchangePtr& exchange) {
  gate_.pass(exchange, [this, exchange] { perform_admitted(exchange); });
}

void ResourcePaths::perform_admitted(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  if (route.resource->custom != nullptr && !route.resource->custom->deprecation.empty()) {
    exchange->warnings.push_back(route.resource->custom->deprecation);
  }
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
      return connect_.connect(exchange);
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
