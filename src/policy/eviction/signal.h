// The signals of eviction, the node conditions that they lead to, and the observations of one pass.
// Thread: any (plain values). Invariant: an observation exists only if both of its numbers were measured.
// Source: Kubernetes docs, "Node-pressure Eviction", eviction signals; spec "Eviction manager", 1, 2.
#pragma once

#include "api/object/summary.h"
#include "api/text/quantity.h"
#include "base/time.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway::eviction {

/// Signals in the order in which thresholds of equal urgency act.
enum class Signal {
  kMemoryAvailable,
  kAllocatableMemoryAvailable,
  kMemAvailable,  // the kernel's MemAvailable; never configured by its name, only as a guard
  kNodeFsAvailable,
  kNodeFsInodesFree,
  kImageFsAvailable,
  kImageFsInodesFree,
  kContainerFsAvailable,
  kContainerFsInodesFree,
  kPidAvailable,
};

inline constexpr std::array kSignals{Signal::kMemoryAvailable,       Signal::kAllocatableMemoryAvailable,
                                     Signal::kMemAvailable,          Signal::kNodeFsAvailable,
                                     Signal::kNodeFsInodesFree,      Signal::kImageFsAvailable,
                                     Signal::kImageFsInodesFree,     Signal::kContainerFsAvailable,
                                     Signal::kContainerFsInodesFree, Signal::kPidAvailable};

/// "memory.available".
std::string_view to_string(Signal signal);
/// Parses the name of a signal, which is case-sensitive; nullopt: unknown.
std::optional<Signal> parse_signal(std::string_view text);

/// "memory", "ephemeral-storage", "inodes" or "pids": the name in messages and events.
std::string_view resource_of(Signal signal);

/// memory.available, allocatableMemory.available and the guard: they act before anything else.
bool is_memory(Signal signal);

/// True if KubeletConfiguration and flags may name the signal.
bool is_configurable(Signal signal);

/// The estimate of available memory. kWorkingSet: capacity minus working set, as upstream. kAvailable: the kernel's
/// MemAvailable, which can be taken without swapping. kWorkingSetAndSwap: memory and swap together, minus the working
/// set.
enum class MemoryEstimator { kWorkingSet, kAvailable, kWorkingSetAndSwap };

inline constexpr std::array kMemoryEstimators{MemoryEstimator::kWorkingSet, MemoryEstimator::kAvailable,
                                              MemoryEstimator::kWorkingSetAndSwap};

/// BinarySI for bytes, DecimalSI for inodes and processes.
api::Quantity::Format format_of(Signal signal);

/// Node conditions, in the order in which they are reported.
enum class Condition { kMemoryPressure, kDiskPressure, kPidPressure };

inline constexpr std::array kConditions{Condition::kMemoryPressure, Condition::kDiskPressure, Condition::kPidPressure};

/// "MemoryPressure".
std::string_view to_string(Condition condition);
Condition condition_of(Signal signal);

/// Amounts in the unit of the signal: bytes, inodes or processes. Measurements beyond the range of int64 have wrapped.
struct Observation {
  std::int64_t available = 0;
  std::int64_t capacity = 0;
  std::optional<WallTime> time;

  friend bool operator==(const Observation&, const Observation&) = default;
};

/// The observed values, at most one per signal; absent: not measured.
class Observations {
 public:
  std::optional<Observation>& operator[](Signal signal) { return slots_[static_cast<std::size_t>(signal)]; }

  const std::optional<Observation>& operator[](Signal signal) const { return slots_[static_cast<std::size_t>(signal)]; }

  friend bool operator==(const Observations&, const Observations&) = default;

 private:
  std::array<std::optional<Observation>, kSignals.size()> slots_;
};

/// Observes all signals for which the summary has both numbers. `by` is the estimator of memory.available and
/// allocatableMemory.available; their capacity is always that of the memory, so a share of it is the same amount by
/// every estimator.
Observations observe(const api::Summary& summary, MemoryEstimator by = MemoryEstimator::kWorkingSet);

/// True if the signal was measured since `last`. True too if it was not in `last`, or if a time is missing on either
/// side; false if it is not in `seen`.
bool is_fresh(Signal signal, const Observations& seen, const Observations& last);

/// The amount as messages print it.
api::Quantity quantity_of(Signal signal, std::int64_t amount);

}  // namespace spillway::eviction
