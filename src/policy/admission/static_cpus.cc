#include "policy/admission/static_cpus.h"

#include "api/object/pod_requests.h"
#include "policy/admission/cpu_assignment.h"
#include "policy/admission/init_containers.h"
#include "policy/admission/option_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace spillway::admission {
namespace {

constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kFullCores = "full-pcpus-only";
constexpr std::string_view kSpread = "distribute-cpus-across-numa";
constexpr std::string_view kStrictReservation = "strict-cpu-reservation";
/// Hints are all subsets of the NUMA nodes.
constexpr int kNodesEnumerated = 16;

Result<CpuSet> reserved_of(const CpuOptions& options, const CpuTopology& topology) {
  if (!options.reserved.empty()) {
    if (!topology.all().contains(options.reserved)) {
      return invalid("reservedSystemCPUs", "this machine has the CPUs {}, not all of {}", topology.all().text(),
                     options.reserved.text());
    }
    return options.reserved;
  }
  if (options.reserved_milli <= 0) {
    return invalid({}, "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero");
  }
  // Reserved CPUs are the first cores of the machine: not scattered, and not in the room of other containers.
  return take_packed(topology, topology.all(), static_cast<int>((options.reserved_milli + 999) / 1000));
}

AllocationFailure misaligned(std::string message) {
  return {"SMTAlignmentError", "SMT Alignment Error: " + std::move(message)};
}

}  // namespace

std::vector<std::string> cpu_option_names() {
  return {std::string(kFullCores), std::string(kSpread), std::string(kStrictReservation)};
}

Result<std::optional<CpuSetup>> parse_cpus(const CpuOptions& options, const CpuTopology& topology) {
  if (options.policy == "none") {
    if (options.policy_options.empty()) return std::optional<CpuSetup>();
    return invalid({}, "cpumanager options are set, but the policy \"none\" has none");
  }
  if (options.policy != "static") return invalid({}, "unknown policy: \"{}\"", options.policy);
  CpuSetup setup{.topology = topology, .reserved = {}};
  for (const auto& [name, text] : options.policy_options) {
    bool* const flag = name == kFullCores           ? &setup.full_cores
                       : name == kSpread            ? &setup.spread
                       : name == kStrictReservation ? &setup.keeps_reserved_out
                                                    : nullptr;
    if (flag == nullptr) return invalid({}, "unknown CPU Manager Policy option: \"{}\"", name);
    SPILLWAY_TRY(value, parse_option(name, text));
    *flag = value;
  }
  if (topology.places.empty()) return invalid({}, "could not detect number of cpus");
  SPILLWAY_TRY(reserved, reserved_of(options, topology));
  setup.reserved = std::move(reserved);
  return std::optional<CpuSetup>(std::move(setup));
}

int exclusive_cpus(const api::Pod& pod, const api::Container& container) {
  if (api::qos_of(pod) != api::QosClass::kGuaranteed || api::has_pod_level(pod.spec)) return 0;
  const auto request = container.resources.requests.find(kCpu);
  if (request == container.resources.requests.end()) return 0;
  const std::int64_t milli = request->second.milli_value();
  if (milli <= 0 || milli % 1000 != 0 || milli / 1000 > kCpusMax) return 0;
  return static_cast<int>(milli / 1000);
}

Result<StaticCpus> StaticCpus::create(CpuSetup setup, const std::optional<CpuAssignments>& before) {
  StaticCpus cpus(std::move(setup));
  CpuSet all = cpus.setup_.topology.all();
  if (cpus.setup_.keeps_reserved_out) all.remove(cpus.setup_.reserved);
  if (!before || (before->shared.empty() && before->held.empty())) {
    cpus.assignments_.shared = std::move(all);
    return cpus;
  }
  if (before->shared.empty()) return invalid({}, "default cpuset cannot be empty");
  if (cpus.setup_.keeps_reserved_out) {
    const CpuSet both = before->shared & cpus.setup_.reserved;
    if (!both.empty()) {
      return invalid({}, "some of strictly reserved cpus: \"{}\" are present in defaultCpuSet: \"{}\"", both.text(),
                     before->shared.text());
    }
  } else if (!before->shared.contains(cpus.setup_.reserved)) {
    return invalid({}, "not all reserved cpus: \"{}\" are present in defaultCpuSet: \"{}\"",
                   cpus.setup_.reserved.text(), before->shared.text());
  }
  CpuSet known = before->shared;
  CpuSet of_others;
  for (const auto& [uid, containers] : before->held) {
    CpuSet of_pod;
    for (const auto& [container, held] : containers) {
      if (!(before->shared & held).empty()) {
        return invalid({}, "pod: {}, container: {} cpuset: \"{}\" overlaps with default cpuset \"{}\"", uid, container,
                       held.text(), before->shared.text());
      }
      if (!(of_others & held).empty()) {
        return invalid({}, "pod: {}, container: {} cpuset: \"{}\" overlaps with that of another pod", uid, container,
                       held.text());
      }
      of_pod.add(held);
    }
    of_others.add(of_pod);
  }
  known.add(of_others);
  if (known != all) {
    return invalid({}, "current set of available CPUs \"{}\" doesn't match with CPUs in state \"{}\"", all.text(),
                   known.text());
  }
  cpus.assignments_ = *before;
  return cpus;
}

