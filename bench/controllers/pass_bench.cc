// The cost of one pass of a controller: it reads all of its objects, finds each as it should be, and writes nothing.
// The cluster is made by the product's own controllers, scheduler and API server; then a fresh process of controllers
// reads it, and the measured step is the one in which its caches are full and it syncs everything. Items are objects:
// the pods and their owners.
#include "api/codec/codec.h"
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using Enabled = ControllerSet::Enabled;

constexpr int kPods = 10'000;
constexpr int kPodsPerOwner = 10;
constexpr int kNodes = 110;
// The list that is answered last: the controllers begin in the step in which its answer arrives.
constexpr std::string_view kHeldBack = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

Enabled none() {
  Enabled enabled;
  enabled.node_lifecycle = enabled.taint_eviction = enabled.pod_gc = enabled.replica_set = enabled.replication = false;
  enabled.daemon_set = enabled.deployment = enabled.volume_binder = enabled.volume_protection = false;
  enabled.stateful_set = enabled.horizontal_autoscaler = false;
  enabled.batch = {.job = false, .cron_job = false, .ttl_after_finished = false};
  enabled.endpoints = {.endpoints = false, .endpoint_slices = false, .slice_mirroring = false};
  return enabled;
}

enum class Owners : std::uint8_t { kDeployments, kDaemonSets, kStatefulSets, kJobs };

std::string owner_name(int number) {
  return fmt::format("app-{:05}", number);
}

Json owner(Owners kind, int number) {
  const std::string name = owner_name(number);
  Json document = api::parse_json(fmt::format(
                                      R"({{"metadata": {{"name": "{0}", "namespace": "default"}},
       "spec": {{"template": {{"metadata": {{"labels": {{"app": "{0}"}}}},
                              "spec": {{"containers": [{{"name": "main", "image": "none",
                                         "resources": {{"requests": {{"cpu": "1m", "memory": "1Mi"}}}}}}]}}}}}}}})",
                                      name))
                      .value();
  document["apiVersion"] = kind == Owners::kJobs ? "batch/v1" : "apps/v1";
  Json& spec = document["spec"];
  if (kind == Owners::kJobs) {
    spec["parallelism"] = kPodsPerOwner;
    spec["completions"] = kPodsPerOwner;
    spec["template"]["spec"]["restartPolicy"] = "Never";
    document["kind"] = "Job";
    return document;
  }
  spec["selector"] = Json::object({{"matchLabels", Json::object({{"app", name}})}});
  if (kind != Owners::kDaemonSets) spec["replicas"] = kPodsPerOwner;
  if (kind == Owners::kStatefulSets) {
    document["kind"] = "StatefulSet";
    spec["serviceName"] = name;
    spec["podManagementPolicy"] = "Parallel";
  } else {
    document["kind"] = kind == Owners::kDaemonSets ? "DaemonSet" : "Deployment";
  }
  return document;
}

Json service(int number) {
  return api::parse_json(fmt::format(R"({{"apiVersion": "v1", "kind": "Service",
       "metadata": {{"name": "{0}", "namespace": "default"}},
       "spec": {{"selector": {{"app": "{0}"}}, "ports": [{{"port": 80}}]}}}})",
                                     owner_name(number)))
      .value();
}

std::string_view collection_of(Owners kind) {
  switch (kind) {
    case Owners::kDeployments:
      return "/apis/apps/v1/namespaces/default/deployments";
    case Owners::kDaemonSets:
      return "/apis/apps/v1/namespaces/default/daemonsets";
    case Owners::kStatefulSets:
      return "/apis/apps/v1/namespaces/default/statefulsets";
    case Owners::kJobs:
      return "/apis/batch/v1/namespaces/default/jobs";
  }
  std::unreachable();
}

Json node(int number) {
  return api::parse_json(fmt::format(R"({{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "node-{0:03}",
       "labels": {{"kubernetes.io/hostname": "node-{0:03}"}}}},
       "status": {{"capacity": {{"cpu": "64", "memory": "64Gi", "pods": "1k"}},
                   "allocatable": {{"cpu": "64", "memory": "64Gi", "pods": "1k"}}}}}})",
                                     number))
      .value();
}

/// Reports the status that the pod's kubelet would report.
void begin_to_run(TestCluster& cluster, const Json& pod) {
  const std::string path =
      fmt::format("/api/v1/namespaces/default/pods/{}/status", pod.string_at({"metadata", "name"}));
  const auto number = static_cast<unsigned>(std::hash<std::string>()(path));
  const Json status = api::parse_json(fmt::format(R"({{"status": {{"phase": "Running", "podIP": "10.{0}.{1}.{2}",
          "podIPs": [{{"ip": "10.{0}.{1}.{2}"}}],
          "conditions": [{{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}}]}}}})",
                                                  number % 250, number / 250 % 250, 1 + number / 62'500 % 250))
                          .value();
  cluster.merge(path, status);
}

/// A cluster in which every wanted pod runs, and each owner has a Service.
std::unique_ptr<TestCluster> converged(Owners kind) {
  auto cluster = std::make_unique<TestCluster>();
  telemetry::Registry registry;
  telemetry::Registry scheduler_registry;
  ControllerSet::Options options;
  options.enabled.node_lifecycle = options.enabled.taint_eviction = false;  // the benchmark has no heartbeats
  ControllerSet controllers(options, Rng(1), telemetry::Log(), registry);
  Scheduler scheduler({}, Rng(2), telemetry::Log(), scheduler_registry);
  for (int i = 0; i < kNodes; ++i) {
    cluster->create("/api/v1/nodes", node(i));
    cluster->merge(fmt::format("/api/v1/nodes/node-{:03}", i),
                   api::parse_json(R"({"spec": {"taints": null}})").value());
  }
  const int owners = kind == Owners::kDaemonSets ? kPods / kNodes : kPods / kPodsPerOwner;
  for (int i = 0; i < owners; ++i) {
    cluster->create(std::string(collection_of(kind)), owner(kind, i));
    cluster->create("/api/v1/namespaces/default/services", service(i));
  }
  cluster->run(controllers);
  cluster->run(scheduler);
  cluster->advance(minutes(1));
  for (const Json& pod : cluster->list("/api/v1/pods")) begin_to_run(*cluster, pod);
  cluster->advance(minutes(3));
  cluster->stop(scheduler);
  cluster->stop(controllers);
  return cluster;
}

