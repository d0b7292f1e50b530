#include "policy/scheduling/pod_terms.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::scheduling {

namespace {

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

api::LabelSelector selector_or_nothing(const api::Json* selector) {
  auto parsed = api::label_selector_from_json(selector);
  return parsed ? *std::move(parsed) : api::LabelSelector{{}, true};
}

bool is_there(const api::Json* member) {
  return member != nullptr && !member->is_null();
}

PodTerm term_of(const api::Json& term, const std::string& own_namespace) {
  PodTerm result;
  const api::Json* namespaces = term.find("namespaces");
  if (namespaces != nullptr && namespaces->if_array() != nullptr) {
    for (const api::Json& each : *namespaces->if_array()) {
      if (each.if_string() != nullptr) result.namespaces.insert(*each.if_string());
    }
  }
  const api::Json* selector = term.find("namespaceSelector");
  if (is_there(selector)) result.namespace_selector = selector_or_nothing(selector);
  if (result.namespaces.empty() && !is_there(selector)) result.namespaces.insert(own_namespace);
  result.selector = selector_or_nothing(term.find("labelSelector"));
  result.topology_key = term.string_at({"topologyKey"});
  return result;
}

std::vector<PodTerm> terms_in(const api::Json& affinity, std::string_view kind, std::string_view strength,
                              const std::string& own_namespace) {
  std::vector<PodTerm> terms;
  const api::Json* list = affinity.at({kind, strength});
  if (list == nullptr || list->if_array() == nullptr) return terms;
  for (const api::Json& each : *list->if_array()) {
    if (strength == kRequired) {
      terms.push_back(term_of(each, own_namespace));
      continue;
    }
    const api::Json* term = each.find("podAffinityTerm");
    if (term == nullptr) continue;
    terms.push_back(term_of(*term, own_namespace));
    const api::Json* weight = each.find("weight");
    terms.back().weight = weight == nullptr ? 0 : weight->if_int64().value_or(0);
  }
  return terms;
}

}  // namespace

bool PodTerm::matches(const std::string& ns, const api::StringMap* ns_labels, const api::StringMap& labels) const {
  const bool in_namespace = namespaces.contains(ns) || (ns_labels != nullptr && namespace_selector.matches(*ns_labels));
  return in_namespace && selector.matches(labels);
}

PodTerms pod_terms_of(const api::Pod& pod) {
  const api::Json& affinity = pod.spec.affinity;
  if (!affinity.is_object()) return {};
  const std::string& ns = pod.metadata.ns;
  return {terms_in(affinity, "podAffinity", kRequired, ns), terms_in(affinity, "podAntiAffinity", kRequired, ns),
          terms_in(affinity, "podAffinity", kPreferred, ns), terms_in(affinity, "podAntiAffinity", kPreferred, ns)};
}

bool match_all(const std::vector<PodTerm>& terms, const std::string& ns, const api::StringMap* ns_labels,
               const api::StringMap& labels) {
  return std::ranges::all_of(terms, [&](const PodTerm& term) { return term.matches(ns, ns_labels, labels); });
}

}  // namespace spillway::scheduling
