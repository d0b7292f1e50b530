#include "sim/swarm/minimise.h"

#include "api/text/quantity.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/printer.h"
#include "sim/scenario/timeline_parser.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

using Edit = std::function<void(Scenario&)>;

GeneratedCluster& cluster_of(Scenario& scenario) {
  return std::get<GeneratedCluster>(scenario.cluster);
}

NodeChoice* choice_in(Action& action) {
  if (auto* const partition = std::get_if<PartitionNodes>(&action)) return &partition->nodes;
  if (auto* const crash = std::get_if<CrashNodes>(&action)) return &crash->nodes;
  if (auto* const drain = std::get_if<DrainNodes>(&action)) return &drain->nodes;
  if (auto* const clocks = std::get_if<JumpMachineClocks>(&action)) return &clocks->nodes;
  if (auto* const links = std::get_if<WorsenLinks>(&action)) return &links->nodes;
  if (auto* const images = std::get_if<KeepImages>(&action)) return &images->nodes;
  if (auto* const disks = std::get_if<SlowDisks>(&action)) return &disks->nodes;
  if (auto* const thresholds = std::get_if<ChangeThresholds>(&action)) return &thresholds->nodes;
  return nullptr;
}

std::int64_t requested(const std::string& quantity, std::int64_t pods) {
  const auto each = api::parse_quantity(quantity);
  return each ? each->value() * pods : 0;
}

/// The memory of a node without the reservation for its system.
std::int64_t memory_for_pods(const Scenario& scenario) {
  const std::int64_t memory = std::get<GeneratedCluster>(scenario.cluster).memory.count();
  if (!scenario.config.agents) return memory;
  const auto found = scenario.config.agents->system_reserved.find("memory");
  return found == scenario.config.agents->system_reserved.end() ? memory : memory - found->second.value();
}

/// True if the pods of the cluster find a place with a quarter of the memory left: for hard thresholds, for pods of the
/// timeline and for pods that do not fit in exactly. Otherwise "a pod has no place" would take the place of the
/// failure.
bool pods_fit(const Scenario& scenario) {
  const GeneratedCluster& cluster = std::get<GeneratedCluster>(scenario.cluster);
  std::int64_t bytes = 0;
  for (const GeneratedCluster::Workload& each : cluster.workloads)
    bytes += requested(each.memory_request, each.kind == "DaemonSet" ? cluster.nodes : each.replicas);
  return bytes <= memory_for_pods(scenario) / 4 * 3 * cluster.nodes;
}

/// Numbers of nodes beyond the last one are mapped to another one.
void set_nodes(Scenario& scenario, std::int64_t nodes) {
  GeneratedCluster& cluster = cluster_of(scenario);
  cluster.nodes = nodes;
  cluster.zones = std::min(cluster.zones, nodes);
  for (TimelineEvent& event : scenario.timeline) {
    NodeChoice* const choice = choice_in(event.action);
    if (choice == nullptr) continue;
    for (std::size_t& number : choice->only) number %= static_cast<std::size_t>(nodes);
  }
}

void set_duration(Scenario& scenario, Duration duration) {
  scenario.duration = duration;
  std::erase_if(scenario.timeline, [duration](const TimelineEvent& event) { return event.at >= duration; });
  for (TimelineEvent& event : scenario.timeline) {
    if (event.lasts) event.lasts = std::min<Duration>(*event.lasts, duration - event.at);
  }
}

std::vector<Edit> edits_of_faults() {
  std::vector<Edit> edits{[](Scenario& s) { s.faults = {}; },
                          [](Scenario& s) { s.faults.etcd = {}; },
                          [](Scenario& s) { s.faults.store = {}; },
                          [](Scenario& s) { s.faults.death_ppm = 0; },
                          [](Scenario& s) { s.faults.journal_death_ppm = 0; },
                          [](Scenario& s) { s.faults.agent_death_ppm = 0; }};
  for (std::uint32_t NetworkFaults::* const each :
       {&NetworkFaults::lost_ppm, &NetworkFaults::slow_ppm, &NetworkFaults::repeated_ppm,
        &NetworkFaults::watch_break_ppm, &NetworkFaults::roam_ppm}) {
    edits.emplace_back([each](Scenario& s) { s.faults.network.*each = 0; });
  }
  for (std::uint32_t EtcdFaults::* const each :
       {&EtcdFaults::slow_ppm, &EtcdFaults::lost_ppm, &EtcdFaults::fragment_ppm, &EtcdFaults::repeat_ppm,
        &EtcdFaults::gap_ppm, &EtcdFaults::early_progress_ppm}) {
    edits.emplace_back([each](Scenario& s) { s.faults.etcd.*each = 0; });
  }
  return edits;
}

