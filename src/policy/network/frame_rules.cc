#include "policy/network/frame_rules.h"

#include <utility>

namespace spillway::network {
namespace {

// The priorities that netfilter calls dstnat and srcnat.
constexpr int kTranslateDestination = -100;
constexpr int kTranslateSource = 100;
constexpr int kBeforeTranslation = kTranslateDestination - 10;
constexpr int kAfterTranslation = kTranslateDestination + 10;

Chain at(Hook hook, int priority, std::vector<Rule> rules) {
  return {.place = Place{.hook = hook, .translates = false, .priority = priority}, .rules = std::move(rules)};
}

Chain translating_at(Hook hook, int priority, std::vector<Rule> rules) {
  return {.place = Place{.hook = hook, .translates = true, .priority = priority}, .rules = std::move(rules)};
}

Rule follow(std::vector<Condition> conditions, Target target, std::string_view map) {
  return {std::move(conditions), Follow{target, std::string(map)}};
}

api::IpRange loopback(Family family) {
  return *api::parse_ip_range(family == Family::kIPv4 ? "127.0.0.0/8" : "::1/128");
}

std::vector<Condition> at_node_port_address(const RuleSettings& settings) {
  if (settings.node_port_addresses.matches_all) {
    return {DestinationIsHere{}, DestinationIn{{loopback(settings.family)}, true}};
  }
  return {DestinationInSet{std::string(kNodePortIps)}};
}

/// Look-ups of one sort of target: packets of pods and of this machine have the first word, as the policy of a
/// destination may not apply to them.
std::vector<Rule> lookup_rules(const RuleSettings& settings, Target target, std::string_view from_pods,
                               std::string_view from_node, std::string_view all) {
  std::vector<Rule> rules;
  if (auto pod = from_pod(settings.detector)) rules.push_back(follow({*std::move(pod)}, target, from_pods));
  rules.push_back(follow({SourceIsHere{}}, target, from_node));
  rules.push_back(follow({}, target, all));
  return rules;
}

/// All sizes are added at once: nft 1.0.6 accepts a rule that looks endpoints up only in the transaction that makes the
/// map.
void add_spread_chains(const RuleSettings& settings, std::map<std::string, Chain>& chains) {
  for (const Target target : {Target::kAddress, Target::kNodePort}) {
    const std::string map(target == Target::kAddress ? kEndpoints : kNodePortEndpoints);
    for (const List list : {List::kCluster, List::kLocal}) {
      for (std::size_t size = 1; size <= settings.spread_max; ++size) {
        chains[spread_chain(target, list, size)].rules = {
            {{}, Spread{target, static_cast<std::uint32_t>(size), list == List::kCluster ? 0 : kFirstLocalSlot, map}}};
      }
    }
  }
}

}  // namespace

std::optional<Condition> from_pod(const LocalDetector& detector) {
  using By = LocalDetector::By;
  if (detector.by == By::kNothing) return std::nullopt;
  if (detector.by == By::kSource) return SourceIn{{detector.range}, false};
  return InterfaceIs{detector.interface, detector.by == By::kInterfacePrefix, false};
}

std::optional<Condition> not_from_pod(const LocalDetector& detector) {
  using By = LocalDetector::By;
  if (detector.by == By::kNothing) return std::nullopt;
  if (detector.by == By::kSource) return SourceIn{{detector.range}, true};
  return InterfaceIs{detector.interface, detector.by == By::kInterfacePrefix, true};
}

RulePart frame_rules(const RuleSettings& settings) {
  RulePart part;
  const std::uint32_t mark = settings.masquerade_mark;
  auto& chains = part.chains;
  chains[std::string(kRejectChain)] = {.place = {}, .rules = {{{}, Reject{}}}};

  std::vector<Rule> translate = lookup_rules(settings, Target::kAddress, kFromPods, kFromNode, kServices);
  translate.push_back({at_node_port_address(settings), Goto{"node-port-targets"}});
  chains["targets"] = {.place = {}, .rules = std::move(translate)};
  chains["node-port-targets"] = {
      .place = {},
      .rules = lookup_rules(settings, Target::kNodePort, kNodePortsFromPods, kNodePortsFromNode, kNodePorts)};

  std::vector<Rule> unallocated = {{{DestinationInSet{std::string(kClusterIps)}}, Goto{std::string(kRejectChain)}}};
  if (!settings.service_ranges.empty()) {
    unallocated.push_back({{DestinationIn{settings.service_ranges, false}}, Drop{}});
  }
  chains["cluster-ips-check"] = {.place = {}, .rules = std::move(unallocated)};
  chains["no-endpoints-check"] = {.place = {}, .rules = {follow({}, Target::kAddress, kNoEndpoints)}};
  chains["node-ports-check"] = {.place = {}, .rules = {follow({}, Target::kNodePort, kNodePortsNoEndpoints)}};

  const Rule firewall = follow({IsNew{}}, Target::kAddress, kFirewall);
  const Rule no_endpoints = {{IsNew{}}, Jump{"no-endpoints-check"}};
  const Rule cluster_ips = {{IsNew{}}, Jump{"cluster-ips-check"}};
  std::vector<Condition> new_at_node_port = at_node_port_address(settings);
  new_at_node_port.insert(new_at_node_port.begin(), IsNew{});
  chains["filter-prerouting"] = at(Hook::kPrerouting, kBeforeTranslation, {firewall});
  chains["filter-output"] = at(Hook::kOutput, kBeforeTranslation, {firewall});
  chains["filter-input"] =
      at(Hook::kInput, kBeforeTranslation, {{std::move(new_at_node_port), Jump{"node-ports-check"}}, no_endpoints});
  chains["filter-forward"] = at(Hook::kForward, kBeforeTranslation, {no_endpoints, cluster_ips});
  chains["filter-output-translated"] = at(Hook::kOutput, kAfterTranslation, {no_endpoints, cluster_ips});
  chains["translate-prerouting"] = translating_at(Hook::kPrerouting, kTranslateDestination, {{{}, Jump{"targets"}}});
  chains["translate-output"] = translating_at(Hook::kOutput, kTranslateDestination, {{{}, Jump{"targets"}}});
  chains["translate-postrouting"] = translating_at(Hook::kPostrouting, kTranslateSource,
                                                   {{{TranslatedPairInSet{std::string(kHairpin)}}, Masquerade{}},
                                                    {{MarkIsClear{mark}}, Return{}},
                                                    {{}, FlipMark{mark}},
                                                    {{}, Masquerade{}}});
  add_spread_chains(settings, chains);
  for (const api::IpAddress& ip : settings.node_port_addresses.addresses) {
    if (!settings.node_port_addresses.matches_all && !ip.is_loopback()) {
      part.targets[shared_target(kNodePortIps, text_of(ip))][{kNodePortIps, text_of(ip)}] = {};
    }
  }
  return part;
}

}  // namespace spillway::network
