#include "policy/outlook/service_paths.h"

#include "policy/network/service_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::outlook {
namespace {

using network::Endpoint;
using network::EndpointChoice;
using network::Family;
using network::ServicePort;
using policy::Fact;

constexpr Family kFamilies[] = {Family::kIPv4, Family::kIPv6};

std::string counted(std::size_t endpoints) {
  return fmt::format("{} endpoint{}", endpoints, endpoints == 1 ? "" : "s");
}

std::string place_text(const std::string& host, const ServicePort& port, std::int32_t number) {
  return fmt::format("{}:{}/{}", host, number, port.key.protocol);
}

std::string host_text(const api::IpAddress& ip) {
  return ip.v4 ? network::text_of(ip) : fmt::format("[{}]", network::text_of(ip));
}

/// The ways that traffic to one port of the Service takes.
class PortPaths {
 public:
  PortPaths(const ServicePort& port, std::span<const Endpoint> endpoints, const PathNode& node, Part& addresses,
            Part& all)
      : port_(port),
        endpoints_(endpoints),
        node_(node),
        choice_(network::choose_endpoints(port, endpoints, node.zone)),
        addresses_(addresses),
        all_(all) {}

  void add() {
    add_address(place_text(host_text(port_.cluster_ip), port_, port_.port), "ClusterIP",
                internal_fate(port_.internal_policy_local), policy_name(port_.internal_policy_local), "kept");
    for (const api::IpAddress& ip : port_.external_ips) add_external(host_text(ip), port_.port, "external IP");
    for (const api::IpAddress& ip : port_.load_balancer_vips) add_external(host_text(ip), port_.port, "load balancer");
    if (port_.node_port != 0) add_external("NODE", port_.node_port, "node port");
    for (std::size_t index = 0; index < endpoints_.size(); ++index) add_endpoint(index);
  }

 private:
  using List = std::optional<std::vector<std::size_t>>;

  static std::string policy_name(bool local) { return local ? "Local" : "Cluster"; }

  static std::size_t size_of(const List& list) { return list ? list->size() : 0; }

  static bool holds(const List& list, std::size_t index) {
    return list && std::ranges::find(*list, index) != list->end();
  }

  /// The fate of a connection that is led to a list.
  std::string fate_of(const List& list) const {
    if (size_of(list) > 0) return counted(size_of(list));
    if (choice_.any) return fmt::format("dropped: no endpoint on node {}", node_.name);
    return "refused: no endpoint";
  }

  std::string internal_fate(bool local) const { return fate_of(local ? choice_.local : choice_.cluster); }

  std::string external_fate() const {
    if (!port_.external_policy_local) return fate_of(choice_.cluster);
    std::string fate = fate_of(choice_.local);
    // Traffic policies do not apply to senders on this node and to pods of the cluster.
    const bool differs = choice_.local != choice_.cluster && size_of(choice_.cluster) > 0;
    return differs ? fmt::format("{}; from pods and this node: {}", fate, counted(size_of(choice_.cluster))) : fate;
  }

  void add_external(const std::string& host, std::int32_t number, std::string_view kind) {
    std::string from = port_.external_policy_local ? "kept" : "the node's";
    std::string allowed;
    if (kind == "load balancer") {
      for (const api::IpRange& range : port_.source_ranges)
        allowed += (allowed.empty() ? "" : ",") + network::text_of(range);
    }
    add_address(place_text(host, port_, number), kind, external_fate(), policy_name(port_.external_policy_local),
                std::move(from), std::move(allowed));
  }

  void add_address(std::string place, std::string_view kind, std::string goes_to, std::string policy,
                   std::string source, std::string allowed = {}) {
    ++addresses_.total;
    if (addresses_.rows.size() == kRowsMax) return;
    std::vector<Fact> facts{
        {"goes_to", std::move(goes_to)}, {"policy", std::move(policy)}, {"source", std::move(source)}};
    facts.push_back(
        {"affinity", port_.affinity_seconds > 0 ? fmt::format("{} s", port_.affinity_seconds) : std::string("none")});
    if (!allowed.empty()) facts.push_back({"allowed_from", std::move(allowed)});
    addresses_.rows.push_back({std::move(place), std::string(kind), std::move(facts)});
  }

  std::string why_not(const Endpoint& endpoint) const {
    if (endpoint.terminating && !endpoint.serving) return "it is terminating and no longer answers";
    if (endpoint.terminating) return "it is terminating, and others are ready";
    if (!endpoint.ready) return "its pod is not ready";
    const bool asks_all = port_.uses_cluster_endpoints();
    if (!asks_all && !endpoint.local) return fmt::format("it is not on node {} (policy Local)", node_.name);
    return fmt::format("it is meant for other zones than {}", node_.zone.empty() ? "none" : node_.zone);
  }

  std::string use_of(std::size_t index) const {
    const bool everywhere = holds(choice_.cluster, index);
    const bool here = holds(choice_.local, index);
    if (everywhere && !here && size_of(choice_.local) > 0) return "used, but not under policy Local";
    if (here && !everywhere && choice_.cluster) return "used under policy Local";
    return everywhere || here ? "used" : "not used";
  }

  void add_endpoint(std::size_t index) {
    ++all_.total;
    if (all_.rows.size() == kRowsMax) return;
    const Endpoint& endpoint = endpoints_[index];
    const auto yes_no = [](bool value) { return std::string(value ? "yes" : "no"); };
    const std::string use = use_of(index);
    std::vector<Fact> facts{{"port", port_.key.port.empty() ? fmt::format("{}", port_.port) : port_.key.port},
                            {"ready", yes_no(endpoint.ready)},
                            {"serving", yes_no(endpoint.serving)},
                            {"terminating", yes_no(endpoint.terminating)},
                            {"on_node", yes_no(endpoint.local)}};
    if (use == "not used") facts.push_back({"why", why_not(endpoint)});
    all_.rows.push_back({endpoint.text(), use, std::move(facts)});
  }

  const ServicePort& port_;
  std::span<const Endpoint> endpoints_;
  const PathNode& node_;
  const EndpointChoice choice_;
  Part& addresses_;
  Part& all_;
};

}  // namespace

std::vector<Part> service_paths(const api::ProxiedService& service, std::span<const network::SlicePtr> slices,
                                const PathNode& node) {
  if (!network::is_proxied(service.metadata.labels)) return {};
  Part addresses{.name = "addresses", .rows = {}, .total = 0};
  Part all{.name = "endpoints", .rows = {}, .total = 0};
  for (const Family family : kFamilies) {
    const network::MergedEndpoints merged = network::merge_endpoints(slices, family, node.name);
    for (const ServicePort& port : network::service_ports(service, family)) {
      const auto found = merged.ports.find({port.key.port, port.key.protocol});
      const std::span<const Endpoint> endpoints =
          found == merged.ports.end() ? std::span<const Endpoint>() : std::span<const Endpoint>(found->second);
      PortPaths(port, endpoints, node, addresses, all).add();
    }
  }
  std::vector<Part> parts;
  if (addresses.total > 0) parts.push_back(std::move(addresses));
  if (all.total > 0) parts.push_back(std::move(all));
  return parts;
}

}  // namespace spillway::outlook
