// All that the server does by itself, as one: of several servers of one store one acts. Thread: loop.
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/aggregation/availability.h"
#include "apiserver/aggregation/local_apis.h"
#include "apiserver/collect/account_secrets.h"
#include "apiserver/collect/budgets.h"
#include "apiserver/collect/client_authorities.h"
#include "apiserver/collect/expiry.h"
#include "apiserver/collect/garbage_collector.h"
#include "apiserver/collect/kubernetes_service.h"
#include "apiserver/collect/namespaces.h"
#include "apiserver/collect/policy_types.h"
#include "apiserver/collect/quotas.h"
#include "apiserver/collect/reservation_keeper.h"
#include "apiserver/collect/role_aggregator.h"
#include "apiserver/collect/root_ca.h"
#include "apiserver/custom/definition_controller.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/server.h"
#include "apiserver/signing/node_signer.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <array>

namespace spillway::apiserver {

class Collectors {
 public:
  Collectors(Core& core, const CustomKinds& kinds, Writer& writer, Remover& remover, const Authorizer& authorizer,
             RemoteFetch& fetch, const RemoteApis& apis, const ApiServer::Options& options);

  /// Starts all stopped collectors, or stops all that run. Their writes in flight are completed.
  void act(bool wanted);

  void see(const ResourceCache& cache, const EventPtr& event);
  void run();

  /// Available whether or not the collectors act.
  KubernetesService& kubernetes_service() { return kubernetes_; }

  ClientAuthorities& client_authorities() { return clients_; }

 private:
  GarbageCollector garbage_;
  NamespaceCollector namespaces_;
  BudgetCollector budgets_;
  QuotaCollector quotas_;
  RootCaPublisher root_ca_;
  AccountSecrets account_secrets_;
  KubernetesService kubernetes_;
  ClientAuthorities clients_;
  ReservationKeeper reservations_;
  Expiry events_;
  Expiry requests_;
  Expiry tokens_;
  NodeSigner node_signer_;
  DefinitionController definitions_;
  RoleAggregator roles_;
  LocalApis local_apis_;
  ApiAvailability availability_;
  PolicyTypes policy_types_;
  const std::array<Collector*, 18> all_{&clients_,    &account_secrets_, &garbage_,     &namespaces_,   &budgets_,
                                        &quotas_,     &root_ca_,         &kubernetes_,  &reservations_, &events_,
                                        &requests_,   &tokens_,          &node_signer_, &definitions_,  &roles_,
                                        &local_apis_, &availability_,    &policy_types_};
  bool acts_ = false;
};

}  // namespace spillway::apiserver
