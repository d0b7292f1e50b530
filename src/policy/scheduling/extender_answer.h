// Answers of extenders, and the limits within which they are accepted: an extender chooses among the nodes and the pods
// that it was given, scores within the range, and gives short reasons. Any other answer is an error. Members are found
// whatever their case, as decoders in Go do. A node that an extender neither allows nor explains counts as left out.
// Thread: any (pure). Errors: kInvalid, one line without the extender's name. Bounds: kSaidMax bytes of each reason,
// kSayingsMax different ones. Source: k8s.io/kube-scheduler extender v1 types.
#pragma once

#include "base/error.h"
#include "policy/scheduling/extender.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

inline constexpr std::size_t kSaidMax = 256;
inline constexpr std::size_t kSayingsMax = 16;
inline constexpr std::int64_t kExtenderScoreMax = 10;

/// An extender's refusal of a node.
struct ExtenderNo {
  std::string said;        // its message in one line; may be empty
  bool resolvable = true;  // preemption of pods on the node might help

  friend bool operator==(const ExtenderNo&, const ExtenderNo&) = default;
};

struct FilterAnswer {
  std::vector<std::string> allowed;           // in the order of the request
  std::map<std::string, ExtenderNo> refused;  // all other nodes of the request, with the reason
};

/// `asked`: names of nodes, sorted.
Result<FilterAnswer> read_filter_answer(const Extender& extender, std::span<const std::string> asked,
                                        std::string_view body);

/// Points to be added to totals: score times weight times 10, of those nodes that it scores. Nodes that were not asked
/// about are passed over. `asked` sorted.
Result<std::map<std::string, std::int64_t>> read_scores(const Extender& extender, std::span<const std::string> asked,
                                                        std::string_view body);

/// Victims per node, chosen among its pods; the order of `asked`. Budget violations are counted by `view`, not taken
/// from the answer.
Result<std::vector<PreemptionCandidate>> read_preemption_answer(const Extender& extender, const api::Pod& pod,
                                                                std::span<const PreemptionCandidate> asked,
                                                                const PreemptionView& view, std::string_view body);

/// Ok: the extender has bound the pod.
Outcome read_binding_answer(std::string_view body);

/// The reason in the pod's status for the nodes that this extender refused, beside the reasons of the scheduler's own
/// filters: "devices are taken (extender http://…)".
Misfit misfit_of(const Extender& extender, const ExtenderNo& no);

}  // namespace spillway::scheduling
