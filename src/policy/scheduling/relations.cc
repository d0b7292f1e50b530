#include "policy/scheduling/relations.h"

#include <algorithm>

namespace spillway::scheduling {

void Relations::score(std::span<const std::size_t> numbers, std::span<FittingNode> fitting) const {
  if (inter_pod_.scores()) {
    for (std::size_t i = 0; i < fitting.size(); ++i) fitting[i].score.inter_pod = inter_pod_.raw_score(numbers[i]);
  }
  if (!spread_.scores()) return;
  const std::vector<std::optional<std::int64_t>> raw = spread_.raw_scores(numbers);
  for (std::size_t i = 0; i < fitting.size(); ++i) fitting[i].score.spread = raw[i];
}

bool may_let_in(const api::Pod& refused, const api::Pod& other, const Surroundings& around) {
  const api::Json::Array* spread = refused.spec.topology_spread.if_array();
  if (spread != nullptr && !spread->empty() && refused.metadata.ns == other.metadata.ns) return true;
  const PodTerms terms = pod_terms_of(refused);
  return std::ranges::any_of(terms.required, [&](const PodTerm& term) {
    return term.matches(other.metadata.ns, around.labels_of(other.metadata.ns), other.metadata.labels);
  });
}

}  // namespace spillway::scheduling
