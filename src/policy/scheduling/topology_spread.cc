#include "policy/scheduling/topology_spread.h"

#include "api/object/taint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace spillway::scheduling {

namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::array<std::string_view, 2> kKeepingAway{api::kNoSchedule, api::kNoExecute};

/// The selector, and the values that the pod has for these keys.
api::LabelSelector with_label_keys(api::LabelSelector selector, const api::Json* keys, const api::StringMap& labels) {
  if (keys == nullptr || keys->if_array() == nullptr) return selector;
  api::LabelSelector own;
  for (const api::Json& key : *keys->if_array()) {
    if (key.if_string() == nullptr) continue;
    const auto value = labels.find(*key.if_string());
    if (value != labels.end()) own.add({value->first, api::LabelRequirement::Op::kEquals, {value->second}});
  }
  if (own.requirements.empty()) return selector;
  for (const api::LabelRequirement& requirement : selector.requirements) own.add(requirement);
  return own;
}

std::vector<SpreadConstraint> own_constraints(const api::Pod& pod) {
  std::vector<SpreadConstraint> constraints;
  const api::Json::Array* list = pod.spec.topology_spread.if_array();
  if (list == nullptr) return constraints;
  for (const api::Json& each : *list) {
    SpreadConstraint constraint;
    const auto number = [&each](std::string_view member, std::int64_t otherwise) {
      const api::Json* value = each.find(member);
      return value == nullptr ? otherwise : value->if_int64().value_or(otherwise);
    };
    constraint.max_skew = number("maxSkew", 0);
    constraint.min_domains = number("minDomains", 1);
    constraint.topology_key = each.string_at({"topologyKey"});
    constraint.required = each.string_at({"whenUnsatisfiable"}) == "DoNotSchedule";
    auto selector = api::label_selector_from_json(each.find("labelSelector"));
    constraint.selector = with_label_keys(selector ? *std::move(selector) : api::LabelSelector{{}, true},
                                          each.find("matchLabelKeys"), pod.metadata.labels);
    constraint.honors_affinity = each.string_at({"nodeAffinityPolicy"}) != "Ignore";
    constraint.honors_taints = each.string_at({"nodeTaintsPolicy"}) == "Honor";
    constraints.push_back(std::move(constraint));
  }
  return constraints;
}

std::vector<SpreadConstraint> system_constraints() {
  constexpr std::int64_t kHostSkew = 3;  // upstream's system default
  constexpr std::int64_t kZoneSkew = 5;  // upstream's system default
  SpreadConstraint hosts;
  hosts.max_skew = kHostSkew;
  hosts.topology_key = kHostname;
  SpreadConstraint zones;
  zones.max_skew = kZoneSkew;
  zones.topology_key = "topology.kubernetes.io/zone";
  return {hosts, zones};
}

/// The profile's default constraints, with the selector of the pod's Services and owner. Empty if none selects the pod.
std::vector<SpreadConstraint> default_constraints(const api::Pod& pod, const Surroundings& around,
                                                  const Profile& profile) {
  const std::optional<api::LabelSelector> selector = around.selector_for(pod);
  if (!selector) return {};
  std::vector<SpreadConstraint> constraints = profile.default_constraints.value_or(system_constraints());
  for (SpreadConstraint& constraint : constraints) constraint.selector = *selector;
  return constraints;
}

Refusal spread_refusal(const SpreadConstraint& constraint, std::string text, bool hopeless,
                       std::vector<policy::Fact> facts) {
  facts.insert(facts.begin(), {"topology_key", constraint.topology_key});
  return {Filter::kPodTopologySpread,
          {{policy::Reason{policy::ReasonCode::kTopologySpreadExceeded, std::move(facts)}, std::move(text)}},
          hopeless};
}

}  // namespace

TopologySpread::TopologySpread(const PendingPod& pod, const Surroundings& around, Topology& nodes,
                               const Profile& profile)
    : pod_(pod), around_(around), nodes_(&nodes) {
  std::vector<SpreadConstraint> constraints = own_constraints(*pod.pod);
  if (constraints.empty()) {
    constraints = default_constraints(*pod.pod, around, profile);
    needs_all_labels_ = profile.default_constraints.has_value();
  }
  for (SpreadConstraint& constraint : constraints) {
    Counted counted;
    counted.domains = nodes.domains_of(constraint.topology_key);
    counted.self = constraint.selector.matches(pod.pod->metadata.labels) ? 1 : 0;
    std::vector<Counted>& list = constraint.required ? required_ : wished_;
    counted.constraint = std::move(constraint);
    list.push_back(std::move(counted));
  }
  for (Counted& counted : required_) {
    const std::vector<std::int64_t> on_node = count_pods(counted.constraint.selector);
    counted.pods.assign(counted.domains->count, 0);
    counted.eligible.assign(counted.domains->count, false);
    const bool choosy = is_choosy(counted.constraint);
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (!has_all_labels(required_, node) || (choosy && !counts(counted.constraint, node))) continue;
      counted.pods[counted.domains->of[node]] += on_node[node];
      counted.eligible[counted.domains->of[node]] = true;
    }
    counted.find_least();
  }
}

std::vector<std::int64_t> TopologySpread::count_pods(const api::LabelSelector& selector) const {
  std::vector<std::int64_t> pods(nodes_->size(), 0);
  if (selector.is_everything()) return pods;  // upstream counts no pods then
  around_.each_in(pod_.pod->metadata.ns, [&](const PodSort& sort) {
    if (sort.terminating || !selector.matches(sort.labels)) return;
    for (const auto& [slot, count] : sort.count) {
      if (const auto node = nodes_->number_of(slot)) pods[*node] += count;
    }
  });
  return pods;
}

