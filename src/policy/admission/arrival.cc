#include "policy/admission/arrival.h"

#include <algorithm>

namespace spillway::admission {

namespace {

bool has_ended(std::string_view phase) {
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

void sort_arrivals(std::vector<std::shared_ptr<const api::Pod>>& pods) {
  std::ranges::stable_sort(pods, {}, [](const auto& pod) { return pod->metadata.creation_timestamp; });
}

Arrival arrival_of(const api::Pod& pod, const WorkerState& worker) {
  if (api::is_mirror(pod)) return Arrival::kMirror;
  if (worker.termination_requested || api::is_terminal(pod)) return Arrival::kNotStarted;
  return Arrival::kAsked;
}

bool is_active(const api::Pod& pod, std::optional<std::string_view> recorded_phase, const WorkerState& worker) {
  if (worker.terminated) return false;
  const bool ended = api::is_terminal(pod) || has_ended(recorded_phase.value_or(""));
  return !ended || worker.termination_requested;
}

}  // namespace spillway::admission