const CpuSet* StaticCpus::find(std::string_view uid, std::string_view container) const {
  const auto pod = assignments_.held.find(uid);
  if (pod == assignments_.held.end()) return nullptr;
  const auto held = pod->second.find(container);
  return held == pod->second.end() ? nullptr : &held->second;
}

const CpuSet& StaticCpus::cpus_of(std::string_view uid, std::string_view container) const {
  const CpuSet* held = find(uid, container);
  return held == nullptr ? assignments_.shared : *held;
}

CpuSet StaticCpus::assignable() const {
  return setup_.topology.all() - setup_.reserved;
}

bool StaticCpus::is_exclusive(std::string_view uid, std::string_view container) const {
  return find(uid, container) != nullptr;
}

CpuSet StaticCpus::reusable(const api::Pod& pod) const {
  CpuSet offered;
  const auto of_pod = assignments_.held.find(pod.metadata.uid);
  if (of_pod == assignments_.held.end()) return offered;
  CpuSet kept;
  for (const auto& [name, held] : of_pod->second) (is_plain_init(pod, name) ? offered : kept).add(held);
  return offered - kept;
}

ResourceHints StaticCpus::hints_for(int count, const CpuSet& free, const CpuSet& must_include) const {
  ResourceHints hints;
  const CpuSet all = setup_.topology.all();
  const std::set<int> nodes = setup_.topology.ids(CpuLevel::kNuma, all);
  if (nodes.empty() || *nodes.rbegin() >= 64 || nodes.size() > kNodesEnumerated) return hints;
  NumaSet every = 0;
  std::array<int, 64> total{};
  std::array<int, 64> usable{};
  for (const auto& [cpu, place] : setup_.topology.places) {
    every |= NumaSet{1} << place.numa;
    ++total.at(static_cast<std::size_t>(place.numa));
    if (free.contains(cpu) || must_include.contains(cpu)) ++usable.at(static_cast<std::size_t>(place.numa));
  }
  NumaSet wanted = 0;
  for (const int node : setup_.topology.ids(CpuLevel::kNuma, must_include)) wanted |= NumaSet{1} << node;
  auto& list = hints[std::string(kCpu)].emplace();
  int narrowest = std::popcount(every);
  for (NumaSet set = every; set != 0; set = (set - 1) & every) {
    int in_total = 0;
    int in_use = 0;
    for (std::size_t node = 0; node < total.size(); ++node) {
      if (((set >> node) & 1U) == 0) continue;
      in_total += total.at(node);
      in_use += usable.at(node);
    }
    if (in_total >= count) narrowest = std::min(narrowest, std::popcount(set));
    if ((wanted & ~set) == 0 && in_use >= count) list.push_back({set, false});
  }
  std::ranges::sort(list, {}, [](const TopologyHint& hint) { return *hint.nodes; });
  for (TopologyHint& hint : list) hint.preferred = std::popcount(*hint.nodes) == narrowest;
  return hints;
}

std::optional<ResourceHints> StaticCpus::container_hints(const api::Pod& pod, const api::Container& container) {
  const int count = exclusive_cpus(pod, container);
  if (count == 0) return std::nullopt;
  if (const CpuSet* held = find(pod.metadata.uid, container.name)) {
    if (held->size() != count) return ResourceHints{{std::string(kCpu), std::vector<TopologyHint>()}};
    return hints_for(count, *held, {});
  }
  return hints_for(count, available(), reusable(pod));
}

