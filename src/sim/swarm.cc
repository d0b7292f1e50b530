// Random work under random faults. Phase one checks what must hold while things break; phase two heals everything and
// demands that the cluster comes to rest.
#include "api/object/taint.h"
#include "sim/cluster.h"
#include "sim/node_facts.h"
#include "sim/scenario.h"
#include "sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace spillway::sim {

namespace {

constexpr Duration kBreakingTime = minutes(5);
constexpr Duration kHealingTimeMax = minutes(10);

api::Json pod_spec(std::string_view memory, std::string_view rate) {
  api::Json::Array command{"stress", "--memory", memory};
  if (!rate.empty()) {
    command.emplace_back("--rate");
    command.emplace_back(rate);
  }
  return api::Json::object(
      {{"terminationGracePeriodSeconds", 2},
       {"containers",
        api::Json::array({api::Json::object(
            {{"name", "main"},
             {"image", "none"},
             {"command", api::Json(std::move(command))},
             {"resources",
              api::Json::object({{"requests", api::Json::object({{"cpu", "50m"}, {"memory", "20Mi"}})}})}})})}});
}

api::Json named(std::string_view kind, std::string_view name) {
  return api::Json::object({{"apiVersion", "v1"}, {"kind", kind}, {"metadata", api::Json::object({{"name", name}})}});
}

api::Json pod(std::string_view name, api::Json spec) {
  api::Json made = named("Pod", name);
  made["spec"] = std::move(spec);
  return made;
}

class Swarm {
 public:
  Swarm(std::uint64_t seed, telemetry::Log::Sink log)
      : rng_(Rng(seed).fork("swarm")), log_(std::move(log)), cluster_(draw(seed)) {}

