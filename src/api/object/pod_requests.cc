#include "api/object/pod_requests.h"

#include "api/text/resource_names.h"

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
    static const std::vector<ContainerStatus> kNone;
    const auto& statuses = status_ == nullptr ? kNone : status_->container_statuses;
    const auto& init_statuses = status_ == nullptr ? kNone : status_->init_container_statuses;
    for (const Container& container : spec_.containers) add(main, amounts_of(container, statuses));
    ResourceList sidecars;
    ResourceList init;
    for (const Container& container : spec_.init_containers) {
      ResourceList amounts;
      if (is_sidecar(container)) {
        amounts = amounts_of(container, init_statuses);
        add(main, amounts);
        add(sidecars, amounts);
        amounts = sidecars;
      } else {
        amounts = with_missing(part_of(container.resources, part_));
        add(amounts, sidecars);
      }
      raise(init, amounts);
    }
    raise(main, init);
    if (options_.features.pod_level_resources && spec_.resources) replace_with_pod_level(main);
    if (options_.overhead == Overhead::kCounted) add_overhead(main);
    return main;
  }

 private:
  /// The amounts of a container or sidecar: those of its spec, and of its status where in-place resizing makes that
  /// count.
  ResourceList amounts_of(const Container& container, const std::vector<ContainerStatus>& statuses) const {
    ResourceList amounts = part_of(container.resources, part_);
    if (!counts_status()) return with_missing(std::move(amounts));
    const auto status = std::ranges::find(statuses, container.name, &ContainerStatus::name);
    if (status != statuses.end() && status->resources) {
      if (is_resize_infeasible(*status_)) amounts.clear();
      raise(amounts, part_of(*status->resources, part_));
      if (part_ == Part::kRequests) raise(amounts, status->allocated_resources);
    }
    return with_missing(std::move(amounts));
  }

  bool counts_status() const { return options_.features.in_place_pod_vertical_scaling && status_ != nullptr; }

  ResourceList with_missing(ResourceList amounts) const {
    if (options_.missing_cpu) amounts.try_emplace("cpu", *options_.missing_cpu);
    if (options_.missing_memory) amounts.try_emplace("memory", *options_.missing_memory);
    return amounts;
  }

  /// True if the amounts of the pod's status count instead of the specification's: for limits only if the status has
  /// any, for requests as soon as it has `resources`.
  bool counts_pod_status() const {
    if (!counts_status() || !status_->resources) return false;
    return part_ == Part::kRequests || !status_->resources->limits.empty();
  }

  void replace_with_pod_level(ResourceList& sums) const {
    for (const auto& [name, amount] : part_of(*spec_.resources, part_)) {
      if (is_pod_level_resource(name)) sums[name] = pod_level_amount(name, amount);
    }
  }

  Quantity pod_level_amount(const std::string& name, const Quantity& stated) const {
    if (!counts_pod_status()) return stated;
    Quantity most = is_resize_infeasible(*status_) ? Quantity() : stated;
    const auto raise_to = [&](const ResourceList& list) {
      const auto found = list.find(name);
      if (found != list.end() && found->second > most) most = found->second;
    };
    raise_to(part_of(*status_->resources, part_));
    if (part_ == Part::kRequests) raise_to(status_->allocated_resources);
    return most;
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
  if (!std::ranges::any_of(pod.spec.resources->requests,
                           [](const auto& each) { return is_pod_level_resource(each.first); })) {
    return;
  }
  RequestOptions plain = options;
  plain.missing_cpu.reset();
  plain.missing_memory.reset();
  const ResourceList asked = Walk(pod.spec, &pod.status, Part::kRequests, plain).run();
  if (asked.contains("cpu")) options.missing_cpu.reset();
  if (asked.contains("memory")) options.missing_memory.reset();
}

RequestOptions containers_alone() {
  RequestOptions options;
  options.features = {.pod_level_resources = false, .in_place_pod_vertical_scaling = false};
  options.overhead = Overhead::kLeftOut;
  return options;
}

const Quantity* named(const ResourceList& list, std::string_view resource) {
  const auto found = list.find(resource);
  return found == list.end() || !is_pod_level_resource(resource) ? nullptr : &found->second;
}

}  // namespace

bool is_pod_level_resource(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || is_hugepage_resource(resource);
}

bool has_pod_level(const PodSpec& spec) {
  const auto names_one = [](const ResourceList& list) {
    return std::ranges::any_of(list, [](const auto& each) { return is_pod_level_resource(each.first); });
  };
  return spec.resources && (names_one(spec.resources->requests) || names_one(spec.resources->limits));
}

const Quantity* pod_level_request(const PodSpec& spec, std::string_view resource) {
  return spec.resources ? named(spec.resources->requests, resource) : nullptr;
}

const Quantity* pod_level_limit(const PodSpec& spec, std::string_view resource) {
  return spec.resources ? named(spec.resources->limits, resource) : nullptr;
}

const Quantity* limit_in_force(const PodSpec& spec, const Container& container, std::string_view resource) {
  const auto own = container.resources.limits.find(resource);
  if (own != container.resources.limits.end() && !own->second.is_zero()) return &own->second;
  return pod_level_limit(spec, resource);
}

bool is_resize_infeasible(const PodStatus& status) {
  constexpr std::string_view kInfeasible = "Infeasible";
  if (status.resize == kInfeasible) return true;
  const PodCondition* pending = find_condition(status.conditions, "PodResizePending");
  return pending != nullptr && pending->reason == kInfeasible;
}

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

ResourceList aggregate_requests(const PodSpec& spec) {
  return Walk(spec, nullptr, Part::kRequests, containers_alone()).run();
}

ResourceList aggregate_limits(const PodSpec& spec) {
  return Walk(spec, nullptr, Part::kLimits, containers_alone()).run();
}

void default_pod_level(PodSpec& spec) {
  if (!spec.resources || (spec.resources->limits.empty() && spec.resources->requests.empty())) return;
  ResourceRequirements& whole = *spec.resources;
  for (const auto& [name, amount] : aggregate_limits(spec)) {
    if (is_hugepage_resource(name) && !whole.requests.contains(name)) whole.limits.try_emplace(name, amount);
  }
  if (whole.limits.empty()) return;
  for (const auto& [name, amount] : aggregate_requests(spec)) {
    if (is_pod_level_resource(name) && !is_hugepage_resource(name)) whole.requests.try_emplace(name, amount);
  }
  for (const auto& [name, limit] : whole.limits) {
    if (is_pod_level_resource(name)) whole.requests.try_emplace(name, limit);
  }
}

Quantity agent_request(const PodSpec& spec, std::string_view resource, const PodFeatures& features) {
  if (resource == "pods") return Quantity::of_units(1);
  Quantity total;
  if (const Quantity* whole = features.pod_level_resources ? pod_level_request(spec, resource) : nullptr) {
    total = *whole;
  } else {
    for (const Container& container : spec.containers) {
      const auto amount = container.resources.requests.find(resource);
      if (amount != container.resources.requests.end()) total += amount->second;
    }
    for (const Container& container : spec.init_containers) {
      const auto amount = container.resources.requests.find(resource);
      if (amount != container.resources.requests.end()) total = std::max(total, amount->second);
    }
  }
  if (const auto overhead = spec.overhead.find(resource); overhead != spec.overhead.end() && !total.is_zero()) {
    total += overhead->second;
  }
  return total;
}

}  // namespace spillway::api
