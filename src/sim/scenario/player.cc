#include "sim/scenario/player.h"

#include "base/check.h"
#include "sim/scenario/event_actions.h"
#include "sim/scenario/rest.h"
#include "sim/scenario/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

namespace spillway::sim {
namespace {

constexpr Duration kBoot = seconds(15);        // until every machine has registered
constexpr Duration kOwnersFirst = seconds(2);  // between workloads and the pods that name them
constexpr std::string_view kNamespaces = "/api/v1/namespaces";
constexpr Duration kStep = seconds(1);
constexpr Duration kCheckEvery = seconds(5);  // interval of the checks for states that must not last
constexpr Duration kRestStep = seconds(10);
constexpr Duration kRepairs = seconds(5);  // between the timeline and the healing

ClusterOptions cluster_options(const Scenario& scenario, const Inventory& inventory, std::uint64_t seed) {
  ClusterOptions options;
  options.seed = seed;
  options.machines = inventory.machines;
  options.agent = scenario.config.agents;
  options.controllers = scenario.config.controllers;
  options.servers = scenario.control_plane.servers;
  options.etcd_replicas = scenario.control_plane.etcd;
  options.faults = scenario.faults.network;
  options.store_faults = scenario.faults.store;
  options.etcd_faults = scenario.faults.etcd;
  options.death_ppm = scenario.faults.death_ppm;
  options.journal_death_ppm = scenario.faults.journal_death_ppm;
  options.agent_death_ppm = scenario.faults.agent_death_ppm;
  options.faults_wait = true;
  const bool uses_machines = std::ranges::any_of(scenario.timeline, [](const TimelineEvent& event) {
    return std::holds_alternative<UseMemory>(event.action) || std::holds_alternative<FillDisk>(event.action) ||
           std::holds_alternative<ReadFiles>(event.action) || std::holds_alternative<ForkProcesses>(event.action) ||
           std::holds_alternative<KeepImages>(event.action) || std::holds_alternative<ChangeThresholds>(event.action) ||
           std::holds_alternative<SlowDisks>(event.action);
  });
  const auto* generated = std::get_if<GeneratedCluster>(&scenario.cluster);
  const bool calm = generated != nullptr && generated->workloads.empty() && !uses_machines;
  options.observe_interval_max = calm ? seconds(10) : seconds(1);
  return options;
}

class ScenarioRun {
 public:
  ScenarioRun(const Scenario& scenario, const RunOptions& options)
      : scenario_(scenario), options_(options), inventory_(read_inventory(scenario)) {
    ClusterOptions cluster = cluster_options(scenario, inventory_, options.seed);
    cluster.log = telemetry::Log([this](telemetry::Level level, std::string_view event,
                                        std::span<const telemetry::Field> fields) { on_log(level, event, fields); });
    cluster_ = std::make_unique<Cluster>(std::move(cluster));
    tally_ = std::make_unique<Tally>(*cluster_);
    actions_ = std::make_unique<EventActions>(*cluster_, inventory_.machines);
    total_ = kBoot + scenario.timeline_delay + scenario.duration + scenario.rest.value_or(Duration());
  }

  RunOutcome run() {
    if (options_.observer != nullptr) options_.observer->on_begin(*cluster_);
    cluster_->world().listen([this](const store::Change& change, Now) { record_uid(change); });
    const bool imported = !inventory_.pods.empty();
    if (imported) cluster_->crash_controllers();
    bool whole = advance(kBoot);
    if (scenario_.no_surplus) cluster_->invariants().forbid_surplus();
    whole = make_namespaces() && whole;
    for (const PlacedObject& each : inventory_.objects) {
      if (each.collection != kNamespaces) cluster_->create(each.collection, each.object);
    }
    if (imported && whole) {
      whole = advance(kOwnersFirst);
      for (const PlacedObject& each : inventory_.pods) cluster_->create(each.collection, with_owner(each.object));
      whole = whole && advance(kOwnersFirst);
      cluster_->restart_controllers();
    }
    whole = whole && advance(scenario_.timeline_delay - (imported ? 2 * kOwnersFirst : Duration::zero()));
    if (whole) {
      if (options_.observer != nullptr) options_.observer->on_timeline(*cluster_);
      begin_timeline();
      whole = advance(scenario_.duration);
    }
    if (whole && scenario_.rest) whole = wait_for_rest(*scenario_.rest);
    RunOutcome outcome = finish(whole);
    if (options_.observer != nullptr) options_.observer->on_end(*cluster_);
    return outcome;
  }

 private:
  static Inventory read_inventory(const Scenario& scenario) {
    if (const auto* imported = std::get_if<Inventory>(&scenario.cluster)) return *imported;
    return inventory_of(std::get<GeneratedCluster>(scenario.cluster));
  }

  void on_log(telemetry::Level level, std::string_view event, std::span<const telemetry::Field> fields) {
    if (options_.log && cluster_ != nullptr) {
      std::vector<telemetry::Field> timed{
          {"t_s", std::chrono::duration<double>(cluster_->time().now().mono.time_since_epoch()).count()}};
      timed.insert(timed.end(), fields.begin(), fields.end());
      options_.log(level, event, timed);
    }
    if (event != "act held") return;
    for (const telemetry::Field& field : fields) {
      if (field.key == "reason") outcome_.held_by.insert(field.value.substr(0, field.value.find(' ')));
    }
  }