/// A fresh set of controllers whose caches are filled but for one empty collection.
class Fresh {
 public:
  Fresh(TestCluster& cluster, Enabled enabled)
      : cluster_(cluster), controllers_(options(enabled), Rng(3), telemetry::Log(), registry_) {
    controllers_.start(cluster_.now());
    while (!answer()) {
    }
  }

  /// The pass. Returns how long it took.
  std::chrono::duration<double> time_pass() {
    const client::ApiEvent last = client::CallDone{held_back_, list(std::string(kHeldBack))};
    const auto begin = std::chrono::steady_clock::now();
    controllers_.on_api_event(last, cluster_.now());
    return std::chrono::steady_clock::now() - begin;
  }

  bool wrote() {
    for (const client::ApiCommand& command : controllers_.take_api_commands()) {
      const auto* call = std::get_if<client::SendCall>(&command);
      wrote_ = wrote_ || (call != nullptr && call->request.method != api::Method::kGet);
    }
    return wrote_;
  }

  bool synced() const { return controllers_.synced(); }

 private:
  static ControllerSet::Options options(Enabled enabled) {
    ControllerSet::Options options;
    options.enabled = enabled;
    return options;
  }

  api::Response list(std::string target) {
    auto document = std::make_shared<const Json>(cluster_.get(std::move(target)));
    return {200, {{"Content-Type", "application/json"}}, api::to_text(*document), document};
  }

  /// True if all calls are answered, except those held back.
  bool answer() {
    std::vector<client::SendCall> calls;
    for (client::ApiCommand& command : controllers_.take_api_commands()) {
      if (auto* call = std::get_if<client::SendCall>(&command)) calls.push_back(std::move(*call));
    }
    for (const client::SendCall& call : calls) {
      if (call.request.target.starts_with(kHeldBack)) {
        held_back_ = call.id;
      } else {
        wrote_ = wrote_ || call.request.method != api::Method::kGet;
        controllers_.on_api_event(client::CallDone{call.id, list(call.request.target)}, cluster_.now());
      }
    }
    return calls.empty();
  }

  TestCluster& cluster_;
  telemetry::Registry registry_;
  ControllerSet controllers_;
  client::CallId held_back_ = 0;
  bool wrote_ = false;
};

/// The number of objects of the pass.
std::int64_t objects(TestCluster& cluster, Owners kind) {
  return static_cast<std::int64_t>(cluster.list("/api/v1/pods").size() +
                                   cluster.list(std::string(collection_of(kind))).size());
}

void pass(benchmark::State& state, Owners kind, const std::function<void(Enabled&)>& enable) {
  static std::map<Owners, std::unique_ptr<TestCluster>> clusters;  // the slow part
  std::unique_ptr<TestCluster>& cluster = clusters[kind];
  if (!cluster) cluster = converged(kind);
  Enabled enabled = none();
  enable(enabled);
  for (auto _ : state) {
    Fresh fresh(*cluster, enabled);
    if (fresh.synced()) return state.SkipWithError("the pass must not have begun");
    state.SetIterationTime(fresh.time_pass().count());
    if (!fresh.synced()) return state.SkipWithError("the pass must have begun");
    if (fresh.wrote()) return state.SkipWithError("there must be nothing to write");
  }
  const std::int64_t seen = objects(*cluster, kind);
  state.counters["objects"] = static_cast<double>(seen);
  state.SetItemsProcessed(state.iterations() * seen);
}

void set_up(benchmark::internal::Benchmark* bench) {
  bench->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);
}

// clang-format off
BENCHMARK_CAPTURE(pass, deployments, Owners::kDeployments, [](Enabled& e) { e.deployment = true; })->Apply(set_up);
BENCHMARK_CAPTURE(pass, replica_sets, Owners::kDeployments, [](Enabled& e) { e.replica_set = true; })->Apply(set_up);
BENCHMARK_CAPTURE(pass, daemon_sets, Owners::kDaemonSets, [](Enabled& e) { e.daemon_set = true; })->Apply(set_up);
BENCHMARK_CAPTURE(pass, stateful_sets, Owners::kStatefulSets, [](Enabled& e) { e.stateful_set = true; })->Apply(set_up);
BENCHMARK_CAPTURE(pass, jobs, Owners::kJobs, [](Enabled& e) { e.batch.job = true; })->Apply(set_up);
BENCHMARK_CAPTURE(pass, endpoint_slices, Owners::kDeployments, [](Enabled& e) { e.endpoints.endpoint_slices = true; })->Apply(set_up);
BENCHMARK_CAPTURE(pass, endpoints, Owners::kDeployments, [](Enabled& e) { e.endpoints.endpoints = true; })->Apply(set_up);
BENCHMARK_CAPTURE(pass, taint_eviction, Owners::kDeployments, [](Enabled& e) { e.taint_eviction = true; })->Apply(set_up);
BENCHMARK_CAPTURE(pass, pod_gc, Owners::kDeployments, [](Enabled& e) { e.pod_gc = true; })->Apply(set_up);
// clang-format on

}  // namespace
}  // namespace spillway::controllers
