// Dispatches an authorized request for a resource to the part that executes its verb and subresource. Thread: loop.
// Source: spec "API server contract", 1, 17.
#pragma once

#include "apiserver/access/bound_tokens.h"
#include "apiserver/access/gatekeeper.h"
#include "apiserver/access/node_restriction.h"
#include "apiserver/access/reviews.h"
#include "apiserver/access/role_rules.h"
#include "apiserver/access/tokens.h"
#include "apiserver/nodes/pod_connect.h"
#include "apiserver/nodes/pod_log.h"
#include "apiserver/nodes/usage.h"
#include "apiserver/proxy/proxy_path.h"
#include "apiserver/read/component_statuses.h"
#include "apiserver/read/core.h"
#include "apiserver/read/reader.h"
#include "apiserver/read/storage_report.h"
#include "apiserver/request/exchange.h"
#include "apiserver/serving/server_options.h"
#include "apiserver/subresource/eviction.h"
#include "apiserver/subresource/pod_binding.h"
#include "apiserver/subresource/scale.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/renewals.h"
#include "apiserver/write/write_path.h"
#include "apiserver/write/writer.h"

namespace spillway::apiserver {

class ResourcePaths {
 public:
  /// Objects that the paths use; all of them outlive the paths.
  struct Parts {
    Core& core;
    Reader& reader;
    Writer& writer;
    Remover& remover;
    const StorageReport& storage;
    const Gatekeeper& authorizer;
    const RoleRules& roles;
    const NodeRestriction& node_restriction;
    const BoundTokens& bound_tokens;
    telemetry::Registry& metrics;
  };

  ResourcePaths(const Parts& parts, const ServerOptions& options);

  /// The exchange has its route and its form, its user may, and webhooks have admitted it. Answers it, now or later.
  void perform(const ExchangePtr& exchange);

 private:
  void perform_unstored(const ExchangePtr& exchange);
  void perform_generic(const ExchangePtr& exchange);
  void connect(const ExchangePtr& exchange);

  /// Open requests of one user at agents of nodes: half of the server's maximum, so that one user's logs and streams do
  /// not take every place. Fewer would refuse a program that scrapes many nodes at once.
  static constexpr std::size_t kOpenToNodesMax = 128;

  const StorageReport& storage_;
  const Gatekeeper& authorizer_;
  Reader& reader_;
  Renewals renewals_;
  WritePath write_path_;
  ScalePath scale_;
  PodBinding binding_;
  EvictionPath eviction_;
  OpenRequests open_to_nodes_{kOpenToNodesMax};
  PodLog log_;
  PodConnect connect_;
  UsagePath usage_;
  ComponentStatuses components_;
  ProxyPath proxy_;
  TokenPath tokens_;
  Reviews reviews_;
};

}  // namespace spillway::apiserver
