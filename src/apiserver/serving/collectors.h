// The server's background work: of several servers of one store the active one runs the collectors, the others keep
// their own proxy certificates known. Thread: loop. Bounds: those of each collector.
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/aggregation/availability.h"
#include "apiserver/aggregation/local_apis.h"
#include "apiserver/collect/account_secrets.h"
#include "apiserver/collect/budgets.h"
#include "apiserver/collect/client_authorities.h"
#include "apiserver/collect/expiry.h"
#include "apiserver/collect/flow_conditions.h"
#include "apiserver/collect/flow_objects.h"
#include "apiserver/collect/garbage_collector.h"
#include "apiserver/collect/kubernetes_service.h"
#include "apiserver/collect/namespaces.h"
#include "apiserver/collect/policy_types.h"
#include "apiserver/collect/quotas.h"
#include "apiserver/collect/reservation_keeper.h"
#include "apiserver/collect/role_aggregator.h"
#include "apiserver/collect/root_ca.h"
#include "apiserver/collect/service_addresses.h"
#include "apiserver/custom/definition_controller.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/serving/server_options.h"
#include "apiserver/signing/node_signer.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <array>

namespace spillway::apiserver {

class Collectors {
 public:
  Collectors(Core& core, const CustomKinds& kinds, Writer& writer, Remover& remover, const Authorizer& authorizer,
             RemoteFetch& fetch, const RemoteApis& apis, const ServerOptions& options);

  /// Makes this server the active one of its store, or an inactive one. A server whose store is not shared is active
  /// from the beginning. Takes effect at once after follow().
  void set_active(bool active);
  /// Starts the collectors of an active server. The stores have been loaded.
  void begin_if_active();
  /// The server serves: from now on its collectors follow set_active().
  void follow();

  void see(const ResourceCache& cache, const EventPtr& event);
  void run();

  /// Available whether or not the collectors act.
  KubernetesService& kubernetes_service() { return kubernetes_; }

  ServiceAddresses& service_addresses() { return service_addresses_; }

  ClientAuthorities& client_authorities() { return clients_; }

 private:
  void apply();
  void act(bool wanted);

  ClientAuthorities proxy_authorities_;  // while another server acts: each has a proxy certificate of its own
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
  FlowObjects flow_objects_;
  FlowConditions flow_conditions_;
  ServiceAddresses service_addresses_;
  const std::array<Collector*, 21> all_{&clients_,          &account_secrets_, &garbage_,      &namespaces_,
                                        &budgets_,          &quotas_,          &root_ca_,      &kubernetes_,
                                        &reservations_,     &events_,          &requests_,     &tokens_,
                                        &node_signer_,      &definitions_,     &roles_,        &local_apis_,
                                        &availability_,     &policy_types_,    &flow_objects_, &flow_conditions_,
                                        &service_addresses_};
  bool is_allowed_;          // false: this server only answers requests
  bool is_active_;           // this server runs the collectors of its store
  bool is_started_ = false;  // the server serves
  bool acts_ = false;        // the collectors run
};

}  // namespace spillway::apiserver
