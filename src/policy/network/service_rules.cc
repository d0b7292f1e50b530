#include "policy/network/service_rules.h"

#include "policy/network/frame_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::network {
namespace {

constexpr std::size_t kNameMax = 180;

std::string_view name_of(List list) {
  return list == List::kCluster ? "cluster" : "local";
}

/// FNV-1a, for names that are too long for nftables.
std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char each : text) {
    hash ^= static_cast<std::uint8_t>(each);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

/// A name that nftables accepts; a long one is cut and gets a digest of the whole.
std::string nft_name(std::string text) {
  const auto is_safe = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') ||
           each == '-' || each == '_' || each == '/' || each == '.';
  };
  std::ranges::replace(text, ':', '.');
  std::ranges::replace_if(text, [&](char each) { return !is_safe(each); }, '_');
  if (text.size() <= kNameMax) return text;
  return fmt::format("{}-{:016x}", text.substr(0, kNameMax), digest(text));
}

/// Builds the rules of one Service port.
class PortRules {
 public:
  PortRules(const RuleSettings& settings, const ServicePort& port, std::span<const Endpoint> endpoints, RulePart& part)
      : settings_(settings),
        port_(port),
        endpoints_(endpoints),
        choice_(choose_endpoints(port, endpoints, settings.zone)),
        part_(part) {}

  void add() {
    share(kClusterIps, text_of(port_.cluster_ip));
    for (const std::size_t index : choice_.reachable) share(kHairpin, pair_key(endpoints_[index].ip));
    add_internal();
    for (const api::IpAddress& ip : port_.external_ips) add_external(address_target(ip));
    for (const api::IpAddress& ip : port_.load_balancer_vips) {
      add_external(address_target(ip));
      add_firewall(ip);
    }
    if (port_.node_port != 0) {
      add_external({Target::kNodePort, node_port_key(port_.key.protocol, port_.node_port)});
    }
  }

 private:
  struct Destination {
    Target target;
    std::string key;
  };

  Destination address_target(const api::IpAddress& ip) const {
    return {Target::kAddress, address_key(ip, port_.key.protocol, port_.port)};
  }

  std::size_t size_of(List list) const {
    const auto& chosen = list == List::kCluster ? choice_.cluster : choice_.local;
    return chosen ? std::min(chosen->size(), kSpreadMax) : 0;
  }

  const Endpoint& endpoint_of(List list, std::size_t slot) const {
    return endpoints_[(list == List::kCluster ? choice_.cluster : choice_.local)->at(slot)];
  }

  std::string port_name() const {
    return fmt::format("{}/{}/{}/{}", port_.key.ns, port_.key.service, port_.key.port, port_.key.protocol);
  }

  void share(std::string_view container, std::string key) {
    Elements& shared = part_.targets[shared_target(container, key)];
    shared[{container, std::move(key)}] = {};
  }

  void put(const Destination& to, std::string_view of_address, std::string_view of_node_port, std::string value) {
    const std::string_view container = to.target == Target::kAddress ? of_address : of_node_port;
    part_.targets[to.key][{container, to.key}] = std::move(value);
  }

  /// The chain that gives a connection one of the endpoints of a list, which is not empty. Its elements are made with
  /// it.
  std::string chain_of(List list, const Destination& to) {
    if (port_.affinity_seconds > 0) return sticky_chain(list);
    const std::size_t first = list == List::kCluster ? 0 : kFirstLocalSlot;
    const std::string_view map = to.target == Target::kAddress ? kEndpoints : kNodePortEndpoints;
    Elements& elements = part_.targets[to.key];
    for (std::size_t slot = 0; slot < size_of(list); ++slot) {
      const Endpoint& endpoint = endpoint_of(list, slot);
      elements[{map, slot_key(to.key, first + slot)}] = fmt::format("{} . {}", text_of(endpoint.ip), endpoint.port);
    }
    return spread_chain(to.target, list, size_of(list));
  }

  /// The chain that sends a client with affinity to its endpoint of the list again.
  std::string sticky_chain(List list) {
    std::string name = nft_name(fmt::format("sticky-{}-{}", name_of(list), port_name()));
    if (part_.chains.contains(name)) return name;
    Chain chain;
    GotoAny any;
    for (std::size_t slot = 0; slot < size_of(list); ++slot) {
      const Endpoint& endpoint = endpoint_of(list, slot);
      const std::string id = fmt::format("{}__{}/{}", port_name(), text_of(endpoint.ip), endpoint.port);
      const std::string to = nft_name("endpoint-" + id);
      // The time is part of the name: a set cannot change it.
      const std::string clients = nft_name(fmt::format("clients-{}-{}", port_.affinity_seconds, id));
      part_.source_sets[clients] = port_.affinity_seconds;
      part_.chains[to].rules = {{{}, RememberSource{clients}}, {{}, Translate{endpoint.ip, endpoint.port}}};
      chain.rules.push_back({{SourceInSet{clients}}, Goto{to}});
      any.chains.push_back(to);
    }
    chain.rules.push_back({{}, std::move(any)});
    part_.chains[name] = std::move(chain);
    return name;
  }

