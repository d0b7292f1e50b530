// The cost of one write before it is stored: text to document, document to canonical form, owners tracked; the lease of
// a node, a node's heartbeat patch. BM_Parse is the yardstick.
#include "api/patch/apply.h"
#include "api/patch/patch.h"
#include "api/schema/typed.h"

#include <benchmark/benchmark.h>

namespace spillway::api {
namespace {

constexpr std::string_view kLease = R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{
"name":"node-17","namespace":"kube-node-lease","uid":"0f6a1f0e-6f0a-4c3b-9a55-0d2d7f1f7c11","resourceVersion":"184467",
"creationTimestamp":"2026-01-02T03:04:05Z","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"node-17",
"uid":"77c31cf0-4b60-4b51-8f76-0f8a64e1e7d5"}]},"spec":{"holderIdentity":"node-17","leaseDurationSeconds":40,
"renewTime":"2026-01-02T03:04:05.000001Z"}})";

constexpr std::string_view kHeartbeat = R"({"status":{"$setElementOrder/conditions":[{"type":"MemoryPressure"},
{"type":"DiskPressure"},{"type":"PIDPressure"},{"type":"Ready"}],"conditions":[
{"lastHeartbeatTime":"2026-01-02T03:09:05Z","type":"MemoryPressure"},
{"lastHeartbeatTime":"2026-01-02T03:09:05Z","type":"DiskPressure"},
{"lastHeartbeatTime":"2026-01-02T03:09:05Z","type":"PIDPressure"},
{"lastHeartbeatTime":"2026-01-02T03:09:05Z","type":"Ready"}]}})";

const Type& lease_type() {
  return *find_kind("coordination.k8s.io/v1", "Lease");
}

const Type& node_type() {
  return *find_kind("v1", "Node");
}

FieldWriter kubelet() {
  return {"kubelet", "", WallTime{seconds(1'767'323'045)}, {}};
}

Json lease(std::string_view renewed) {
  Json document = parse_json(kLease).value();
  document.make({"spec", "renewTime"}) = renewed;
  return read_body(lease_type(), document)->object;
}

Json node() {
  Json::Array conditions;
  for (const std::string_view type : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
    conditions.push_back(Json::object({{"type", type},
                                       {"status", "False"},
                                       {"lastHeartbeatTime", "2026-01-02T03:04:05Z"},
                                       {"lastTransitionTime", "2026-01-01T03:04:05Z"},
                                       {"reason", "KubeletHasNoPressure"},
                                       {"message", "kubelet has no pressure"}}));
  }
  Json::Array images;
  for (int i = 0; i < 50; ++i) {
    images.push_back(Json::object(
        {{"names", Json::array({fmt::format("registry.example.com/app-{}:1", i)})}, {"sizeBytes", 10'000'000 + i}}));
  }
  Json document = Json::object({{"metadata", Json::object({{"name", "node-17"}})}});
  document.make({"status", "conditions"}) = Json(std::move(conditions));
  document.make({"status", "images"}) = Json(std::move(images));
  document.make({"status", "capacity"}) = Json::object({{"cpu", "8"}, {"memory", "16Gi"}, {"pods", "110"}});
  return read_body(node_type(), document)->object;
}

void BM_Parse(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_json(kLease));
}

void BM_ReadLease(benchmark::State& state) {
  const Json document = parse_json(kLease).value();
  for (auto _ : state) benchmark::DoNotOptimize(read_body(lease_type(), document));
}

void BM_TrackLease(benchmark::State& state) {
  const Json live = track_update(lease_type(), nullptr, lease("2026-01-02T03:04:05.000001Z"), kubelet());
  const Json next = lease("2026-01-02T03:04:15.000001Z");
  for (auto _ : state) benchmark::DoNotOptimize(track_update(lease_type(), &live, next, kubelet()));
}

void BM_Heartbeat(benchmark::State& state) {
  const Json live = node();
  const Json patch = parse_json(kHeartbeat).value();
  for (auto _ : state) {
    benchmark::DoNotOptimize(apply_patch(node_type(), live, PatchType::kStrategicMerge, patch));
  }
}

void BM_ReadNode(benchmark::State& state) {
  const Json live = node();
  for (auto _ : state) benchmark::DoNotOptimize(read_patched(node_type(), live));
}

void BM_TrackHeartbeat(benchmark::State& state) {
  const Json live = track_update(node_type(), nullptr, node(), kubelet());
  const Json patch = parse_json(kHeartbeat).value();
  const Json next = *apply_patch(node_type(), live, PatchType::kStrategicMerge, patch);
  for (auto _ : state) benchmark::DoNotOptimize(track_update(node_type(), &live, next, kubelet()));
}

BENCHMARK(BM_Parse);
BENCHMARK(BM_ReadLease);
BENCHMARK(BM_TrackLease);
BENCHMARK(BM_Heartbeat);
BENCHMARK(BM_ReadNode);
BENCHMARK(BM_TrackHeartbeat);

}  // namespace
}  // namespace spillway::api
