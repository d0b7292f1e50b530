// Placement of one pod after another, on clusters of three sizes with 30 pods on each node: the placer, which evaluates
// only changed nodes again, beside the plain scan of all rules on all nodes that defines its answers (place_pod). Pods
// that no object selects, pods of a ReplicaSet, and pods whose topology spread is required; items are pods placed. Only
// ratios within one run mean anything.
#include "api/codec/codec.h"
#include "policy/scheduling/place.h"
#include "policy/scheduling/placer.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::scheduling {
namespace {

constexpr std::int64_t kZones = 3;
constexpr std::int64_t kPodsPerNode = 30;

std::string node_name(std::int64_t number) {
  return fmt::format("node-{:05}", number);
}

std::shared_ptr<const api::Node> make_node(std::int64_t number) {
  auto document = api::parse_json(fmt::format(
      R"({{"apiVersion": "v1", "kind": "Node",
           "metadata": {{"name": "{0}", "labels": {{"kubernetes.io/hostname": "{0}", "topology.kubernetes.io/zone": "zone-{1}"}}}},
           "status": {{"capacity": {{"cpu": "64k", "memory": "256Ti", "pods": "1M"}},
                       "allocatable": {{"cpu": "64k", "memory": "256Ti", "pods": "1M"}}}}}})",
      node_name(number), number % kZones));
  return std::make_shared<const api::Node>(api::decode<api::Node>(*document).value());
}

enum class Sort { kAlone, kOwned, kSpread };

api::Pod make_pod(Sort sort) {
  constexpr std::string_view kSpread = R"(, "topologySpreadConstraints": [{"maxSkew": 1,
      "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}])";
  auto document = api::parse_json(fmt::format(
      R"({{"apiVersion": "v1", "kind": "Pod",
           "metadata": {{"namespace": "default", "name": "pod", "labels": {{"app": "{}"}}{}}},
           "spec": {{"containers": [{{"name": "main", "image": "none",
                     "resources": {{"requests": {{"cpu": "10m", "memory": "16Mi"}}}}}}]{}}}}})",
      sort == Sort::kAlone ? "batch" : "web",
      sort == Sort::kOwned
          ? R"(, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true}])"
          : "",
      sort == Sort::kSpread ? kSpread : ""));
  return api::decode<api::Pod>(*document).value();
}

struct Filled {
  explicit Filled(std::int64_t nodes) {
    placer.surroundings().set_namespace("default", api::StringMap{});
    placer.surroundings().set_owner(api::KindId{"apps", "ReplicaSet"}, "default", "web",
                                    api::LabelSelector{{{"app", api::LabelRequirement::Op::kEquals, {"web"}}}});
    const api::Pod owned = make_pod(Sort::kOwned);
    const api::Pod alone = make_pod(Sort::kAlone);
    for (std::int64_t number = 0; number < nodes; ++number) {
      placer.set_node(make_node(number));
      for (std::int64_t pod = 0; pod < kPodsPerNode; ++pod)
        placer.add_pod(node_name(number), pod % 2 == 0 ? owned : alone);
    }
  }

  Placer placer;
};

void place_by_placer(benchmark::State& state, Sort sort) {
  Filled cluster(state.range(0));
  const api::Pod pod = make_pod(sort);
  for (auto _ : state) {
    const Placement placement = cluster.placer.place(pod);
    if (!placement.node) return state.SkipWithError("the pod must fit");
    cluster.placer.add_pod(*placement.node, pod);
  }
  state.SetItemsProcessed(state.iterations());
}

void place_by_scan(benchmark::State& state, Sort sort) {
  Filled cluster(state.range(0));
  const api::Pod pod = make_pod(sort);
  for (auto _ : state) {
    const Placement placement =
        place_pod(pod, cluster.placer.nodes(), default_profile(), {}, cluster.placer.surroundings());
    if (!placement.node) return state.SkipWithError("the pod must fit");
    cluster.placer.add_pod(*placement.node, pod);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(place_by_placer, alone, Sort::kAlone)->Arg(100)->Arg(1000)->Arg(5000);
BENCHMARK_CAPTURE(place_by_scan, alone, Sort::kAlone)->Arg(100)->Arg(1000)->Arg(5000);
BENCHMARK_CAPTURE(place_by_placer, replica_set, Sort::kOwned)->Arg(100)->Arg(1000)->Arg(5000);
BENCHMARK_CAPTURE(place_by_scan, replica_set, Sort::kOwned)->Arg(100)->Arg(1000)->Arg(5000);
BENCHMARK_CAPTURE(place_by_placer, spread, Sort::kSpread)->Arg(100)->Arg(1000)->Arg(5000);
BENCHMARK_CAPTURE(place_by_scan, spread, Sort::kSpread)->Arg(100)->Arg(1000)->Arg(5000);

}  // namespace
}  // namespace spillway::scheduling