  /// Records the uids given here, which replace those of the imported cluster.
  void record_uid(const store::Change& change) {
    for (const auto& [prefix, kind] :
         {std::pair<std::string_view, std::string_view>{"/registry/replicasets/", "ReplicaSet"},
          {"/registry/daemonsets/", "DaemonSet"}}) {
      if (change.value == nullptr || !change.key.starts_with(prefix)) continue;
      const auto document = api::parse_json(*change.value);
      SPILLWAY_CHECK(document.has_value());  // cannot fail: the server wrote the document
      uids_[std::string(kind) + "/" + change.key.substr(prefix.size())] =
          std::string(document->string_at({"metadata", "uid"}));
    }
  }

  api::Json with_owner(api::Json pod) const {
    const std::string ns(pod.string_at({"metadata", "namespace"}));
    api::Json* owners = pod.at({"metadata", "ownerReferences"});
    if (owners == nullptr) return pod;
    api::Json known = api::Json::array();
    for (api::Json owner : *owners->if_array()) {
      const auto uid = uids_.find(fmt::format("{}/{}/{}", owner.string_at({"kind"}), ns, owner.string_at({"name"})));
      if (uid == uids_.end()) continue;
      owner["uid"] = uid->second;
      known.if_array()->push_back(std::move(owner));
    }
    *owners = std::move(known);
    return pod;
  }

  /// Creates the namespaces, before anything is created in them.
  bool make_namespaces() {
    bool any = false;
    for (const PlacedObject& each : inventory_.objects) {
      if (each.collection != kNamespaces) continue;
      cluster_->create(each.collection, each.object);
      any = true;
    }
    return !any || advance(kStep);
  }

  bool advance(Duration time) {
    const Instant end = cluster_->time().now().mono + time;
    for (Instant now = cluster_->time().now().mono; now < end; now = cluster_->time().now().mono) {
      cluster_->run_for(std::min(kStep, end - now));
      const double share = std::chrono::duration<double>(cluster_->time().now().mono - Instant()) / total_;
      if (options_.should_continue && !options_.should_continue(std::min(share, 1.0))) return false;
      if (cluster_->time().now().mono - checked_ < kCheckEvery) continue;
      checked_ = cluster_->time().now().mono;
      cluster_->invariants().check(cluster_->time().now());
    }
    return true;
  }

  /// Objects that are not at rest in time are violations.
  bool wait_for_rest(Duration within) {
    if (!advance(kRepairs)) return false;
    heal_everything(*cluster_);
    const Instant deadline = cluster_->time().now().mono + within;
    std::vector<Unrest> unrest;
    do {
      uncordon_nodes(*cluster_);
      resume_rollouts(*cluster_);
      if (!advance(kRestStep)) return false;
      unrest = unrest_of(*cluster_);
    } while (!unrest.empty() && cluster_->time().now().mono < deadline);
    for (const Unrest& each : unrest) {
      cluster_->invariants().violate({Property::kReachesRest, std::string(each.subject)}, cluster_->time().now(),
                                     each.text);
    }
    return true;
  }

  void begin_timeline() {
    outcome_.nodes = cluster_->world().nodes().size();
    outcome_.pods = cluster_->world().pods().size();
    tally_->begin();
    cluster_->begin_faults();
    bool waits = false;
    for (const TimelineEvent& event : scenario_.timeline) {
      if (event.when == TimelineEvent::When::kFirstUnknown) {
        waits = true;
      } else {
        start(event);
      }
    }
    if (!waits) return;
    tally_->on_first_unknown([this] {
      for (const TimelineEvent& event : scenario_.timeline) {
        if (event.when == TimelineEvent::When::kFirstUnknown) start(event);
      }
    });
  }

  void start(const TimelineEvent& event) {
    for (std::int64_t i = 0; i < event.times; ++i) {
      const Duration at = event.at + event.every * i;
      cluster_->time().after(at, [this, &event] {
        actions_->carry_out(event.action);
        tally_->disturb();
      });
      if (!event.lasts) continue;
      cluster_->time().after(at + *event.lasts, [this, &event] {
        actions_->take_back(event.action);
        tally_->disturb();
      });
    }
  }

  RunOutcome finish(bool whole) {
    RunOutcome outcome = std::move(outcome_);
    outcome.scenario = scenario_.name;
    outcome.story = scenario_.story;
    outcome.seed = options_.seed;
    outcome.interrupted = !whole;
    outcome.left_out = inventory_.left_out;
    tally_->finish(outcome);
    cluster_->invariants().check(cluster_->time().now());
    outcome.violations = cluster_->invariants().violations();
    for (const Property each : cluster_->invariants().violated()) outcome.violated.emplace_back(name_of(each));
    outcome.kinds_of_violations = cluster_->invariants().kinds_of_violations();
    outcome.trace_hash = cluster_->world().trace().text();
    outcome.writes = cluster_->world().trace().writes();
    outcome.messages = cluster_->network().messages();
    for (const Expectation& each : scenario_.expectations) outcome.expectations.push_back(evaluate(each, outcome));
    return outcome;
  }

  const Scenario& scenario_;
  const RunOptions& options_;
  Inventory inventory_;
  RunOutcome outcome_;
  std::map<std::string, std::string> uids_;  // "ReplicaSet/default/web"
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Tally> tally_;
  std::unique_ptr<EventActions> actions_;
  Duration total_{};
  Instant checked_{};
};

}  // namespace

RunOutcome run_scenario(const Scenario& scenario, const RunOptions& options) {
  return ScenarioRun(scenario, options).run();
}

}  // namespace spillway::sim
