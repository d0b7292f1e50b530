#include "policy/eviction/signal.h"

#include "base/check.h"

#include <algorithm>
#include <ranges>

namespace spillway::eviction {
namespace {

constexpr std::string_view kPodsContainer = "pods";

std::int64_t wrapped(std::uint64_t amount) {
  return static_cast<std::int64_t>(amount);  // two's complement, as upstream reinterprets it
}

std::optional<std::int64_t> left_by(MemoryEstimator by, const api::MemoryStats& memory) {
  switch (by) {
    case MemoryEstimator::kWorkingSet:
      return wrapped(*memory.available_bytes);
    case MemoryEstimator::kAvailable:
      if (!memory.mem_available_bytes) return std::nullopt;
      return wrapped(*memory.mem_available_bytes);
    case MemoryEstimator::kWorkingSetAndSwap:
      if (!memory.swap_left_bytes) return std::nullopt;
      return wrapped(*memory.available_bytes + static_cast<std::uint64_t>(*memory.swap_left_bytes));
  }
  check_failed("MemoryEstimator in range", __FILE__, __LINE__);
}

std::optional<Observation> observe_memory(const std::optional<api::MemoryStats>& memory, MemoryEstimator by) {
  if (!memory || !memory->available_bytes || !memory->working_set_bytes) return std::nullopt;
  const std::optional<std::int64_t> left = left_by(by, *memory);
  if (!left) return std::nullopt;
  return Observation{*left, wrapped(*memory->available_bytes + *memory->working_set_bytes), memory->time};
}

std::optional<Observation> observe_bytes(const std::optional<api::FsStats>& fs) {
  if (!fs || !fs->available_bytes || !fs->capacity_bytes) return std::nullopt;
  return Observation{wrapped(*fs->available_bytes), wrapped(*fs->capacity_bytes), fs->time};
}

std::optional<Observation> observe_inodes(const std::optional<api::FsStats>& fs) {
  if (!fs || !fs->inodes_free || !fs->inodes) return std::nullopt;
  return Observation{wrapped(*fs->inodes_free), wrapped(*fs->inodes), fs->time};
}

std::optional<Observation> observe_pids(const std::optional<api::RlimitStats>& rlimit) {
  if (!rlimit || !rlimit->max_pid || !rlimit->running_processes) return std::nullopt;
  return Observation{*rlimit->max_pid - *rlimit->running_processes, *rlimit->max_pid, rlimit->time};
}

}  // namespace

std::string_view to_string(Signal signal) {
  switch (signal) {
    case Signal::kMemoryAvailable:
      return "memory.available";
    case Signal::kAllocatableMemoryAvailable:
      return "allocatableMemory.available";
    case Signal::kMemAvailable:
      return "memory.memAvailable";
    case Signal::kNodeFsAvailable:
      return "nodefs.available";
    case Signal::kNodeFsInodesFree:
      return "nodefs.inodesFree";
    case Signal::kImageFsAvailable:
      return "imagefs.available";
    case Signal::kImageFsInodesFree:
      return "imagefs.inodesFree";
    case Signal::kContainerFsAvailable:
      return "containerfs.available";
    case Signal::kContainerFsInodesFree:
      return "containerfs.inodesFree";
    case Signal::kPidAvailable:
      return "pid.available";
  }
  check_failed("Signal in range", __FILE__, __LINE__);
}

std::optional<Signal> parse_signal(std::string_view text) {
  const auto found = std::ranges::find(kSignals, text, [](Signal signal) { return to_string(signal); });
  return found == kSignals.end() ? std::nullopt : std::optional(*found);
}

std::string_view resource_of(Signal signal) {
  switch (signal) {
    case Signal::kMemoryAvailable:
    case Signal::kAllocatableMemoryAvailable:
    case Signal::kMemAvailable:
      return "memory";
    case Signal::kNodeFsAvailable:
    case Signal::kImageFsAvailable:
    case Signal::kContainerFsAvailable:
      return "ephemeral-storage";
    case Signal::kNodeFsInodesFree:
    case Signal::kImageFsInodesFree:
    case Signal::kContainerFsInodesFree:
      return "inodes";
    case Signal::kPidAvailable:
      return "pids";
  }
  check_failed("Signal in range", __FILE__, __LINE__);
}

bool is_memory(Signal signal) {
  return signal == Signal::kMemoryAvailable || signal == Signal::kAllocatableMemoryAvailable ||
         signal == Signal::kMemAvailable;
}

bool is_configurable(Signal signal) {
  return signal != Signal::kMemAvailable;
}

api::Quantity::Format format_of(Signal signal) {
  const std::string_view resource = resource_of(signal);
  const bool counted = resource == "inodes" || resource == "pids";
  return counted ? api::Quantity::Format::kDecimalSI : api::Quantity::Format::kBinarySI;
}

std::string_view to_string(Condition condition) {
  switch (condition) {
    case Condition::kMemoryPressure:
      return "MemoryPressure";
    case Condition::kDiskPressure:
      return "DiskPressure";
    case Condition::kPidPressure:
      return "PIDPressure";
  }
  check_failed("Condition in range", __FILE__, __LINE__);
}

Condition condition_of(Signal signal) {
  if (is_memory(signal)) return Condition::kMemoryPressure;
  return signal == Signal::kPidAvailable ? Condition::kPidPressure : Condition::kDiskPressure;
}

Observations observe(const api::Summary& summary, MemoryEstimator by) {
  const api::NodeStats& node = summary.node;
  Observations seen;
  seen[Signal::kMemoryAvailable] = observe_memory(node.memory, by);
  const auto pods = std::ranges::find(node.system_containers, kPodsContainer, &api::ContainerStats::name);
  if (pods != node.system_containers.end())
    seen[Signal::kAllocatableMemoryAvailable] = observe_memory(pods->memory, by);
  seen[Signal::kMemAvailable] = observe_memory(node.memory, MemoryEstimator::kAvailable);
  seen[Signal::kNodeFsAvailable] = observe_bytes(node.fs);
  seen[Signal::kNodeFsInodesFree] = observe_inodes(node.fs);
  seen[Signal::kImageFsAvailable] = observe_bytes(node.image_fs);
  seen[Signal::kImageFsInodesFree] = observe_inodes(node.image_fs);
  seen[Signal::kContainerFsAvailable] = observe_bytes(node.container_fs);
  seen[Signal::kContainerFsInodesFree] = observe_inodes(node.container_fs);
  seen[Signal::kPidAvailable] = observe_pids(node.rlimit);
  return seen;
}

bool is_fresh(Signal signal, const Observations& seen, const Observations& last) {
  const std::optional<Observation>& now = seen[signal];
  if (!now) return false;
  const std::optional<Observation>& before = last[signal];
  if (!before || !now->time) return true;
  return !before->time || *now->time > *before->time;
}

api::Quantity quantity_of(Signal signal, std::int64_t amount) {
  return api::Quantity::of_units(amount, format_of(signal));
}

}  // namespace spillway::eviction
