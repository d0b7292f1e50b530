#include "sim/incident_player.h"

#include "sim/cluster.h"

#include <algorithm>
#include <iterator>

namespace spillway::sim {

namespace {

std::vector<std::size_t> nodes_of(const NodeChoice& choice, const Cluster& cluster) {
  std::vector<std::size_t> nodes;
  if (!choice.only.empty()) {
    std::ranges::copy_if(choice.only, std::back_inserter(nodes),
                         [&cluster](std::size_t node) { return node < cluster.node_count(); });
    return nodes;
  }
  std::size_t seen = 0;
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    if (choice.zone && cluster.node_zone(i) != *choice.zone) continue;
    if (seen++ < choice.skip) continue;
    if ((seen - 1 - choice.skip) % choice.every == 0) nodes.push_back(i);
  }
  return nodes;
}

bool any_is_unknown(const Cluster& cluster) {
  return std::ranges::any_of(cluster.world().nodes(), [](const auto& entry) {
    const api::NodeCondition* ready = api::find_condition(entry.second.status.conditions, "Ready");
    return ready != nullptr && ready->status == "Unknown";
  });
}

class Player {
 public:
  explicit Player(Cluster& cluster) : cluster_(cluster) {}

  void operator()(const Wait& step) { cluster_.run_for(step.time); }

  void operator()(const AwaitUnknown& step) {
    const Instant end = cluster_.time().now().mono + step.most;
    while (!any_is_unknown(cluster_) && cluster_.time().now().mono < end) cluster_.run_for(milliseconds(1));
  }

  void operator()(const OnNodes& step) {
    for (const std::size_t node : nodes_of(step.nodes, cluster_)) {
      switch (step.what) {
        case OnNodes::What::kPartition:
          cluster_.partition_node(node);
          break;
        case OnNodes::What::kHeal:
          cluster_.heal_node(node);
          break;
        case OnNodes::What::kCrash:
          cluster_.crash_node(node);
          break;
        case OnNodes::What::kRestart:
          cluster_.restart_node(node);
          break;
      }
    }
  }

  void operator()(const RollingReboot& step) {
    for (const std::size_t node : nodes_of(step.nodes, cluster_)) {
      cluster_.crash_node(node);
      cluster_.time().after(step.away, [&cluster = cluster_, node] { cluster.restart_node(node); });
      cluster_.run_for(step.every);
    }
    cluster_.run_for(step.away);
  }

  void operator()(const OnControllers& step) {
    step.what == OnControllers::What::kCrash ? cluster_.crash_controllers() : cluster_.restart_controllers();
  }

  void operator()(const JumpClock& step) { cluster_.time().jump_wall(step.by); }

  void operator()(const MuteWatch& step) {
    if (step.path.empty()) {
      cluster_.network().unmute();
    } else {
      cluster_.network().mute("controller", step.path);
    }
  }

  void operator()(const Repeat& step) {
    for (std::int64_t i = 0; i < step.times; ++i) play(step.steps, cluster_);
  }

 private:
  Cluster& cluster_;
};

}  // namespace

void play(const std::vector<Step>& steps, Cluster& cluster) {
  Player player(cluster);
  for (const Step& step : steps) std::visit(player, step);
}

}  // namespace spillway::sim
