#include "apiserver/serving/collectors.h"

#include <utility>

namespace spillway::apiserver {

Collectors::Collectors(Core& core, const CustomKinds& kinds, Writer& writer, Remover& remover,
                       const Authorizer& authorizer, RemoteFetch& fetch, const RemoteApis& apis,
                       const ServerOptions& options)
    : proxy_authorities_(core, writer, {.clients = {}, .proxies = options.proxy_ca_pem}),
      garbage_(core, writer, remover),
      namespaces_(core, writer, remover),
      budgets_(core, writer),
      quotas_(core, writer),
      root_ca_(core, writer, options.root_ca_pem,
               options.controllers == ServerOptions::Controllers::kOwn ? RootCaPublisher::Others::kNone
                                                                       : RootCaPublisher::Others::kMayAct),
      account_secrets_(core, writer, options.signer, options.root_ca_pem),
      kubernetes_(core, writer),
      clients_(core, writer, {.clients = options.client_ca_pem, .proxies = options.proxy_ca_pem}),
      reservations_(core),
      events_(core, remover, event_expiry(core)),
      requests_(core, remover, kRequestExpiry),
      tokens_(core, remover, kTokenExpiry,
              options.bootstrap_tokens == nullptr ? Expiry::Wanted::kNo : Expiry::Wanted::kYes),
      node_signer_(core, writer, authorizer, options.certificates,
                   {.serving = options.serving_authority, .client = options.client_authority}),
      definitions_(core, kinds, writer, remover),
      roles_(core, writer),
      local_apis_(core, writer, remover, options.aggregated == nullptr ? LocalApis::Kept::kNo : LocalApis::Kept::kYes),
      availability_(core, writer, fetch, apis),
      policy_types_(core, writer),
      flow_objects_(core, writer, options.flows),
      flow_conditions_(core, writer),
      service_addresses_(core, writer, remover),
      is_allowed_(options.controllers != ServerOptions::Controllers::kNone),
      is_active_(!core.store.is_shared()) {}

void Collectors::set_active(bool active) {
  is_active_ = active;
  if (is_started_) apply();
}

void Collectors::begin_if_active() {
  if (is_active_) apply();
}

void Collectors::follow() {
  is_started_ = true;
  apply();
}

void Collectors::apply() {
  if (!is_allowed_) return;
  act(is_active_);
  is_active_ ? proxy_authorities_.end() : proxy_authorities_.begin();
}

/// Starts all stopped collectors, or stops all that run. Their writes in flight are completed.
void Collectors::act(bool wanted) {
  if (std::exchange(acts_, wanted) == wanted) return;
  for (Collector* collector : all_) wanted ? collector->begin() : collector->end();
}

void Collectors::see(const ResourceCache& cache, const EventPtr& event) {
  proxy_authorities_.see(cache, event);
  for (Collector* collector : all_) collector->see(cache, event);
}

void Collectors::run() {
  proxy_authorities_.run();
  for (Collector* collector : all_) collector->run();
}

}  // namespace spillway::apiserver
