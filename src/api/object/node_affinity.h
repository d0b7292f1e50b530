// Node selector terms: which nodes a pod may run on, and which it would rather.
// Thread: any (plain values). Source: Kubernetes docs, "Assigning Pods to Nodes"; spec "Pod admission", 12; vectors
// admission/node_affinity.
#pragma once

#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/selector.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// One term: all expressions (node labels) and all fields (metadata.name) must hold.
struct NodeSelectorTerm {
  std::vector<LabelRequirement> expressions;
  std::vector<LabelRequirement> fields;
  /// The mistakes in the term, with paths; a term with mistakes matches no node.
  std::vector<std::string> errors;

  /// True for a term without requirements, which matches no node.
  bool is_empty() const { return expressions.empty() && fields.empty() && errors.empty(); }

  bool matches(const ObjectMeta& node) const;

  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
};

/// Terms of which one must match. No terms match nothing.
struct NodeSelector {
  std::vector<NodeSelectorTerm> terms;

  /// kInvalid: no term matches and some could not be understood ("nodeSelectorTerms[0].matchExpressions[1].operator:
  /// Unsupported value: …", several as "[a, b]").
  Result<bool> matches(const ObjectMeta& node) const;

  /// The mistakes of all terms, in order.
  std::vector<std::string> errors() const;

  friend bool operator==(const NodeSelector&, const NodeSelector&) = default;
};

/// Parses a v1.NodeSelector document. Terms that cannot be understood carry their errors.
NodeSelector parse_node_selector(const Json& selector);

/// spec.nodeSelector and required node affinity of a pod, taken apart once and matched often.
struct RequiredNodeAffinity {
  StringMap labels;
  std::optional<NodeSelector> selector;

  /// Errors as NodeSelector::matches; admission treats them as "no match".
  Result<bool> matches(const ObjectMeta& node) const;

  friend bool operator==(const RequiredNodeAffinity&, const RequiredNodeAffinity&) = default;
};

RequiredNodeAffinity required_node_affinity(const PodSpec& spec);

struct PreferredNodeTerm {
  NodeSelectorTerm term;
  std::int32_t weight = 0;

  friend bool operator==(const PreferredNodeTerm&, const PreferredNodeTerm&) = default;
};

/// Parses preferredDuringSchedulingIgnoredDuringExecution. Terms of weight 0 and empty ones are skipped unread.
/// kInvalid: a term that cannot be understood.
Result<std::vector<PreferredNodeTerm>> parse_preferred_node_terms(const Json& terms);
/// The sum of the weights of matching terms.
std::int64_t preferred_node_score(const std::vector<PreferredNodeTerm>& terms, const ObjectMeta& node);

}  // namespace spillway::api
