// A pod's affinity and anti-affinity to other pods, parsed once. Thread: any (plain values). Source: Kubernetes docs,
// "Assigning Pods to Nodes", inter-pod affinity; vectors scheduling/interpod_affinity.
#pragma once

#include "api/object/pod.h"
#include "api/object/selector.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace spillway::scheduling {

struct PodTerm {
  std::set<std::string, std::less<>> namespaces;
  api::LabelSelector namespace_selector{{}, true};  // `nothing`: namespaces count by name alone
  api::LabelSelector selector;
  std::string topology_key;
  std::int64_t weight = 0;  // weight of a preferred term

  /// `ns_labels`: of the pod's namespace; nullptr: unknown, the namespace matches by name alone.
  bool matches(const std::string& ns, const api::StringMap* ns_labels, const api::StringMap& labels) const;
};

struct PodTerms {
  std::vector<PodTerm> required;
  std::vector<PodTerm> anti_required;
  std::vector<PodTerm> preferred;
  std::vector<PodTerm> anti_preferred;

  bool empty() const {
    return required.empty() && anti_required.empty() && preferred.empty() && anti_preferred.empty();
  }

  bool has_wishes() const { return !preferred.empty() || !anti_preferred.empty(); }
};

/// A term whose selector cannot be parsed matches no pod.
PodTerms pod_terms_of(const api::Pod& pod);

/// True if every term matches; also without terms.
bool match_all(const std::vector<PodTerm>& terms, const std::string& ns, const api::StringMap* ns_labels,
               const api::StringMap& labels);

}  // namespace spillway::scheduling