std::vector<Edit> edits_of_cluster(Scenario& scenario) {
  std::vector<Edit> edits;
  const std::int64_t nodes = cluster_of(scenario).nodes;
  for (const std::int64_t fewer : {std::int64_t{1}, std::int64_t{2}, nodes / 2, nodes - 1}) {
    if (fewer >= 1 && fewer < nodes) edits.emplace_back([fewer](Scenario& s) { set_nodes(s, fewer); });
  }
  for (std::size_t i = cluster_of(scenario).workloads.size(); i-- > 0;) {
    edits.emplace_back([i](Scenario& s) {
      auto& workloads = cluster_of(s).workloads;
      if (i < workloads.size()) workloads.erase(workloads.begin() + static_cast<std::ptrdiff_t>(i));
    });
    edits.emplace_back([i](Scenario& s) {
      auto& workloads = cluster_of(s).workloads;
      if (i < workloads.size()) workloads[i].replicas = std::max<std::int64_t>(workloads[i].replicas / 2, 1);
    });
    edits.emplace_back([i](Scenario& s) {
      auto& workloads = cluster_of(s).workloads;
      if (i < workloads.size()) workloads[i].budget_available.reset();
    });
  }
  edits.emplace_back([](Scenario& s) { cluster_of(s).zones = 1; });
  edits.emplace_back([](Scenario& s) { cluster_of(s).swap = {}; });
  edits.emplace_back([](Scenario& s) { s.control_plane = {}; });
  edits.emplace_back([](Scenario& s) { s.control_plane = {.servers = 1, .etcd = s.control_plane.etcd > 0 ? 1U : 0U}; });
  edits.emplace_back([](Scenario& s) { s.config = {}; });
  edits.emplace_back([](Scenario& s) {
    s.config.agents.reset();
    s.config.agents_written = {};
  });
  edits.emplace_back([](Scenario& s) { s.config.controllers = {}; });
  return edits;
}

std::vector<Edit> edits_of_time(Scenario& scenario) {
  const auto nodes = static_cast<std::size_t>(cluster_of(scenario).nodes);
  const Duration end = end_of(scenario.timeline, nodes);
  const Duration half = std::chrono::duration_cast<seconds>(scenario.duration / 2);
  std::vector<Edit> edits{[](Scenario& s) { s.rest.reset(); }, [](Scenario& s) { s.no_surplus = false; }};
  if (end < scenario.duration) edits.emplace_back([end](Scenario& s) { s.duration = end; });
  if (half > Duration::zero()) edits.emplace_back([half](Scenario& s) { set_duration(s, half); });
  if (scenario.timeline_delay > seconds(5))
    edits.emplace_back([](Scenario& s) { s.timeline_delay = s.timeline_delay / 2; });
  for (std::size_t i = 0; i < scenario.timeline.size(); ++i) {
    edits.emplace_back([i](Scenario& s) {
      if (i < s.timeline.size() && s.timeline[i].lasts) s.timeline[i].lasts = *s.timeline[i].lasts / 2;
    });
  }
  return edits;
}

class Minimising {
 public:
  Minimising(Scenario failing, const std::function<bool(const Scenario&)>& fails, std::size_t runs_max)
      : best_(std::move(failing)),
        text_(scenario_yaml(best_)),
        fails_(fails),
        runs_max_(runs_max),
        pods_fit_(pods_fit(best_)) {}

  Minimised run() {
    std::string before;
    while (before != text_ && runs_ < runs_max_) {
      before = text_;
      fewer_events();
      attempt(edits_of_faults());
      attempt(edits_of_cluster(best_));
      attempt(edits_of_time(best_));
    }
    return {std::move(best_), runs_};
  }

 private:
  /// Keeps the candidate if it differs from the best one, can be parsed, and fails.
  bool accept(const Scenario& candidate) {
    if (runs_ >= runs_max_) return false;
    std::string text = scenario_yaml(candidate);
    if (text == text_ || (pods_fit_ && !pods_fit(candidate))) return false;
    auto read = parse_scenario("minimised", text, [](const std::string& file) -> Result<std::string> {
      return invalid(file, "a swarm's scenario names no files");
    });
    if (!read) return false;
    ++runs_;
    if (!fails_(*read)) return false;
    best_ = *std::move(read);
    text_ = std::move(text);
    return true;
  }

  bool attempt(const std::vector<Edit>& edits) {
    bool better = false;
    for (const Edit& edit : edits) {
      Scenario candidate = best_;
      edit(candidate);
      better = accept(candidate) || better;
    }
    return better;
  }

  /// ddmin: leaves out each of `parts` parts, then smaller ones.
  void fewer_events() {
    for (std::size_t parts = 1; !best_.timeline.empty();) {
      const std::size_t size = (best_.timeline.size() + parts - 1) / parts;
      bool better = false;
      for (std::size_t from = 0; from < best_.timeline.size();) {
        Scenario candidate = best_;
        const auto begin = candidate.timeline.begin() + static_cast<std::ptrdiff_t>(from);
        const std::size_t count = std::min(size, best_.timeline.size() - from);
        candidate.timeline.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
        if (accept(candidate))
          better = true;  // the next events are at `from` now
        else
          from += size;
      }
      if (size <= 1 && !better) return;
      if (size > 1) parts *= 2;
      if (runs_ >= runs_max_) return;
    }
  }

  Scenario best_;
  std::string text_;
  const std::function<bool(const Scenario&)>& fails_;
  std::size_t runs_max_;
  bool pods_fit_;  // at first: then always
  std::size_t runs_ = 0;
};

}  // namespace

Minimised minimise(Scenario failing, const std::function<bool(const Scenario&)>& fails, std::size_t runs_max) {
  return Minimising(std::move(failing), fails, runs_max).run();
}

}  // namespace spillway::sim