  Report run() {
    cluster_.run_for(seconds(15));
    create_workloads();
    const Instant end = cluster_.time().now().mono + kBreakingTime;
    while (cluster_.time().now().mono < end) {
      cluster_.run_for(milliseconds(500 + static_cast<std::int64_t>(rng_.below(10'000))));
      break_something();
      cluster_.invariants().look(cluster_.time().now());
    }
    heal();
    Report report;
    report.violations = cluster_.invariants().violations();
    report.trace_hash = cluster_.world().trace().text();
    report.writes = cluster_.world().trace().writes();
    report.messages = cluster_.network().messages();
    report.events = cluster_.time().events_run();
    report.summary = summary_;
    return report;
  }

 private:
  ClusterOptions draw(std::uint64_t seed) {
    ClusterOptions options;
    options.seed = seed;
    options.log = timed_log();
    options.nodes = 3 + static_cast<std::int32_t>(rng_.below(6));
    options.zones = 1 + static_cast<std::int32_t>(rng_.below(3));
    options.node_memory = mebibytes(256);
    options.faults.lost_ppm = static_cast<std::uint32_t>(rng_.below(20'000));
    options.faults.slow_ppm = static_cast<std::uint32_t>(rng_.below(50'000));
    options.faults.watch_break_ppm = static_cast<std::uint32_t>(rng_.below(5'000));
    options.faults.repeated_ppm = static_cast<std::uint32_t>(rng_.below(20'000));
    options.store_faults.refused_ppm = static_cast<std::uint32_t>(rng_.below(10'000));
    options.store_faults.late_ppm = static_cast<std::uint32_t>(rng_.below(20'000));
    options.death_ppm = static_cast<std::uint32_t>(rng_.below(300));
    nothing_lost_ = rng_.below(3) == 0;
    draw_servers(options);
    if (nothing_lost_) {
      options.faults.lost_ppm = options.faults.watch_break_ppm = 0;
      options.store_faults.refused_ppm = options.death_ppm = 0;
    }
    summary_ = fmt::format(
        "{} nodes, {} zones; ppm: {} lost, {} late, {} repeated, {} broken watches, {} writes refused, "
        "{} deaths; {} servers, {} members of etcd",
        options.nodes, options.zones, options.faults.lost_ppm, options.faults.slow_ppm, options.faults.repeated_ppm,
        options.faults.watch_break_ppm, options.store_faults.refused_ppm, options.death_ppm, options.servers,
        options.etcd_replicas);
    return options;
  }

  /// One seed in three has one server with its store in memory, the others an etcd.
  void draw_servers(ClusterOptions& options) {
    const std::uint64_t kind = rng_.below(3);
    if (kind == 0) return;
    options.etcd_replicas = kind == 1 ? 1 : 3;
    options.servers = 1 + rng_.below(3);
    options.faults.roam_ppm = rng_.below(2) == 0 ? 0 : static_cast<std::uint32_t>(rng_.below(100'000));
    EtcdFaults& faults = options.etcd_faults;
    faults.pace.late_ppm = static_cast<std::uint32_t>(rng_.below(20'000));
    faults.pace.late_max = milliseconds(500);
    faults.fragment_ppm = 300'000;
    faults.repeat_ppm = static_cast<std::uint32_t>(rng_.below(10'000));
    faults.early_progress_ppm = static_cast<std::uint32_t>(rng_.below(10'000));
    faults.future_shows_past = rng_.below(2) == 0;
    if (nothing_lost_) return;
    faults.slow_ppm = static_cast<std::uint32_t>(rng_.below(1'000));
    faults.lost_ppm = static_cast<std::uint32_t>(rng_.below(1'000));
    faults.gap_ppm = static_cast<std::uint32_t>(rng_.below(200));
  }

  void create_workloads() {
    if (nothing_lost_) cluster_.invariants().forbid_surplus();
    replicas_ = 2 + static_cast<std::int64_t>(rng_.below(8));
    do {  // a request that etcd does not answer in time is refused
      cluster_.create("/apis/apps/v1/namespaces/default/replicasets",
                      replica_set("web", replicas_, pod_spec("20Mi", "")));
      cluster_.run_for(seconds(1));
    } while (cluster_.world().replica_sets().empty() && cluster_.time().now().mono < Instant(minutes(5)));
    cluster_.create("/apis/apps/v1/namespaces/default/daemonsets", daemon_set("watcher", pod_spec("5Mi", "")));
  }

  void create_hog() {
    const std::string name = fmt::format("hog-{}", ++hogs_);
    api::Json spec = pod_spec("400Mi", "60Mi/s");
    spec["restartPolicy"] = "Never";
    cluster_.create("/api/v1/namespaces/default/pods", pod(name, std::move(spec)));
  }

  /// A pod of a name that is used again and again: the one before it goes at once, or with its grace, and the next one
  /// may come too early.
  void use_a_name_again() {
    const std::string path = fmt::format("/api/v1/namespaces/default/pods/again-{}", rng_.below(3));
    cluster_.remove(path + (rng_.below(2) == 0 ? "?gracePeriodSeconds=0" : ""));
    const auto create = [this, name = path.substr(path.rfind('/') + 1)] {
      cluster_.create("/api/v1/namespaces/default/pods", pod(name, pod_spec("10Mi", "")));
    };
    cluster_.time().after(milliseconds(static_cast<std::int64_t>(rng_.below(2) * rng_.below(4'000))), create);
  }

  /// Its agent registers it anew, under another uid.
  void delete_a_node() { cluster_.remove("/api/v1/nodes/" + cluster_.node_name(rng_.below(cluster_.node_count()))); }

  /// A namespace comes and goes while others still write into it.
  void use_a_namespace() {
    const std::string name = fmt::format("team-{}", rng_.below(3));
    const std::string path = "/api/v1/namespaces/" + name;
    if (rng_.below(3) == 0) cluster_.remove(path);
    cluster_.create("/api/v1/namespaces", named("Namespace", name));
    const auto fill = [this, path] {
      cluster_.create(path + "/configmaps", named("ConfigMap", fmt::format("kept-{}", rng_.below(20))));
      cluster_.create(path + "/pods", pod(fmt::format("guest-{}", rng_.below(3)), pod_spec("10Mi", "")));
    };
    for (int i = 0; i < 6; ++i) cluster_.time().after(milliseconds(static_cast<std::int64_t>(rng_.below(3'000))), fill);
    if (rng_.below(2) == 0) return;
    cluster_.time().after(milliseconds(static_cast<std::int64_t>(rng_.below(3'000))),
                          [this, path] { cluster_.remove(path); });
  }

  /// Several servers give addresses and ports out at the same time.
  void use_services() {
    for (int i = 0; i < 8; ++i) {
      const auto act = [this] {
        const std::string name = fmt::format("front-{}", rng_.below(12));
        const std::string path = "/api/v1/namespaces/default/services";
        if (rng_.below(3) == 0) return cluster_.remove(fmt::format("{}/{}", path, name));
        api::Json service = named("Service", name);
        service["spec"] =
            api::Json::object({{"type", "NodePort"}, {"ports", api::Json::array({api::Json::object({{"port", 80}})})}});
        cluster_.create(path, service);
      };
      cluster_.time().after(milliseconds(static_cast<std::int64_t>(rng_.below(20))), act);
    }
  }

  void delete_a_pod() {
    const auto& pods = cluster_.world().pods();
    if (pods.empty()) return;
    const auto chosen = std::next(pods.begin(), static_cast<std::ptrdiff_t>(rng_.below(pods.size())));
    cluster_.remove(fmt::format("/api/v1/namespaces/{}/pods/{}", chosen->first.ns, chosen->first.name));
  }

  void break_something() {
    const Duration outage = milliseconds(100 + static_cast<std::int64_t>(rng_.below(60'000)));
    const std::size_t node = rng_.below(cluster_.node_count());
    const auto later = [this, outage](auto repair) { cluster_.time().after(outage, std::move(repair)); };
    const std::uint64_t kind = rng_.below(cluster_.etcd() == nullptr ? 12 : 16);
    if (kind >= 12) return nothing_lost_ ? use_services() : break_etcd(outage);
    if (nothing_lost_ && (kind == 0 || kind == 2)) return use_a_name_again();
    switch (kind) {
      case 0:
        cluster_.crash_controllers();
        return later([this] { cluster_.restart_controllers(); });
      case 1:
        cluster_.crash_scheduler();
        return later([this] { cluster_.restart_scheduler(); });
      case 2: {
        const std::size_t server = rng_.below(cluster_.server_count());
        cluster_.crash_server(server);
        return later([this, server] { cluster_.restart_server(server); });
      }
      case 3:
        cluster_.crash_node(node);
        return later([this, node] { cluster_.restart_node(node); });
      case 4:
        cluster_.partition_node(node);
        return later([this, node] { cluster_.heal_node(node); });
      case 5:
        return create_hog();
      case 6:
      case 7:
        return use_a_name_again();
      case 8:
        return delete_a_node();
      case 9:
        return use_a_namespace();
      case 10:
        return use_services();
      default:
        return delete_a_pod();
    }
  }

  /// A member, the lead, a server's way to all of them, or what is kept of the history.
  void break_etcd(Duration outage) {
    SimEtcd& etcd = *cluster_.etcd();
    const std::size_t member = rng_.below(etcd.replicas().count());
    const std::size_t server = rng_.below(cluster_.server_count());
    const auto later = [this, outage](auto repair) {
      cluster_.invariants().on_outage(true, cluster_.time().now());
      cluster_.time().after(outage, [this, repair = std::move(repair)] {
        repair();
        cluster_.invariants().on_outage(false, cluster_.time().now());
      });
    };
    switch (rng_.below(5)) {
      case 0:
        etcd.replicas().stop(member);
        return later([&etcd, member] { etcd.replicas().start(member); });
      case 1:
        etcd.replicas().part(member);
        return later([&etcd, member] { etcd.replicas().rejoin(member); });
      case 2:
        return etcd.replicas().depose();
      case 3:
        cluster_.cut_off_server(server);
        return later([this, server] { cluster_.reach_server_again(server); });
      default:
        return etcd.compact(etcd.history().revision());
    }
  }

  void heal() {
    cluster_.run_for(minutes(1) + seconds(5));  // repairs that are under way
    cluster_.end_faults();
    cluster_.run_for(seconds(10));  // whoever has died is back
    for (std::size_t i = 0; i < cluster_.server_count(); ++i) {
      cluster_.restart_server(i);
      cluster_.reach_server_again(i);
    }
    for (std::size_t i = 0; cluster_.etcd() != nullptr && i < cluster_.etcd()->replicas().count(); ++i) {
      cluster_.etcd()->replicas().start(i);
      cluster_.etcd()->replicas().rejoin(i);
    }
    cluster_.restart_controllers();
    cluster_.restart_scheduler();
    for (std::size_t i = 0; i < cluster_.node_count(); ++i) {
      cluster_.restart_node(i);
      cluster_.heal_node(i);
    }
    const Instant deadline = cluster_.time().now().mono + kHealingTimeMax;
    std::vector<std::string> unrest;
    do {
      cluster_.run_for(seconds(10));
      cluster_.invariants().look(cluster_.time().now());
      unrest = find_unrest();
    } while (!unrest.empty() && cluster_.time().now().mono < deadline);
    for (const std::string& text : unrest) cluster_.invariants().violate(cluster_.time().now(), "not at rest: " + text);
  }

  /// What is not yet as the objects ask for.
  std::vector<std::string> find_unrest() {
    std::vector<std::string> unrest;
    for (const auto& [name, node] : cluster_.world().nodes()) {
      if (!is_ready(node)) unrest.push_back(fmt::format("node {} is not ready", name));
      for (const api::Taint& taint : node.spec.taints)
        unrest.push_back(fmt::format("node {} has taint {}", name, taint.key));
    }
    for (const std::string& ns : cluster_.world().tenants().ending())
      unrest.push_back(fmt::format("namespace {} is still being deleted", ns));
    if (cluster_.world().nodes().size() != cluster_.node_count()) unrest.push_back("a node is missing");
    std::int64_t web = 0;
    std::set<std::string> should_run;
    for (const auto& [key, pod] : cluster_.world().pods()) {
      if (pod.metadata.deletion_timestamp) unrest.push_back(fmt::format("pod {} is still being deleted", key.text()));
      if (pod.status.phase != "Running") continue;
      should_run.insert(pod.metadata.uid);
      const auto app = pod.metadata.labels.find("app");
      if (app != pod.metadata.labels.end() && app->second == "web" && !pod.metadata.deletion_timestamp) ++web;
    }
    if (web != replicas_) unrest.push_back(fmt::format("{} of {} replicas run", web, replicas_));
    for (std::size_t i = 0; i < cluster_.node_count(); ++i) {
      for (const auto& [uid, pod] : cluster_.running_on(i)) {
        if (should_run.erase(uid) == 0)
          unrest.push_back(fmt::format("{} runs on {} but should not", pod.text(), cluster_.node_name(i)));
      }
    }
    if (!should_run.empty()) unrest.push_back(fmt::format("{} pods are Running without a process", should_run.size()));
    return unrest;
  }

  /// With the virtual time of each line.
  telemetry::Log timed_log() {
    if (!log_) return {};
    return telemetry::Log(
        [this](telemetry::Level level, std::string_view event, std::span<const telemetry::Field> fields) {
          std::vector<telemetry::Field> timed{
              {"t_s", std::chrono::duration<double>(cluster_.time().now().mono.time_since_epoch()).count()}};
          timed.insert(timed.end(), fields.begin(), fields.end());
          log_(level, event, timed);
        });
  }

  Rng rng_;
  telemetry::Log::Sink log_;
  std::string summary_;
  bool nothing_lost_ = false;  // and nobody crashes who makes pods
  std::int64_t replicas_ = 0;
  int hogs_ = 0;
  Cluster cluster_;
};

}  // namespace

Report run_swarm_seed(std::uint64_t seed, telemetry::Log::Sink log) {
  return Swarm(seed, std::move(log)).run();
}

}  // namespace spillway::sim
