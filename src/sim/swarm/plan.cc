#include "sim/swarm/plan.h"

#include "base/check.h"
#include "base/rng.h"
#include "sim/scenario/action_json.h"
#include "sim/scenario/config_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace spillway::sim {
namespace {

using api::Json;

constexpr Duration kTimelineDelay = seconds(20);
constexpr Duration kBreakingTime = seconds(100);
constexpr Duration kEventsUntil = seconds(85);
constexpr Duration kRest = minutes(10);
constexpr std::int64_t kSoftMib = 96;

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed)
      : rng_(Rng(seed).fork("swarm")), rollouts_(Rng(seed).fork("rollouts")), agents_(Rng(seed).fork("agents")) {
    plan_.name = fmt::format("seed-{}", seed);
    plan_.seed = seed;
    plan_.timeline_delay = kTimelineDelay;
    plan_.duration = kBreakingTime;
    plan_.rest = kRest;
  }

  Scenario draw() {
    nothing_lost_ = rng_.below(3) == 0;
    plan_.no_surplus = nothing_lost_;
    draw_cluster();
    draw_servers();
    draw_config();
    draw_faults();
    while (at_ < kEventsUntil) {
      at_ += milliseconds(200 + below(9'000));
      draw_event();
    }
    if (rollouts_.below(3) == 0) draw_rollouts();
    std::ranges::stable_sort(plan_.timeline, {}, &TimelineEvent::at);
    return std::move(plan_);
  }

 private:
  std::int64_t below(std::uint64_t bound) { return static_cast<std::int64_t>(rng_.below(bound)); }

  std::uint32_t ppm(std::uint64_t bound) { return static_cast<std::uint32_t>(rng_.below(bound)); }

  bool one_in(std::uint64_t count) { return rng_.below(count) == 0; }

  void draw_cluster() {
    GeneratedCluster cluster;
    const std::int64_t size = one_in(8) ? 3 : 1;  // one draw per statement, so that the order of draws is defined
    cluster.nodes = 3 + below(5) * size;
    cluster.zones = 1 + below(3);
    cluster.pods_per_node = 0;
    cluster.memory = mebibytes(256);
    GeneratedCluster::Workload web;
    web.name = "web";
    web.replicas = 2 + below(8);
    web.memory = mebibytes(20);
    web.memory_request = "20Mi";
    web.cpu_request = "50m";
    if (one_in(2)) web.budget_available = std::max<std::int64_t>(web.replicas - 1 - below(2), 1);
    GeneratedCluster::Workload watcher;
    watcher.kind = "DaemonSet";
    watcher.name = "watcher";
    watcher.memory = mebibytes(5);
    watcher.memory_request = "20Mi";
    if (one_in(2)) watcher.priority_class = "system-node-critical";
    cluster.workloads = {std::move(web), std::move(watcher)};
    nodes_ = static_cast<std::size_t>(cluster.nodes);
    replicas_ = cluster.workloads.front().replicas;
    plan_.cluster = std::move(cluster);
  }

  void draw_servers() {
    const std::uint64_t kind = rng_.below(3);
    if (kind == 0) return;
    plan_.control_plane.etcd = kind == 1 ? 1 : 3;
    plan_.control_plane.servers = 1 + rng_.below(3);
  }

  void draw_config() {
    Json agents = Json::object();
    const std::int64_t hard_mib = one_in(2) ? 64 : 40;
    agents["evictionHard"] = Json::object({{"memory.available", fmt::format("{}Mi", hard_mib)}});
    agents["evictionPressureTransitionPeriod"] = one_in(2) ? "30s" : "1m0s";
    if (one_in(3)) {
      agents["evictionSoft"] = Json::object({{"memory.available", fmt::format("{}Mi", kSoftMib)}});
      agents["evictionSoftGracePeriod"] = Json::object({{"memory.available", "10s"}});
      agents["evictionMaxPodGracePeriod"] = 5;
      keep_from_pods(kSoftMib - hard_mib, agents);
    }
    auto options = agent_options_of(agents);
    SPILLWAY_CHECK(options.has_value());
    plan_.config.agents = *std::move(options);
    plan_.config.agents_written = std::move(agents);
    controllers::ControllerSet::Options& controllers = plan_.config.controllers;
    auto& monitor = controllers.node_lifecycle.monitor;
    monitor.health.node_monitor_grace_period = one_in(2) ? seconds(20) : seconds(40);
    constexpr std::array<float, 3> kRates = {0.1F, 0.02F, 0.5F};
    monitor.zones.node_eviction_rate = kRates[rng_.below(kRates.size())];
    if (!one_in(3)) return;
    lifecycle::BrakeConfig& brakes = controllers.brakes;
    brakes.mark_not_ready.global = lifecycle::ActLimit{1 + static_cast<std::int32_t>(below(3)), minutes(1)};
    brakes.taint.global = lifecycle::ActLimit{1 + static_cast<std::int32_t>(below(2)), minutes(1)};
    brakes.delete_pod.global = lifecycle::ActLimit{3, minutes(1)};
    if (one_in(2)) brakes.stall_share = 0.5;
    if (one_in(2)) brakes.watch_age_max = minutes(3);
    if (one_in(2)) brakes.clock_jump_max = seconds(5);
  }

  /// Reserves memory, so that pods that use as much as they request do not meet a soft threshold: only a hard threshold
  /// is subtracted from allocatable. Such pods would be evicted repeatedly, because the scheduler counts requests, and
  /// the cluster would never be at rest. The nodes are larger by that amount.
  void keep_from_pods(std::int64_t mib, Json& agents) {
    agents["systemReserved"] = Json::object({{"memory", fmt::format("{}Mi", mib)}});
    std::get<GeneratedCluster>(plan_.cluster).memory += mebibytes(mib);
  }

  void draw_faults() {
    ChanceFaults& faults = plan_.faults;
    faults.network.slow_ppm = ppm(50'000);
    faults.network.repeated_ppm = ppm(20'000);
    faults.store.late_ppm = ppm(20'000);
    if (!nothing_lost_) {
      faults.network.lost_ppm = ppm(20'000);
      faults.network.watch_break_ppm = ppm(5'000);
      faults.store.refused_ppm = ppm(10'000);
      faults.death_ppm = ppm(500);
      if (one_in(2)) faults.journal_death_ppm = ppm(500'000);
      if (agents_.below(2) == 0) draw_agent_deaths();
    }
    if (plan_.control_plane.etcd == 0) return;
    if (one_in(2)) faults.network.roam_ppm = ppm(100'000);
    faults.etcd.pace.late_ppm = ppm(20'000);
    faults.etcd.fragment_ppm = 300'000;
    faults.etcd.repeat_ppm = ppm(10'000);
    faults.etcd.early_progress_ppm = ppm(10'000);
    faults.etcd.future_shows_past = one_in(2);
    if (nothing_lost_) return;
    faults.etcd.slow_ppm = ppm(1'000);
    faults.etcd.lost_ppm = ppm(1'000);
    faults.etcd.gap_ppm = ppm(200);
  }

  /// Agents end right after they have begun an eviction: the next one finds running pods, and lasting pressure, because
  /// web servers grow together and take all of their grace to end.
  void draw_agent_deaths() {
    plan_.faults.agent_death_ppm = static_cast<std::uint32_t>(agents_.below(800'000));
    draw_growth_together();
  }

  void draw_growth_together() {
    const auto any = [this](std::uint64_t bound) { return static_cast<std::int64_t>(agents_.below(bound)); };
    const Duration at = milliseconds(any(20'000));
    HoldEndings slow;
    slow.pods.pods = "default/web-*";
    UseMemory growth;
    growth.pods.pods = slow.pods.pods;
    growth.to = mebibytes(100 + any(100));
    growth.rate_per_second = mebibytes(3 + any(10));
    add(std::move(slow), at);
    add(std::move(growth), at + milliseconds(any(5'000)));
  }

  void add(Action action, Duration at, std::optional<Duration> lasts = std::nullopt) {
    std::string text = action_json(action).first;
    if (lasts) lasts = std::min<Duration>(*lasts, kBreakingTime - at);
    plan_.timeline.push_back(
        {.at = at, .action = std::move(action), .lasts = lasts, .every = {}, .text = std::move(text)});
  }

  void add(Action action) { add(std::move(action), at_); }

  /// Adds an action that is taken back a while later.
  void add_outage(Action action) { add(std::move(action), at_, milliseconds(100 + below(60'000))); }

  NodeChoice one_node() {
    NodeChoice choice;
    choice.only = {rng_.below(nodes_)};
    return choice;
  }

  void draw_event() {
    const std::uint64_t kind = rng_.below(plan_.control_plane.etcd == 0 ? 19 : 23);
    if (kind >= 19) return nothing_lost_ ? draw_services() : draw_etcd();
    if (nothing_lost_ && kind < 2) return draw_name_again();
    switch (kind) {
      case 0:
        return add_outage(CrashControllers{});
      case 1:
        return add_outage(StopApiServer{rng_.below(plan_.control_plane.servers)});
      case 2:
        return add_outage(CrashScheduler{});
      case 3:
      case 4:
        return add_outage(CrashNodes{one_node()});
      case 5:
        return add_outage(PartitionNodes{one_node(), Cut::kBoth});
      case 6:
        return add_outage(PartitionNodes{one_node(), one_in(2) ? Cut::kToServer : Cut::kFromServer});
      case 7:
      case 8:
      case 9:
        return draw_hog();
      case 10:
        return draw_leak();
      case 11:
        return draw_name_again();
      case 12:
        return add(DeleteObject{.kind = "Node", .name = fmt::format("node-{:05}", rng_.below(nodes_)), .place = {}});
      case 13:
        return draw_namespace();
      case 14:
        return draw_services();
      case 15:
        return add_outage(DrainNodes{one_node()});
      case 16:
      case 17:
        return draw_zone();
      default:
        return add(DeleteObject{.kind = "Pod", .name = {}, .place = rng_.below(100)});
    }
  }

  void draw_hog() {
    add(CreateObject{.kind = "Pod",
                     .name = fmt::format("hog-{}", ++hogs_),
                     .memory = mebibytes(400),
                     .growth_per_second = mebibytes(20 + below(60)),
                     .memory_request = "20Mi",
                     .priority_class = {},
                     .restarts = one_in(2)});
  }

  /// Makes web servers use more than they requested.
  void draw_leak() {
    UseMemory leak;
    leak.pods.pods = "default/web-*";
    leak.pods.first = 1 + rng_.below(2);
    leak.to = mebibytes(60 + below(100));
    leak.rate_per_second = mebibytes(2 + below(10));
    add(std::move(leak));
  }

  /// Cuts a whole zone off, or changes something for the whole cluster: the replicas of its workload, all clocks, the
  /// speed of the API server.
  void draw_zone() {
    const auto zones = static_cast<std::uint64_t>(std::get<GeneratedCluster>(plan_.cluster).zones);
    NodeChoice zone;
    zone.zone = fmt::format("zone-{}", rng_.below(zones));
    switch (rng_.below(nothing_lost_ ? 3 : 5)) {
      case 0:
      case 1:  // longer than most graces
        return add(PartitionNodes{std::move(zone), Cut::kBoth}, at_, seconds(25 + below(40)));
      case 2:
        return add(ScaleWorkload{"default", "web", 1 + below(static_cast<std::uint64_t>(replicas_) + 2)});
      case 3:
        return add(JumpClock{seconds(below(7'200) - 3'600)});
      default:
        return add_outage(SlowApiServer{milliseconds(50 + below(500))});
    }
  }

  /// A pod of a name that is reused repeatedly: the one before it is deleted at once, or with its grace, and the next
  /// one may be created too early.
  void draw_name_again() {
    const std::string name = fmt::format("again-{}", rng_.below(3));
    add(DeleteObject{.kind = "Pod", .name = name, .place = {}, .at_once = one_in(2)});
    const Duration gap = one_in(2) ? Duration() : Duration(milliseconds(below(4'000)));
    add(CreateObject{.kind = "Pod", .name = name, .memory_request = "20Mi", .priority_class = {}}, at_ + gap);
  }

  /// A namespace is created and deleted while other clients still write into it.
  void draw_namespace() {
    const std::string name = fmt::format("team-{}", rng_.below(3));
    if (one_in(3)) add(DeleteObject{.kind = "Namespace", .name = name, .place = {}});
    add(CreateObject{.kind = "Namespace", .name = name, .memory_request = {}, .priority_class = {}});
    for (int i = 0; i < 4; ++i) {
      const Duration at = at_ + milliseconds(below(3'000));
      add(CreateObject{.kind = "ConfigMap",
                       .ns = name,
                       .name = fmt::format("kept-{}", rng_.below(20)),
                       .memory_request = {},
                       .priority_class = {}},
          at);
      add(CreateObject{.kind = "Pod",
                       .ns = name,
                       .name = fmt::format("guest-{}", rng_.below(3)),
                       .memory_request = "20Mi",
                       .priority_class = {}},
          at);
    }
    if (one_in(2)) return;
    const Duration at = at_ + milliseconds(below(3'000));
    add(DeleteObject{.kind = "Namespace", .name = name, .place = {}}, at);
  }

  /// Draws several servers that allocate addresses and ports at the same time.
  void draw_services() {
    for (int i = 0; i < 6; ++i) {
      const std::string name = fmt::format("front-{}", rng_.below(12));
      const Duration at = at_ + milliseconds(below(20));
      if (one_in(3))
        add(DeleteObject{.kind = "Service", .name = name, .place = {}}, at);
      else
        add(CreateObject{.kind = "Service", .name = name, .memory_request = {}, .priority_class = {}}, at);
    }
  }

  /// Breaks a member, the leader, a server's way to all of them, or the kept history.
  void draw_etcd() {
    const std::uint64_t member = rng_.below(plan_.control_plane.etcd);
    switch (rng_.below(5)) {
      case 0:
        return add_outage(BreakEtcd{BreakEtcd::What::kStop, member});
      case 1:
        return add_outage(BreakEtcd{BreakEtcd::What::kPart, member});
      case 2:
        return add_outage(BreakEtcd{BreakEtcd::What::kCutOff, rng_.below(plan_.control_plane.servers)});
      case 3:
        return add(DeposeEtcd{});
      default:
        return add(CompactEtcd{});
    }
  }

  /// Draws a Deployment and its owner's changes; from a stream of its own, so that seeds without one stayed the same
  /// when these were added.
  void draw_rollouts() {
    const auto any = [this](std::uint64_t bound) { return static_cast<std::int64_t>(rollouts_.below(bound)); };
    const std::array<Json, 4> unavailable = {Json(), Json(0), Json(1), Json("50%")};
    const std::array<Json, 4> surge = {Json(), Json(1), Json(2), Json("100%")};
    GeneratedCluster::Workload shop;
    shop.kind = "Deployment";
    shop.name = "shop";
    shop.replicas = 2 + any(8);
    shop.memory = mebibytes(10);
    shop.memory_request = "10Mi";
    shop.cpu_request = "20m";
    shop.max_unavailable = unavailable[rollouts_.below(unavailable.size())];
    shop.max_surge = surge[rollouts_.below(surge.size())];
    std::get<GeneratedCluster>(plan_.cluster).workloads.push_back(shop);
    const DeploymentChoice deployment{"default", "shop"};
    for (Duration at = seconds(any(10)); at < kEventsUntil; at += milliseconds(500 + any(25'000))) {
      switch (rollouts_.below(6)) {
        case 0:
          add(PauseRollout{deployment}, at, seconds(1 + any(20)));
          break;
        case 1:
          add(UndoRollout{deployment}, at);
          break;
        case 2:
          add(ScaleWorkload{"default", "shop", 1 + any(10), "Deployment"}, at);
          break;
        default:
          add(RollOut{.deployment = deployment, .memory = {}, .memory_request = {}}, at);
      }
    }
  }

  Rng rng_;
  Rng rollouts_;
  Rng agents_;  // drawn apart, as rollouts are
  Scenario plan_;
  bool nothing_lost_ = false;  // no message gets lost, and no process crashes that makes pods
  std::size_t nodes_ = 0;
  std::int64_t replicas_ = 0;
  int hogs_ = 0;
  Duration at_{};
};

}  // namespace

Scenario plan_of(std::uint64_t seed) {
  return Drawing(seed).draw();
}

}  // namespace spillway::sim
