#include "policy/scheduling/inter_pod.h"

#include <algorithm>
#include <utility>

namespace spillway::scheduling {

namespace {

Refusal affinity_refusal(std::string rule, std::string text, bool hopeless) {
  return {Filter::kInterPodAffinity,
          {{policy::Reason{policy::ReasonCode::kPodAffinityMismatch, {{"rule", std::move(rule)}}}, std::move(text)}},
          hopeless};
}

}  // namespace

std::int64_t InterPod::Tally::at(std::size_t node) const {
  const std::uint32_t domain = domains->of[node];
  return domain == Topology::kNone ? 0 : amount[domain];
}

void InterPod::Tally::add(std::size_t node, std::int64_t by) {
  const std::uint32_t domain = domains->of[node];
  if (domain == Topology::kNone) return;
  amount[domain] += by;
  sum += by;
  touched = true;
}

InterPod::Tally& InterPod::tally(Tallies& tallies, const std::string& label) const {
  const auto [found, fresh] = tallies.try_emplace(label);
  if (fresh) {
    found->second.domains = nodes_->domains_of(label);
    found->second.amount.assign(found->second.domains->count, 0);
  }
  return found->second;
}

InterPod::InterPod(const api::Pod& pod, const Surroundings& around, Topology& nodes, const Profile& profile)
    : pod_(pod), around_(around), nodes_(&nodes), terms_(pod_terms_of(pod)) {
  if (const api::StringMap* labels = around.labels_of(pod.metadata.ns)) own_namespace_ = *labels;
  const bool scores = !profile.ignore_preferred_terms_of_existing_pods || terms_.has_wishes();
  const auto inspect = [&](const PodSort& sort) {
    std::vector<Effect> effects = filter_effects(sort.ns, sort.labels, sort.terms);
    if (scores) add_score_effects(sort, profile, effects);
    count(sort, effects);
  };
  // A pod without terms of its own is affected only by pods that have terms.
  terms_.empty() ? around.each_with_terms(inspect) : around.each(inspect);
  std::erase_if(score_, [](const auto& entry) { return !entry.second.touched; });
  std::erase_if(existing_, [](const auto& entry) { return !entry.second.touched; });
  filters_ = !terms_.required.empty() || !terms_.anti_required.empty() || !existing_.empty();
}

std::vector<InterPod::Effect> InterPod::filter_effects(const std::string& ns, const api::StringMap& labels,
                                                       const PodTerms& terms) {
  std::vector<Effect> effects;
  for (const PodTerm& term : terms.anti_required) {
    if (term.matches(pod_.metadata.ns, &own_namespace_, pod_.metadata.labels)) {
      effects.push_back({&existing_, &term.topology_key, 1});
    }
  }
  const api::StringMap* ns_labels = around_.labels_of(ns);
  if (!terms_.required.empty() && match_all(terms_.required, ns, ns_labels, labels)) {
    for (const PodTerm& term : terms_.required) effects.push_back({&near_, &term.topology_key, 1});
  }
  for (const PodTerm& term : terms_.anti_required) {
    if (term.matches(ns, ns_labels, labels)) effects.push_back({&apart_, &term.topology_key, 1});
  }
  return effects;
}

void InterPod::add_score_effects(const PodSort& sort, const Profile& profile, std::vector<Effect>& effects) {
  const api::StringMap* ns_labels = around_.labels_of(sort.ns);
  const auto own = [&](const std::vector<PodTerm>& terms, std::int64_t sign) {
    for (const PodTerm& term : terms) {
      if (!term.matches(sort.ns, ns_labels, sort.labels)) continue;
      effects.push_back({&score_, &term.topology_key, sign * term.weight});
    }
  };
  const auto others = [&](const std::vector<PodTerm>& terms, std::int64_t sign, std::optional<std::int64_t> weight) {
    for (const PodTerm& term : terms) {
      if (!term.matches(pod_.metadata.ns, &own_namespace_, pod_.metadata.labels)) continue;
      effects.push_back({&score_, &term.topology_key, sign * weight.value_or(term.weight)});
    }
  };
  own(terms_.preferred, 1);
  own(terms_.anti_preferred, -1);
  if (profile.hard_pod_affinity_weight > 0) others(sort.terms.required, 1, profile.hard_pod_affinity_weight);
  others(sort.terms.preferred, 1, {});
  others(sort.terms.anti_preferred, -1, {});
}

void InterPod::count(const PodSort& sort, const std::vector<Effect>& effects) {
  for (const Effect& effect : effects) {
    Tally& into = tally(*effect.tallies, *effect.label);
    for (const auto& [slot, pods] : sort.count) {
      if (const auto node = nodes_->number_of(slot)) into.add(*node, pods * effect.weight);
    }
  }
}

void InterPod::count(std::size_t node, const api::Pod& other, std::int64_t pods) {
  if (!filters_) return;  // upstream skips a plug-in without an effect on the pod alone
  const PodTerms terms = pod_terms_of(other);
  for (const Effect& effect : filter_effects(other.metadata.ns, other.metadata.labels, terms)) {
    tally(*effect.tallies, *effect.label).add(node, effect.weight * pods);
  }
}

bool InterPod::is_first_of_its_group() const {
  const bool any = std::ranges::any_of(near_, [](const auto& entry) { return entry.second.sum > 0; });
  return !any &&
         match_all(terms_.required, pod_.metadata.ns, around_.labels_of(pod_.metadata.ns), pod_.metadata.labels);
}

InterPod::Rule InterPod::find_broken(std::size_t node) const {
  if (!filters_) return Rule::kNone;
  const api::StringMap& labels = nodes_->load(node).node->metadata.labels;
  bool all_near = true;
  for (const PodTerm& term : terms_.required) {
    if (!labels.contains(term.topology_key)) return Rule::kNear;
    const auto found = near_.find(term.topology_key);
    all_near = all_near && found != near_.end() && found->second.at(node) > 0;
  }
  if (!all_near && !is_first_of_its_group()) return Rule::kNear;
  const auto is_there = [node](const auto& entry) { return entry.second.at(node) > 0; };
  if (std::ranges::any_of(apart_, is_there)) return Rule::kApart;
  return std::ranges::any_of(existing_, is_there) ? Rule::kApartFromOthers : Rule::kNone;
}

std::optional<Refusal> InterPod::refuse(std::size_t node) const {
  switch (find_broken(node)) {
    case Rule::kNone:
      break;
    case Rule::kNear:
      return affinity_refusal("affinity", "node(s) didn't match pod affinity rules", true);
    case Rule::kApart:
      return affinity_refusal("anti-affinity", "node(s) didn't match pod anti-affinity rules", false);
    case Rule::kApartFromOthers:
      return affinity_refusal("anti-affinity of others", "node(s) didn't satisfy existing pods anti-affinity rules",
                              false);
  }
  return std::nullopt;
}

std::int64_t InterPod::raw_score(std::size_t node) const {
  std::int64_t sum = 0;
  for (const auto& [label, tally] : score_) sum += tally.at(node);
  return sum;
}

}  // namespace spillway::scheduling
