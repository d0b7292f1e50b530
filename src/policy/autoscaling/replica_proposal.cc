#include "policy/autoscaling/replica_proposal.h"

#include "api/object/pod_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace spillway::autoscaling {

namespace {

__extension__ using Sum = __int128;

constexpr std::string_view kNoPods = "no pods returned by selector while calculating replica count";
constexpr std::string_view kNoReadings = "did not receive metrics for targeted pods (pods might be unready)";
constexpr std::int64_t kWholeRequest = 100;  // percent

std::int64_t fitted(Sum sum) {
  return static_cast<std::int64_t>(
      std::clamp<Sum>(sum, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
}

std::int32_t whole_replicas(double count) {
  return static_cast<std::int32_t>(
      std::clamp(std::ceil(count), 0.0, static_cast<double>(std::numeric_limits<std::int32_t>::max())));
}

/// The pods of a target, grouped by how they count in the proposal.
struct Grouped {
  std::size_t ready = 0;
  std::set<std::string, std::less<>> unready;
  std::set<std::string, std::less<>> missing;
  std::set<std::string, std::less<>> ignored;
};

bool warms_up(const api::Pod& pod, const Sample& sample, const TargetView& view) {
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  if (ready == nullptr || !pod.status.start_time) return true;
  const WallTime since = ready->last_transition_time.value_or(WallTime{});
  const bool not_ready = ready->status == "False";
  if (*pod.status.start_time + view.start_periods.cpu_initialization > view.now) {
    return not_ready || sample.time < since + sample.window;
  }
  return not_ready && *pod.status.start_time + view.start_periods.initial_readiness > since;
}

Grouped group_pods(const TargetView& view, std::string_view resource, const Samples& samples) {
  Grouped groups;
  for (const PodPtr& pod : view.pods) {
    const std::string& name = pod->metadata.name;
    const auto sample = samples.find(name);
    if (pod->metadata.deletion_timestamp || pod->status.phase == "Failed") {
      groups.ignored.insert(name);
    } else if (pod->status.phase == "Pending") {
      groups.unready.insert(name);
    } else if (sample == samples.end()) {
      groups.missing.insert(name);
    } else if (resource == "cpu" && warms_up(*pod, sample->second, view)) {
      groups.unready.insert(name);
    } else {
      ++groups.ready;
    }
  }
  return groups;
}

using Requests = std::map<std::string, std::int64_t, std::less<>>;

/// The request of a pod with requests for the pod as a whole.
Result<std::int64_t> whole_pod_request(const api::Pod& pod, const std::string& resource) {
  const api::ResourceList requests = api::effective_requests(pod.spec);
  const auto found = requests.find(resource);
  if (found != requests.end()) return found->second.milli_value();
  return make_error(ErrorCode::kInvalid, "missing pod-level request for {} in Pod {}/{}", resource, pod.metadata.ns,
                    pod.metadata.name);
}

Result<Requests> requests_of(const std::vector<PodPtr>& pods, std::string_view resource, std::string_view container) {
  Requests requests;
  for (const PodPtr& pod : pods) {
    if (container.empty() && pod->spec.resources && !pod->spec.resources->requests.empty()) {
      SPILLWAY_TRY(whole, whole_pod_request(*pod, std::string(resource)));
      requests[pod->metadata.name] = whole;
      continue;
    }
    std::vector<const api::Container*> counted;
    for (const api::Container& each : pod->spec.containers) counted.push_back(&each);
    for (const api::Container& each : pod->spec.init_containers) {
      if (api::is_sidecar(each)) counted.push_back(&each);
    }
    Sum sum = 0;
    for (const api::Container* each : counted) {
      if (!container.empty() && container != each->name) continue;
      const auto request = each->resources.requests.find(resource);
      if (request == each->resources.requests.end()) {
        return make_error(ErrorCode::kInvalid, "missing request for {} in container {} of Pod {}", resource, each->name,
                          pod->metadata.name);
      }
      sum += request->second.milli_value();
    }
    requests[pod->metadata.name] = fitted(sum);
  }
  return requests;
}

/// The used share of the target, and the measured value behind it.
struct Measured {
  double ratio = 0;
  std::int64_t average_milli = 0;
  std::optional<std::int32_t> utilization;
};

Result<Measured> measure_utilization(const Samples& samples, const Requests& requests, std::int32_t percent) {
  Sum used = 0;
  Sum requested = 0;
  std::int64_t pods = 0;
  for (const auto& [name, sample] : samples) {
    const auto request = requests.find(name);
    if (request == requests.end()) continue;
    used += sample.milli;
    requested += request->second;
    ++pods;
  }
  if (requested == 0) return make_error(ErrorCode::kInvalid, "no metrics returned matched known pods");
  const auto utilization = static_cast<std::int32_t>(
      std::clamp<Sum>(used * kWholeRequest / requested, 0, std::numeric_limits<std::int32_t>::max()));
  return Measured{static_cast<double>(utilization) / percent, fitted(used / pods), utilization};
}

Measured measure_average(const Samples& samples, std::int64_t target_milli) {
  Sum used = 0;
  for (const auto& [name, sample] : samples) used += sample.milli;
  const std::int64_t average = fitted(used / static_cast<Sum>(samples.size()));
  return {static_cast<double>(average) / static_cast<double>(target_milli), average, {}};
}

bool is_near(double ratio, Tolerance tolerance) {
  return ratio < 1.0 ? 1.0 - ratio <= tolerance.down : ratio - 1.0 <= tolerance.up;
}

/// The two functions in which utilization and average value differ.
struct Ways {
  std::function<Result<Measured>(const Samples&)> measure;
  /// The assumed usage of a pod without a reading, while the other pods use less than their target.
  std::function<std::int64_t(const std::string& pod)> assumed_below;
};

Result<Proposal> propose(const TargetView& view, const Grouped& groups, Samples samples, const Ways& ways) {
  const auto first = ways.measure(samples);
  if (!first) return first.error();
  const auto proposal = [&](std::int32_t replicas) {
    return Proposal{replicas, first->average_milli, first->utilization};
  };
  const bool grows_beside_unready = !groups.unready.empty() && first->ratio > 1.0;
  if (!grows_beside_unready && groups.missing.empty()) {
    if (is_near(first->ratio, view.tolerance)) return proposal(view.replicas);
    return proposal(whole_replicas(first->ratio * static_cast<double>(groups.ready)));
  }
  for (const std::string& name : groups.missing) {
    if (first->ratio < 1.0) samples[name] = {.milli = ways.assumed_below(name)};
    if (first->ratio > 1.0) samples[name] = {.milli = 0};
  }
  if (grows_beside_unready) {
    for (const std::string& name : groups.unready) samples[name] = {};
  }
  const auto second = ways.measure(samples);
  if (!second) return second.error();
  const bool turned = (first->ratio < 1.0 && second->ratio > 1.0) || (first->ratio > 1.0 && second->ratio < 1.0);
  if (is_near(second->ratio, view.tolerance) || turned) return proposal(view.replicas);
  const std::int32_t replicas = whole_replicas(second->ratio * static_cast<double>(samples.size()));
  const bool against = second->ratio < 1.0 ? replicas > view.replicas : replicas < view.replicas;
  return proposal(against ? view.replicas : replicas);
}

/// Removes samples that do not count. kInvalid: none is left.
Outcome keep_counted(Samples& samples, const Grouped& groups) {
  std::erase_if(samples, [&](const auto& sample) {
    return groups.ignored.contains(sample.first) || groups.unready.contains(sample.first);
  });
  if (samples.empty()) return make_error(ErrorCode::kInvalid, "{}", kNoReadings);
  return {};
}

}  // namespace

Result<Proposal> propose_by_utilization(const TargetView& view, std::string_view resource, std::string_view container,
                                        Samples samples, std::int32_t percent) {
  if (view.pods.empty()) return make_error(ErrorCode::kInvalid, "{}", kNoPods);
  const Grouped groups = group_pods(view, resource, samples);
  SPILLWAY_TRY_VOID(keep_counted(samples, groups));
  SPILLWAY_TRY(requests, requests_of(view.pods, resource, container));
  const std::int64_t assumed_percent = std::max<std::int64_t>(kWholeRequest, percent);
  return propose(view, groups, std::move(samples),
                 {[&](const Samples& each) { return measure_utilization(each, requests, percent); },
                  [&](const std::string& name) {
                    return fitted(Sum{requests.find(name)->second} * assumed_percent / kWholeRequest);
                  }});
}

Result<Proposal> propose_by_average(const TargetView& view, std::string_view resource, Samples samples,
                                    std::int64_t target_milli) {
  if (view.pods.empty()) return make_error(ErrorCode::kInvalid, "{}", kNoPods);
  const Grouped groups = group_pods(view, resource, samples);
  SPILLWAY_TRY_VOID(keep_counted(samples, groups));
  return propose(view, groups, std::move(samples),
                 {[&](const Samples& each) { return Result<Measured>(measure_average(each, target_milli)); },
                  [&](const std::string&) { return target_milli; }});
}

Result<Proposal> propose_by_value(const TargetView& view, std::int64_t usage_milli, std::int64_t target_milli) {
  const double ratio = static_cast<double>(usage_milli) / static_cast<double>(target_milli);
  if (view.replicas == 0) return Proposal{whole_replicas(ratio), usage_milli};
  if (is_near(ratio, view.tolerance)) return Proposal{view.replicas, usage_milli};
  if (view.pods.empty()) return make_error(ErrorCode::kInvalid, "unable to calculate ready pods: {}", kNoPods);
  const auto ready = std::ranges::count_if(view.pods, [](const PodPtr& pod) {
    const api::PodCondition* condition = api::find_condition(pod->status.conditions, "Ready");
    return pod->status.phase == "Running" && condition != nullptr && condition->status == "True";
  });
  return Proposal{whole_replicas(ratio * static_cast<double>(ready)), usage_milli};
}

Proposal propose_by_share(Tolerance tolerance, std::int32_t present, std::int64_t usage_milli,
                          std::int64_t target_milli) {
  const double shares = static_cast<double>(usage_milli) / static_cast<double>(target_milli);
  if (present == 0) return {whole_replicas(shares), usage_milli};
  const auto average = static_cast<std::int64_t>(std::ceil(static_cast<double>(usage_milli) / present));
  return {is_near(shares / present, tolerance) ? present : whole_replicas(shares), average};
}

}  // namespace spillway::autoscaling