std::optional<ResourceHints> StaticCpus::pod_hints(const api::Pod& pod) {
  int before = 0;  // the most that init containers need at a time
  int lasting = 0;
  CpuSet held;
  const auto count_cpus = [&](const api::Container& container) {
    if (const CpuSet* own = find(pod.metadata.uid, container.name)) held.add(*own);
    return exclusive_cpus(pod, container);
  };
  for (const api::Container& container : pod.spec.init_containers) {
    const int count = count_cpus(container);
    before = std::max(before, lasting + count);
    if (api::is_sidecar(container)) lasting += count;
  }
  for (const api::Container& container : pod.spec.containers) lasting += count_cpus(container);
  const int count = std::max(before, lasting);
  if (count == 0) return std::nullopt;
  if (!held.empty()) {
    if (held.size() != count) return ResourceHints{{std::string(kCpu), std::vector<TopologyHint>()}};
    return hints_for(count, held, {});
  }
  return hints_for(count, available(), reusable(pod));
}

/// Reserved CPUs take their whole cores with them: otherwise a pod could get half a core.
std::optional<AllocationFailure> StaticCpus::check_cores(int count, const CpuSet& again) const {
  const int per_core = setup_.topology.cpus_per_core();
  if (count % per_core != 0) {
    return misaligned(fmt::format("requested {} cpus not multiple cpus per core = {}", count, per_core));
  }
  CpuSet whole = available() | again;
  for (const int core : setup_.topology.ids(CpuLevel::kCore, setup_.reserved)) {
    whole.remove(setup_.topology.cpus_in(CpuLevel::kCore, core));
  }
  if (count <= whole.size()) return std::nullopt;
  return misaligned(fmt::format(
      "not enough free physical CPUs: available physical CPUs = {}, requested CPUs = {}, CPUs per core = {}",
      whole.size(), count, per_core));
}

Result<CpuSet> StaticCpus::take(const CpuSet& free, int count) const {
  if (!setup_.spread) return take_packed(setup_.topology, free, count);
  return take_spread(setup_.topology, free, count, setup_.full_cores ? setup_.topology.cpus_per_core() : 1);
}

std::optional<AllocationFailure> StaticCpus::allocate(const api::Pod& pod, const api::Container& container,
                                                      const TopologyHint& hint) {
  const int count = exclusive_cpus(pod, container);
  if (count == 0 || find(pod.metadata.uid, container.name) != nullptr) return std::nullopt;
  const CpuSet again = reusable(pod);
  if (setup_.full_cores) {
    if (auto failure = check_cores(count, again)) return failure;
  }
  CpuSet free = available() | again;
  if (setup_.full_cores) {
    for (const int core : setup_.topology.ids(CpuLevel::kCore, setup_.reserved)) {
      free.remove(setup_.topology.cpus_in(CpuLevel::kCore, core));
    }
  }
  CpuSet near;
  if (hint.nodes) {
    for (const int cpu : free) {
      const int node = setup_.topology.places.at(cpu).numa;
      if (node < 64 && ((*hint.nodes >> node) & 1U) != 0) near.add(cpu);
    }
  }
  const auto taken = take(near, std::min(count, near.size()));
  if (!taken) return AllocationFailure{std::nullopt, taken.error().message};
  const auto rest = take(free - *taken, count - taken->size());
  if (!rest) return AllocationFailure{std::nullopt, rest.error().message};
  CpuSet own = *taken | *rest;
  assignments_.shared.remove(own);
  assignments_.held[pod.metadata.uid][container.name] = std::move(own);
  return std::nullopt;
}

bool StaticCpus::release(std::string_view uid) {
  const auto pod = assignments_.held.find(uid);
  if (pod == assignments_.held.end()) return false;
  for (const auto& [container, held] : pod->second) assignments_.shared.add(held);
  assignments_.held.erase(pod);
  return true;
}

bool StaticCpus::keep_only(const std::set<std::string, std::less<>>& uids) {
  std::vector<std::string> gone;
  for (const auto& [uid, containers] : assignments_.held) {
    if (!uids.contains(uid)) gone.push_back(uid);
  }
  for (const std::string& uid : gone) release(uid);
  return !gone.empty();
}

}  // namespace spillway::admission
