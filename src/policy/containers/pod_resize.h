// The resize of a pod that runs: its resources as the spec, the allocation and the machine have them, and the
// order in which the limits of its cgroups change.
// Thread: any (pure). Source: Kubernetes docs, "Resize CPU and Memory Resources assigned to Containers"; KEP-1287,
// KEP-5419.
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::containers {

inline constexpr std::string_view kPodResizePending = "PodResizePending";
inline constexpr std::string_view kPodResizeInProgress = "PodResizeInProgress";
inline constexpr std::string_view kResizeError = "Error";

/// The resources of a pod that can change while it runs.
struct PodResources {
  /// Resources of init containers and regular ones, by name.
  std::map<std::string, api::ResourceRequirements, std::less<>> containers;
  std::optional<api::ResourceRequirements> whole;  // the pod level

  friend bool operator==(const PodResources&, const PodResources&) = default;
};

/// The document {"limits":{…},"requests":{…}}, without empty members.
api::Json to_json(const api::ResourceRequirements& resources);
Result<api::ResourceRequirements> parse_resources(const api::Json& document);

PodResources resources_of(const api::PodSpec& spec);
/// True if the spec has exactly these resources.
bool has_resources(const api::PodSpec& spec, const PodResources& resources);
/// Replaces the resources of the spec. A container that `resources` does not name keeps its own.
void set_resources(api::PodSpec& spec, const PodResources& resources);

/// True if the pod requests more cpu or memory than before.
bool raises_requests(const api::PodSpec& before, const api::PodSpec& after);

/// Limits and weight of a container, or of a pod. Absent: no limit.
struct GroupAmounts {
  std::optional<Bytes> memory_limit;
  std::optional<std::int64_t> cpu_limit_milli;
  std::int64_t cpu_request_milli = 0;

  friend bool operator==(const GroupAmounts&, const GroupAmounts&) = default;
};

struct GroupChange {
  std::string container;  // empty: the pod
  GroupAmounts before;
  GroupAmounts after;
};

enum class ResizedResource : std::uint8_t { kMemory, kCpu };

/// One write to a cgroup: its memory limit, or its CPU limit and weight.
struct ResizeStep {
  std::string container;  // empty: the pod
  ResizedResource resource = ResizedResource::kMemory;
  GroupAmounts amounts;        // amounts to write
  bool lowers_memory = false;  // refused while the cgroup uses that much

  friend bool operator==(const ResizeStep&, const ResizeStep&) = default;
};

/// The writes that make the changes: memory before cpu; the pod before its containers where it grows, after them where
/// it shrinks; containers that shrink before those that grow. `pod`: the change of the pod's own cgroup.
std::vector<ResizeStep> resize_steps(const GroupChange& pod, std::span<const GroupChange> containers);

/// Memory that a cgroup uses now.
struct MemoryUse {
  std::string container;  // empty: the pod
  Bytes used;
};

/// Why the memory limits cannot be lowered now, in upstream's words; nullopt: they can.
std::optional<std::string> refuse_to_lower(std::span<const ResizeStep> steps, std::span<const MemoryUse> uses);

/// The place of a pending resize among those that are tried: smallest first. Resizes that raise no request first, then
/// by priority, Guaranteed pods, the time for which the resize is pending.
struct ResizeRank {
  bool raises_requests = false;
  std::int32_t priority = 0;
  bool guaranteed = false;
  std::optional<WallTime> pending_since;  // nullopt: the resize was not tried yet
  api::PodKey pod;
  std::string uid;

  friend std::strong_ordering operator<=>(const ResizeRank& a, const ResizeRank& b);
  friend bool operator==(const ResizeRank&, const ResizeRank&) = default;
};

/// The text of the events about a resize: {"initContainers":[…],"containers":[…],"generation":7,"error":"…"}, with the
/// resources of all containers that can be resized.
std::string resize_details(const api::PodSpec& spec, std::int64_t generation, std::string_view error);

/// The condition with this reason, observed at `generation`. The transition time stays while the reason does.
api::PodCondition resize_condition(std::string_view type, std::string_view reason, std::string message,
                                   std::int64_t generation, const std::optional<api::PodCondition>& before,
                                   WallTime now);

}  // namespace spillway::containers
