#include "api/object/pod_requests.h"

#include <algorithm>

namespace spillway::api {
namespace {

void add(ResourceList& sums, const ResourceList& more) {
  for (const auto& [name, amount] : more) {
    const auto [sum, inserted] = sums.try_emplace(name, amount);
    if (!inserted) sum->second += amount;
  }
}

void raise(ResourceList& maxima, const ResourceList& candidates) {
  for (const auto& [name, amount] : candidates) {
    const auto [maximum, inserted] = maxima.try_emplace(name, amount);
    if (!inserted && amount > maximum->second) maximum->second = amount;
  }
}

enum class Part { kRequests, kLimits };

const ResourceList& part_of(const ResourceRequirements& resources, Part part) {
  return part == Part::kRequests ? resources.requests : resources.limits;
}

class Walk {
 public:
  Walk(const PodSpec& spec, const PodStatus* status, Part part, const RequestOptions& options)
      : spec_(spec), status_(status), part_(part), options_(options) {}

  ResourceList run() const {
    ResourceList main;
    for (const Container& container : spec_.containers) add(main, app_amounts(container));
    ResourceList sidecars;
    ResourceList init;
    for (const Container& container : spec_.init_containers) {
      ResourceList stands = with_missing(part_of(container.resources, part_));
      if (is_sidecar(container)) {
        add(main, stands);
        add(sidecars, stands);
        stands = sidecars;
      } else {
        add(stands, sidecars);
      }
      raise(init, stands);
    }
    raise(main, init);
    if (options_.features.pod_level_resources && spec_.resources) replace_with_pod_level(main);
    if (options_.overhead == Overhead::kCounted) add_overhead(main);
    return main;
  }

 private:
  /// The amounts of an app container: those of its spec, and of its status where in-place resizing makes that count.
  ResourceList app_amounts(const Container& container) const {
    ResourceList amounts = part_of(container.resources, part_);
    if (options_.features.in_place_pod_vertical_scaling && status_ != nullptr) {
      const auto status = std::find_if(status_->container_statuses.begin(), status_->container_statuses.end(),
                                       [&](const ContainerStatus& s) { return s.name == container.name; });
      if (status != status_->container_statuses.end() && status->resources) {
        if (status_->resize == "Infeasible") {
          amounts = part_of(*status->resources, part_);
        } else {
          raise(amounts, part_of(*status->resources, part_));
        }
      }
    }
    return with_missing(std::move(amounts));
  }

  ResourceList with_missing(ResourceList amounts) const {
    if (options_.missing_cpu) amounts.try_emplace("cpu", *options_.missing_cpu);
    if (options_.missing_memory) amounts.try_emplace("memory", *options_.missing_memory);
    return amounts;
  }

  void replace_with_pod_level(ResourceList& sums) const {
    for (const auto& [name, amount] : part_of(*spec_.resources, part_)) {
      if (name == "cpu" || name == "memory") sums[name] = amount;
    }
  }

  void add_overhead(ResourceList& sums) const {
    if (part_ == Part::kRequests) {
      add(sums, spec_.overhead);
      return;
    }
    for (const auto& [name, amount] : spec_.overhead) {
      const auto limit = sums.find(name);
      if (limit != sums.end() && !limit->second.is_zero()) limit->second += amount;
    }
  }

  const PodSpec& spec_;
  const PodStatus* status_;
  Part part_;
  const RequestOptions& options_;
};

/// Restricts the stand-in requests of a pod with requests for the whole pod: they count only for resources that neither
/// the pod nor any container names.
void restrict_stand_ins(const Pod& pod, RequestOptions& options) {
  if (!options.features.pod_level_resources || !pod.spec.resources) return;
  const ResourceList& whole = pod.spec.resources->requests;
  if (!whole.contains("cpu") && !whole.contains("memory")) return;
  RequestOptions plain = options;
  plain.missing_cpu.reset();
  plain.missing_memory.reset();
  const ResourceList asked = Walk(pod.spec, &pod.status, Part::kRequests, plain).run();
  if (asked.contains("cpu")) options.missing_cpu.reset();
  if (asked.contains("memory")) options.missing_memory.reset();
}

}  // namespace

ResourceList effective_requests(const PodSpec& spec) {
  return Walk(spec, nullptr, Part::kRequests, RequestOptions()).run();
}

ResourceList effective_requests(const Pod& pod, const RequestOptions& options) {
  RequestOptions effective = options;
  if (options.missing_cpu || options.missing_memory) restrict_stand_ins(pod, effective);
  return Walk(pod.spec, &pod.status, Part::kRequests, effective).run();
}

ResourceList effective_limits(const Pod& pod, const RequestOptions& options) {
  RequestOptions effective = options;
  effective.missing_cpu.reset();
  effective.missing_memory.reset();
  return Walk(pod.spec, &pod.status, Part::kLimits, effective).run();
}

Quantity agent_request(const PodSpec& spec, std::string_view resource) {
  if (resource == "pods") return Quantity::of_units(1);
  Quantity total;
  for (const Container& container : spec.containers) {
    const auto amount = container.resources.requests.find(resource);
    if (amount != container.resources.requests.end()) total += amount->second;
  }
  for (const Container& container : spec.init_containers) {
    const auto amount = container.resources.requests.find(resource);
    if (amount != container.resources.requests.end()) total = std::max(total, amount->second);
  }
  if (const auto overhead = spec.overhead.find(resource); overhead != spec.overhead.end() && !total.is_zero()) {
    total += overhead->second;
  }
  return total;
}

}  // namespace spillway::api