bool TopologySpread::has_all_labels(const std::vector<Counted>& constraints, std::size_t node) const {
  return std::ranges::none_of(constraints,
                              [node](const Counted& counted) { return counted.domains->of[node] == Topology::kNone; });
}

bool TopologySpread::is_choosy(const SpreadConstraint& constraint) const {
  return constraint.honors_taints || (constraint.honors_affinity && pod_.asks_for_nodes);
}

bool TopologySpread::counts(const SpreadConstraint& constraint, std::size_t node) const {
  const api::Node& object = *nodes_->load(node).node;
  if (constraint.honors_affinity && pod_.asks_for_nodes) {
    const Result<bool> matches = pod_.required.matches(object.metadata);
    if (!matches || !*matches) return false;
  }
  return !constraint.honors_taints ||
         api::find_untolerated(object.spec.taints, pod_.pod->spec.tolerations, kKeepingAway) == nullptr;
}

void TopologySpread::Counted::find_least() {
  least.reset();
  std::int64_t domain_count = 0;
  for (std::size_t domain = 0; domain < pods.size(); ++domain) {
    if (!eligible[domain]) continue;
    ++domain_count;
    least = std::min(least.value_or(pods[domain]), pods[domain]);
  }
  if (domain_count > 0 && domain_count < constraint.min_domains) least = 0;
}

std::int64_t TopologySpread::skew_on(const Counted& counted, std::size_t node) {
  return counted.pods[counted.domains->of[node]] + counted.self - *counted.least;
}

const TopologySpread::Counted* TopologySpread::find_broken(std::size_t node) const {
  for (const Counted& counted : required_) {
    if (counted.domains->of[node] == Topology::kNone) return &counted;
    // Without any domain upstream accepts every node.
    if (counted.least && skew_on(counted, node) > counted.constraint.max_skew) return &counted;
  }
  return nullptr;
}

std::optional<Refusal> TopologySpread::refuse(std::size_t node) const {
  const Counted* broken = find_broken(node);
  if (broken == nullptr) return std::nullopt;
  const SpreadConstraint& constraint = broken->constraint;
  const std::uint32_t domain = broken->domains->of[node];
  if (domain == Topology::kNone) {
    return spread_refusal(constraint, "node(s) didn't match pod topology spread constraints (missing required label)",
                          true, {});
  }
  return spread_refusal(
      constraint, "node(s) didn't match pod topology spread constraints", false,
      {{"skew", skew_on(*broken, node)}, {"max_skew", constraint.max_skew}, {"pods", broken->pods[domain]}});
}

void TopologySpread::count(std::size_t node, const api::Pod& other, std::int64_t pods) {
  if (other.metadata.ns != pod_.pod->metadata.ns || !has_all_labels(required_, node)) return;
  for (Counted& counted : required_) {
    if (!counted.constraint.selector.matches(other.metadata.labels) || !counts(counted.constraint, node)) continue;
    counted.pods[counted.domains->of[node]] += pods;
    counted.eligible[counted.domains->of[node]] = true;
    counted.find_least();
  }
}

std::vector<std::int64_t> TopologySpread::sum_domains(const Counted& wished,
                                                      const std::vector<std::int64_t>& on_node) const {
  std::vector<std::int64_t> in_domain(wished.domains->count, 0);
  const bool choosy = is_choosy(wished.constraint);
  for (std::size_t node = 0; node < on_node.size(); ++node) {
    const std::uint32_t domain = wished.domains->of[node];
    if (on_node[node] == 0 || domain == Topology::kNone) continue;
    if ((needs_all_labels_ && !has_all_labels(wished_, node)) || (choosy && !counts(wished.constraint, node))) continue;
    in_domain[domain] += on_node[node];
  }
  return in_domain;
}

std::vector<std::optional<std::int64_t>> TopologySpread::raw_scores(std::span<const std::size_t> candidates) const {
  std::vector<bool> scored(candidates.size(), true);
  std::size_t scored_count = candidates.size();
  for (std::size_t i = 0; needs_all_labels_ && i < candidates.size(); ++i) {
    scored[i] = has_all_labels(wished_, candidates[i]);
    if (!scored[i]) --scored_count;
  }
  std::vector<double> sums(candidates.size(), 0);
  std::vector<std::int64_t> on_node;
  const api::LabelSelector* counted = nullptr;
  for (const Counted& wished : wished_) {
    const SpreadConstraint& constraint = wished.constraint;
    const bool hosts = constraint.topology_key == kHostname;
    if (counted == nullptr || *counted != constraint.selector) on_node = count_pods(constraint.selector);
    counted = &constraint.selector;
    const std::vector<std::uint32_t>& domain_of = wished.domains->of;
    std::size_t size = scored_count;
    if (!hosts) {
      std::vector<bool> seen(wished.domains->count + 1, false);  // the last: nodes without the label, if not left out
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (scored[i]) seen[std::min(domain_of[candidates[i]], wished.domains->count)] = true;
      }
      size = static_cast<std::size_t>(std::ranges::count(seen, true));
    }
    const double weight = std::log(static_cast<double>(size) + 2);
    const auto others = static_cast<double>(constraint.max_skew - 1);
    const std::vector<std::int64_t> in_domain = hosts ? std::vector<std::int64_t>() : sum_domains(wished, on_node);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::size_t node = candidates[i];
      const std::uint32_t domain = domain_of[node];
      if (domain == Topology::kNone) continue;
      sums[i] += static_cast<double>(hosts ? on_node[node] : in_domain[domain]) * weight + others;
    }
  }
  std::vector<std::optional<std::int64_t>> raw(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (scored[i]) raw[i] = static_cast<std::int64_t>(std::llround(sums[i]));
  }
  return raw;
}

}  // namespace spillway::scheduling