  /// Name of a chain that masquerades the source, then continues in `chain`.
  std::string marked(const std::string& chain) {
    std::string name = nft_name("marked-" + chain);
    part_.chains[name].rules = {{{}, SetMark{settings_.masquerade_mark}}, {{}, Goto{chain}}};
    return name;
  }

  /// Name of a chain that masquerades the source unless it is a pod, then continues in `chain`.
  std::string marked_unless_pod(const std::string& chain) {
    auto not_pod = not_from_pod(settings_.detector);
    if (!not_pod) return chain;
    std::string name = nft_name("internal-" + chain);
    part_.chains[name].rules = {{{*std::move(not_pod)}, SetMark{settings_.masquerade_mark}}, {{}, Goto{chain}}};
    return name;
  }

  void add_internal() {
    const Destination to = address_target(port_.cluster_ip);
    const List list = port_.internal_policy_local ? List::kLocal : List::kCluster;
    if (size_of(list) == 0) {
      put(to, kNoEndpoints, kNodePortsNoEndpoints, choice_.any ? "drop" : fmt::format("goto {}", kRejectChain));
      return;
    }
    const std::string chain = chain_of(list, to);
    put(to, kServices, kNodePorts, "goto " + (settings_.masquerade_all ? marked(chain) : marked_unless_pod(chain)));
  }

  void add_external(const Destination& to) {
    const std::size_t everywhere = size_of(List::kCluster);
    const bool local = port_.external_policy_local;
    if (!choice_.any || (local && size_of(List::kLocal) == 0)) {
      put(to, kNoEndpoints, kNodePortsNoEndpoints, choice_.any ? "drop" : fmt::format("goto {}", kRejectChain));
    }
    if (everywhere > 0 && !local) {
      put(to, kServices, kNodePorts, "goto " + marked(chain_of(List::kCluster, to)));
    }
    if (!local) return;
    if (everywhere > 0) {
      const std::string chain = chain_of(List::kCluster, to);
      if (settings_.detector.exists()) put(to, kFromPods, kNodePortsFromPods, "goto " + chain);
      put(to, kFromNode, kNodePortsFromNode, "goto " + marked(chain));
    }
    if (size_of(List::kLocal) > 0) {
      put(to, kServices, kNodePorts, "goto " + chain_of(List::kLocal, to));
    }
  }

  void add_firewall(const api::IpAddress& vip) {
    if (port_.source_ranges.empty()) return;
    std::vector<api::IpRange> allowed = port_.source_ranges;
    // The node reaches an address of a load balancer that is its own from that address.
    if (settings_.node_ip && any_contains(port_.source_ranges, *settings_.node_ip)) {
      for (const api::IpAddress& own : port_.load_balancer_vips) allowed.push_back({own, own.v4 ? 32 : 128});
    }
    const std::string name = nft_name("firewall-" + port_name());
    part_.chains[name].rules = {{{SourceIn{std::move(allowed), true}}, Drop{}}};
    put(address_target(vip), kFirewall, kFirewall, "goto " + name);
  }

  const RuleSettings& settings_;
  const ServicePort& port_;
  std::span<const Endpoint> endpoints_;
  EndpointChoice choice_;
  RulePart& part_;
};

}  // namespace

void add_port_rules(const RuleSettings& settings, const ServicePort& port, std::span<const Endpoint> endpoints,
                    RulePart& part) {
  PortRules(settings, port, endpoints, part).add();
}

RulePart service_rules(const RuleSettings& settings, std::span<const ServicePort> ports,
                       const MergedEndpoints& endpoints) {
  RulePart part;
  for (const ServicePort& port : ports) {
    const auto found = endpoints.ports.find({port.key.port, port.key.protocol});
    const std::span<const Endpoint> of_port =
        found != endpoints.ports.end() ? std::span<const Endpoint>(found->second) : std::span<const Endpoint>();
    add_port_rules(settings, port, of_port, part);
  }
  return part;
}

}  // namespace spillway::network
