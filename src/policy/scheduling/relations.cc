#include "policy/scheduling/relations.h"

namespace spillway::scheduling {

std::vector<std::optional<std::int64_t>> Relations::spread_scores(std::span<const std::size_t> numbers) const {
  return spread_.scores() ? spread_.raw_scores(numbers) : std::vector<std::optional<std::int64_t>>();
}

std::vector<std::optional<std::int64_t>> Relations::inter_pod_scores(std::span<const std::size_t> numbers) const {
  std::vector<std::optional<std::int64_t>> scores;
  if (!inter_pod_.scores()) return scores;
  scores.reserve(numbers.size());
  for (const std::size_t node : numbers) scores.emplace_back(inter_pod_.raw_score(node));
  return scores;
}

void Relations::score(std::span<const std::size_t> numbers, std::span<FittingNode> fitting) const {
  const auto spread = spread_scores(numbers);
  const auto inter_pod = inter_pod_scores(numbers);
  for (std::size_t i = 0; i < spread.size(); ++i) fitting[i].score.spread = spread[i];
  for (std::size_t i = 0; i < inter_pod.size(); ++i) fitting[i].score.inter_pod = inter_pod[i];
}

}  // namespace spillway::scheduling
