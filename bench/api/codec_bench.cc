// The cost of one watch event: text to document, document to Pod, Pod back over the document, document to text.
#include "api/codec/codec.h"
#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

namespace spillway::api {
namespace {

/// A pod of a ReplicaSet as an API server returns it: two containers, probes, volumes, managed fields, status.
constexpr std::string_view kPod = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"cart-6d5f7c9b8-x2x4k",
"generateName":"cart-6d5f7c9b8-","namespace":"shop","uid":"0f6a1f0e-6f0a-4c3b-9a55-0d2d7f1f7c11",
"resourceVersion":"184467","creationTimestamp":"2026-01-02T03:04:05Z",
"labels":{"app":"cart","pod-template-hash":"6d5f7c9b8","tier":"web"},"annotations":{"example.com/rev":"41"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"cart-6d5f7c9b8",
"uid":"77c31cf0-4b60-4b51-8f76-0f8a64e1e7d5","controller":true,"blockOwnerDeletion":true}],
"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1",
"time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},
"f:app":{},"f:pod-template-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"cart\"}":{".":{},"f:image":{},
"f:name":{},"f:resources":{}}},"f:dnsPolicy":{},"f:restartPolicy":{}}}}]},
"spec":{"volumes":[{"name":"tmp","emptyDir":{"sizeLimit":"64Mi"}},{"name":"cfg","configMap":{"name":"cart",
"defaultMode":420}},{"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,
"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}]}}],
"containers":[{"name":"cart","image":"registry.example.com/shop/cart:1.41","command":["/cart"],"args":["--port=8080"],
"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"LEVEL","value":"info"},{"name":"POD_IP",
"valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}],"resources":{"limits":{"cpu":"1",
"memory":"512Mi"},"requests":{"cpu":"250m","memory":"256Mi"}},"volumeMounts":[{"name":"tmp","mountPath":"/tmp"},
{"name":"cfg","mountPath":"/etc/cart","readOnly":true}],"livenessProbe":{"httpGet":{"path":"/healthz","port":"http",
"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"},
{"name":"proxy","image":"registry.example.com/mesh/proxy:2.3","resources":{"requests":{"cpu":"50m","memory":"64Mi"}},
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],
"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default",
"serviceAccount":"default","nodeName":"node-17","securityContext":{},"schedulerName":"default-scheduler",
"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,
"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},
"status":{"phase":"Running","conditions":[{"type":"Initialized","status":"True","lastProbeTime":null,
"lastTransitionTime":"2026-01-02T03:04:06Z"},{"type":"Ready","status":"True","lastProbeTime":null,
"lastTransitionTime":"2026-01-02T03:04:09Z"},{"type":"ContainersReady","status":"True","lastProbeTime":null,
"lastTransitionTime":"2026-01-02T03:04:09Z"},{"type":"PodScheduled","status":"True","lastProbeTime":null,
"lastTransitionTime":"2026-01-02T03:04:05Z"}],"hostIP":"10.0.0.17","hostIPs":[{"ip":"10.0.0.17"}],"podIP":"10.1.17.4",
"podIPs":[{"ip":"10.1.17.4"}],"startTime":"2026-01-02T03:04:06Z","containerStatuses":[{"name":"cart",
"state":{"running":{"startedAt":"2026-01-02T03:04:08Z"}},"lastState":{},"ready":true,"restartCount":0,
"image":"registry.example.com/shop/cart:1.41","imageID":"sha256:1f","containerID":"containerd://5a","started":true},
{"name":"proxy","state":{"running":{"startedAt":"2026-01-02T03:04:08Z"}},"lastState":{},"ready":true,"restartCount":0,
"image":"registry.example.com/mesh/proxy:2.3","imageID":"sha256:2f","containerID":"containerd://6b","started":true}],
"qosClass":"Burstable"}})";

Json document_of(std::string_view text) {
  auto document = parse_json(text);
  if (!document) std::abort();
  return *std::move(document);
}

void copy_document(benchmark::State& state) {
  const Json pod = document_of(kPod);
  for (auto _ : state) benchmark::DoNotOptimize(Json(pod));
}

/// The change that a status patch makes to a document that others read meanwhile.
void copy_and_change_document(benchmark::State& state) {
  const Json pod = document_of(kPod);
  for (auto _ : state) {
    Json changed = pod;
    changed.make({"status", "phase"}) = "Failed";
    benchmark::DoNotOptimize(changed);
  }
}

void parse_text(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_json(kPod));
  state.SetBytesProcessed(static_cast<std::int64_t>(kPod.size()) * static_cast<std::int64_t>(state.iterations()));
}

void decode_pod(benchmark::State& state) {
  const Json document = document_of(kPod);
  for (auto _ : state) benchmark::DoNotOptimize(decode<Pod>(document));
}

void encode_pod(benchmark::State& state) {
  const Pod pod = decode<Pod>(document_of(kPod)).value_or(Pod());
  for (auto _ : state) benchmark::DoNotOptimize(encode(pod));
}

void encode_pod_over_its_document(benchmark::State& state) {
  Json document = document_of(kPod);
  const Pod pod = decode<Pod>(document).value_or(Pod());
  for (auto _ : state) {
    encode_over(pod, document);
    benchmark::DoNotOptimize(document);
  }
}

void print_text(benchmark::State& state) {
  const Json document = document_of(kPod);
  for (auto _ : state) benchmark::DoNotOptimize(to_text(document));
  state.SetBytesProcessed(static_cast<std::int64_t>(to_text(document).size()) *
                          static_cast<std::int64_t>(state.iterations()));
}

/// The same object for clients that read protobuf.
void print_protobuf(benchmark::State& state) {
  const Json document = document_of(kPod);
  const Type& type = *find_kind("v1", "Pod");
  const std::string text = write_protobuf(type, document);
  for (auto _ : state) benchmark::DoNotOptimize(write_protobuf(type, document));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * static_cast<std::int64_t>(state.iterations()));
  state.counters["of_json"] = static_cast<double>(text.size()) / static_cast<double>(to_text(document).size());
}

void read_protobuf_body(benchmark::State& state) {
  const Type& type = *find_kind("v1", "Pod");
  const std::string text = write_protobuf(type, document_of(kPod));
  for (auto _ : state) benchmark::DoNotOptimize(read_protobuf(type, text));
}

void parse_decode_encode_print(benchmark::State& state) {
  for (auto _ : state) {
    Json document = document_of(kPod);
    const auto pod = decode<Pod>(document);
    encode_over(*pod, document);
    benchmark::DoNotOptimize(to_text(document));
  }
}

BENCHMARK(copy_document);
BENCHMARK(copy_and_change_document);
BENCHMARK(parse_text);
BENCHMARK(decode_pod);
BENCHMARK(encode_pod);
BENCHMARK(encode_pod_over_its_document);
BENCHMARK(print_text);
BENCHMARK(print_protobuf);
BENCHMARK(read_protobuf_body);
BENCHMARK(parse_decode_encode_print);

}  // namespace
}  // namespace spillway::api
