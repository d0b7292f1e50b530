// Memory and huge pages of Guaranteed pods, counted per NUMA node: the memory manager's policy "Static".
// Thread: any (plain state). Invariants: per node and resource allocatable = reserved + free; a node is used either
// alone or in one group of nodes, never in two. Bounds: NUMA nodes < 64. Source: Kubernetes docs, "Utilizing the NUMA-
// aware Memory Manager"; KEP-1769; spec "Pod admission", 5.
#pragma once

#include "api/object/pod.h"
#include "base/error.h"
#include "policy/admission/cpu_topology.h"
#include "policy/admission/topology_admit.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::admission {

struct MemoryOptions {
  std::string policy = "None";
  /// reservedMemory: bytes by node and resource.
  std::map<int, NumaMemory> reserved;

  friend bool operator==(const MemoryOptions&, const MemoryOptions&) = default;
};

struct MemorySetup {
  NumaLayout layout;
  std::map<int, NumaMemory> reserved;
};

/// nullopt: policy "None". `node_reservation`: what kube, system and hard eviction keep from pods. kInvalid, in
/// upstream's words: unknown policy, or reservedMemory that does not add up to that.
Result<std::optional<MemorySetup>> parse_memory(const MemoryOptions& options, const NumaLayout& layout,
                                                const api::ResourceList& node_reservation);

/// The amounts of one resource on one NUMA node, in bytes.
struct MemoryTable {
  std::int64_t total = 0;
  std::int64_t system_reserved = 0;
  std::int64_t allocatable = 0;
  std::int64_t reserved = 0;  // by pods
  std::int64_t free = 0;

  friend bool operator==(const MemoryTable&, const MemoryTable&) = default;
};

struct NumaState {
  std::int64_t assignments_count = 0;
  std::map<std::string, MemoryTable, std::less<>> tables;  // by resource
  std::vector<int> cells;                                  // the nodes that form a group with this one, itself included

  friend bool operator==(const NumaState&, const NumaState&) = default;
};

/// An amount of one resource, from these nodes together.
struct MemoryBlock {
  std::vector<int> nodes;
  std::string resource;
  std::int64_t size_bytes = 0;

  friend bool operator==(const MemoryBlock&, const MemoryBlock&) = default;
};

struct MemoryAssignments {
  std::map<int, NumaState> nodes;
  /// container within pod uid.
  std::map<std::string, std::map<std::string, std::vector<MemoryBlock>, std::less<>>, std::less<>> held;

  friend bool operator==(const MemoryAssignments&, const MemoryAssignments&) = default;
};

class StaticMemory final : public HintProvider {
 public:
  /// `before`: what was true when this node ran last. kInvalid, in upstream's words: it does not add up, or the machine
  /// is another one.
  static Result<StaticMemory> create(const MemorySetup& setup, const std::optional<MemoryAssignments>& before);

  std::optional<ResourceHints> container_hints(const api::Pod& pod, const api::Container& container) override;
  std::optional<ResourceHints> pod_hints(const api::Pod& pod) override;
  /// Failures in upstream's words.
  std::optional<AllocationFailure> allocate(const api::Pod& pod, const api::Container& container,
                                            const TopologyHint& hint) override;

  /// The nodes of the container's memory, ascending; empty: no restriction.
  std::vector<int> nodes_of(std::string_view uid, std::string_view container) const;

  /// False: the pod held none.
  bool release(std::string_view uid);
  /// Releases the memory of all pods but these. False: nothing changed.
  bool keep_only(const std::set<std::string, std::less<>>& uids);

  const MemoryAssignments& assignments() const { return assignments_; }

 private:
  using Requests = std::map<std::string, std::int64_t, std::less<>>;

  StaticMemory() = default;

  static Requests requests_of(const api::Pod& pod, const api::Container& container);
  const std::vector<MemoryBlock>* find(std::string_view uid, std::string_view container) const;
  std::int64_t reusable(const api::Pod& pod, const std::vector<int>& nodes, std::string_view resource) const;
  std::vector<TopologyHint> hints_for(const api::Pod& pod, const Requests& requests) const;
  bool is_usable(const std::vector<int>& nodes) const;
  bool has_free(const api::Pod& pod, const Requests& requests, NumaSet nodes) const;
  Result<TopologyHint> pick(const api::Pod& pod, const Requests& requests, const TopologyHint& hint) const;
  std::int64_t reuse(const api::Pod& pod, const api::Container& container, const MemoryBlock& block);
  void reserve(const MemoryBlock& block, std::int64_t size_bytes);
  void give_back(const MemoryBlock& block);

  MemoryAssignments assignments_;
};

}  // namespace spillway::admission
