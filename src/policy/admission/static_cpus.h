// The CPU manager's policy "static": containers of Guaranteed pods that request whole CPUs get CPUs of their own; all
// other containers share the rest.
// Thread: any (plain state). Invariants: a CPU is in the shared pool or belongs to one pod, never both; reserved CPUs
// are never assigned; within a pod only an init container that ends shares its CPUs, with those that follow it. Source:
// Kubernetes docs, "Control CPU Management Policies on the Node"; KEP-3570, KEP-2625, KEP-2902, KEP-4540; spec "Pod
// admission", 5.
#pragma once

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

/// The kubelet's configuration of the CPU manager.
struct CpuOptions {
  std::string policy = "none";
  std::map<std::string, std::string, std::less<>> policy_options;
  CpuSet reserved;  // reservedSystemCPUs; empty: as many as `reserved_milli` needs are chosen
  std::int64_t reserved_milli = 0;

  friend bool operator==(const CpuOptions&, const CpuOptions&) = default;
};

struct CpuSetup {
  CpuTopology topology;
  CpuSet reserved;
  bool full_cores = false;          // full-pcpus-only
  bool spread = false;              // distribute-cpus-across-numa
  bool keeps_reserved_out = false;  // strict-cpu-reservation: the shared pool is without the reserved ones as well
};

/// The supported option names of the static policy.
std::vector<std::string> cpu_option_names();

/// nullopt: policy "none". kInvalid, mostly in upstream's words: unknown policy or option, a value that is no boolean,
/// nothing reserved, CPUs reserved that the machine does not have.
Result<std::optional<CpuSetup>> parse_cpus(const CpuOptions& options, const CpuTopology& topology);

/// The assigned CPUs. `held`: by pod UID, then by container.
struct CpuAssignments {
  CpuSet shared;
  std::map<std::string, std::map<std::string, CpuSet, std::less<>>, std::less<>> held;

  friend bool operator==(const CpuAssignments&, const CpuAssignments&) = default;
};

class StaticCpus final : public HintProvider {
 public:
  /// `before`: what was true when this node ran last. kInvalid, in upstream's words: it contradicts itself or the
  /// machine.
  static Result<StaticCpus> create(CpuSetup setup, const std::optional<CpuAssignments>& before);

  std::optional<ResourceHints> container_hints(const api::Pod& pod, const api::Container& container) override;
  std::optional<ResourceHints> pod_hints(const api::Pod& pod) override;
  /// Failures are in upstream's words; of type SMTAlignmentError if whole cores were requested and are not available.
  std::optional<AllocationFailure> allocate(const api::Pod& pod, const api::Container& container,
                                            const TopologyHint& hint) override;

  /// The CPUs that the container may run on: its own, else the shared pool.
  const CpuSet& cpus_of(std::string_view uid, std::string_view container) const;
  bool is_exclusive(std::string_view uid, std::string_view container) const;

  /// Back into the pool. False: the pod held none.
  bool release(std::string_view uid);
  /// Releases the CPUs of all pods but these. False: nothing changed.
  bool keep_only(const std::set<std::string, std::less<>>& uids);

  const CpuAssignments& assignments() const { return assignments_; }

  /// The CPUs that containers can have for themselves, held or not: all but the reserved ones.
  CpuSet assignable() const;

 private:
  explicit StaticCpus(CpuSetup setup) : setup_(std::move(setup)) {}

  const CpuSet* find(std::string_view uid, std::string_view container) const;

  CpuSet available() const { return assignments_.shared - setup_.reserved; }

  CpuSet reusable(const api::Pod& pod) const;
  std::optional<AllocationFailure> check_cores(int count, const CpuSet& again) const;
  Result<CpuSet> take(const CpuSet& free, int count) const;
  ResourceHints hints_for(int count, const CpuSet& free, const CpuSet& must_include) const;

  CpuSetup setup_;
  CpuAssignments assignments_;
};

/// The number of whole CPUs that a container of a Guaranteed pod requests; 0: it uses the shared pool.
int exclusive_cpus(const api::Pod& pod, const api::Container& container);

}  // namespace spillway::admission
