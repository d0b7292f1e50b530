#include "policy/workloads/daemon_update.h"

#include "policy/workloads/revision_history.h"
#include "policy/workloads/rollout_bounds.h"

#include <algorithm>
#include <cstddef>

namespace spillway::workloads {
namespace {

std::string generation_in(const api::StringMap& map, std::string_view key) {
  const auto found = map.find(std::string(key));
  return found == map.end() ? "1" : found->second;
}

/// A number, or a share of `desired` that is rounded up; 0: nothing that can be read.
std::int64_t amount_of(const api::Json& written, std::int64_t desired) {
  const auto amount = scaled_value(written, desired, Round::kUp);
  return amount ? std::max<std::int64_t>(*amount, 0) : 0;
}

/// The first of `candidates`, as many as `room` allows, at the end of `chosen`.
template <typename T>
void take_some(std::vector<T>& chosen, const std::vector<T>& candidates, std::int64_t room) {
  const std::size_t taken = std::min(candidates.size(), static_cast<std::size_t>(std::max<std::int64_t>(room, 0)));
  chosen.insert(chosen.end(), candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(taken));
}

DaemonStep step_in_place(const std::vector<DaemonPlace>& places, std::int64_t unavailable_max) {
  DaemonStep step;
  std::vector<PodPtr> candidates;
  std::int64_t unavailable = 0;
  for (const DaemonPlace& place : places) {
    const bool one = !place.crowded && (place.updated.pod == nullptr) != (place.outdated.pod == nullptr);
    if (!one || (place.updated.pod && !place.updated.available)) {
      ++unavailable;
    } else if (place.outdated.pod) {
      (place.outdated.available ? candidates : step.remove).push_back(place.outdated.pod);
    }
  }
  take_some(step.remove, candidates, unavailable_max - unavailable);
  return step;
}

DaemonStep step_with_surge(const std::vector<DaemonPlace>& places, std::int64_t surge_max, std::int64_t desired) {
  DaemonStep step;
  std::vector<std::string> candidates;
  std::vector<PodPtr> unwanted;
  std::int64_t surging = 0;
  std::int64_t available = 0;
  for (const DaemonPlace& place : places) {
    available += place.updated.available || place.outdated.available ? 1 : 0;
    const DaemonPod& old = place.outdated;
    if (place.crowded || (old.pod && place.updated.pod && !place.updated.available)) {
      ++surging;
    } else if (!old.pod) {
      continue;
    } else if (place.updated.pod) {
      step.remove.push_back(old.pod);
    } else if (!place.wanted) {
      (old.available ? unwanted : step.remove).push_back(old.pod);
    } else if (place.held) {
      ++surging;  // its pod keeps failing: the next node does not start a surge meanwhile
    } else if (old.available) {
      candidates.push_back(place.node);
    } else {
      step.create.push_back(place.node);
    }
  }
  take_some(step.create, candidates, surge_max - surging);
  take_some(step.remove, unwanted, available - desired);
  return step;
}

}  // namespace

bool is_updated(const api::DaemonSet& set, const api::Pod& pod, std::string_view hash) {
  if (!hash.empty() && revision_hash(pod.metadata) == hash) return true;
  return generation_in(set.metadata.annotations, kTemplateGenerationAnnotation) ==
         generation_in(pod.metadata.labels, kTemplateGenerationLabel);
}

DaemonBounds daemon_bounds(const api::DaemonSet& set, std::int64_t desired) {
  // A set without bounds is one of a client that relies on the defaults.
  const bool none_given = set.max_surge.is_null() && set.max_unavailable.is_null();
  DaemonBounds bounds{.surge = amount_of(set.max_surge, desired),
                      .unavailable = none_given ? 1 : amount_of(set.max_unavailable, desired)};
  if (desired > 0 && bounds.surge == 0 && bounds.unavailable == 0) bounds.unavailable = 1;
  return bounds;
}

DaemonStep next_daemon_step(const std::vector<DaemonPlace>& places, const DaemonBounds& bounds, std::int64_t desired) {
  return bounds.surge > 0 ? step_with_surge(places, bounds.surge, desired) : step_in_place(places, bounds.unavailable);
}

}  // namespace spillway::workloads
