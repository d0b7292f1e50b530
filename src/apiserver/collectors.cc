#include "apiserver/collectors.h"

#include <utility>

namespace spillway::apiserver {

Collectors::Collectors(Core& core, const CustomKinds& kinds, Writer& writer, Remover& remover,
                       const Authorizer& authorizer, RemoteFetch& fetch, const RemoteApis& apis,
                       const ApiServer::Options& options)
    : garbage_(core, writer, remover),
      namespaces_(core, writer, remover),
      budgets_(core, writer),
      quotas_(core, writer),
      root_ca_(core, writer, options.root_ca_pem,
               options.controllers == ApiServer::Controllers::kOwn ? RootCaPublisher::Others::kNone
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
      policy_types_(core, writer) {}

void Collectors::act(bool wanted) {
  if (std::exchange(acts_, wanted) == wanted) return;
  for (Collector* collector : all_) wanted ? collector->begin() : collector->end();
}

void Collectors::see(const ResourceCache& cache, const EventPtr& event) {
  for (Collector* collector : all_) collector->see(cache, event);
}

void Collectors::run() {
  for (Collector* collector : all_) collector->run();
}

}  // namespace spillway::apiserver
