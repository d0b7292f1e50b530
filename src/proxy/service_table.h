// Services and their slices as the proxy has read them, and the rules that follow. Changes mark Services; update()
// works through the marks, a bounded number at a time. Thread: loop.
#pragma once

#include "api/object/proxied_service.h"
#include "policy/network/endpoint_choice.h"
#include "policy/network/rule_book.h"
#include "policy/network/rule_settings.h"
#include "policy/network/service_ports.h"
#include "policy/network/stale_flows.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace spillway::proxy {

using ServicePtr = std::shared_ptr<const api::ProxiedService>;

/// The server that reports to a load balancer the number of endpoints of a Service on this node.
struct HealthCheckPort {
  std::int32_t port = 0;
  std::string ns;
  std::string service;
  std::size_t local_endpoints = 0;

  friend bool operator==(const HealthCheckPort&, const HealthCheckPort&) = default;
};

class ServiceTable {
 public:
  ServiceTable(std::span<const network::Family> families, std::string node_name);

  /// `before` null: the Service is new; `after` null: it was deleted.
  void on_service(const ServicePtr& before, const ServicePtr& after);
  void on_slice(const network::SlicePtr& before, const network::SlicePtr& after);
  /// Other settings than before change the rules of all Services. One entry for each family, in their order.
  void set_settings(std::vector<network::RuleSettings> settings);
  /// The loaded rules are unknown: the next changes are whole.
  void begin_anew();

  /// Works through at most `services_max` marked Services. True: none is left.
  bool update(std::size_t services_max);

  std::size_t marked() const { return marked_.size(); }

  /// Rules to load, one change for each family with changes; load them before flows_changed() is handled.
  std::vector<network::RuleChange> take_changes(Instant now);

  /// Endpoints of UDP ports changed since the last call.
  bool take_flows_changed();

  network::FlowCheck flow_check() const;

  /// Ports by number; if two Services have the same port, the first by name gets it.
  std::vector<HealthCheckPort> health_check_ports() const;

  std::size_t services() const { return services_.size(); }

 private:
  struct OfFamily {
    std::vector<network::ServicePort> ports;
    network::MergedEndpoints endpoints;
  };

  struct Entry {
    ServicePtr service;  // null: only slices are known
    std::map<std::string, network::SlicePtr> slices;
    std::vector<OfFamily> families;  // as last worked out; empty: not yet
  };

  void work_out(const std::string& key);
  /// Rewrites the frame with chains for lists of that size, if it has none yet.
  void make_room(std::size_t family, std::size_t size);

  std::vector<network::Family> families_;
  std::string node_name_;
  std::vector<network::RuleSettings> settings_;
  std::vector<network::RuleBook> books_;
  std::map<std::string, Entry> services_;  // by "namespace/name"
  std::set<std::string> marked_;
  std::map<std::string, HealthCheckPort> health_checks_;
  bool flows_changed_ = false;
};

}  // namespace spillway::proxy
