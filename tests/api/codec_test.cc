#include "api/codec/codec.h"

#include "support/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::api {
namespace {

Json parsed(std::string_view text) {
  auto document = parse_json(text);
  EXPECT_TRUE(document) << text << ": " << document.error().text();
  return document ? *std::move(document) : Json();
}

template <typename T>
T decoded(const Json& document) {
  auto value = decode<T>(document);
  EXPECT_TRUE(value) << value.error().text();
  return value ? *std::move(value) : T();
}

template <typename T>
std::string error_of(std::string_view text) {
  const auto value = decode<T>(parsed(text));
  return value ? "no error" : value.error().text();
}

// Everything a decision reads, and beside it members that no type of ours knows: "x-…".
constexpr std::string_view kPod = R"({
  "apiVersion": "v1", "kind": "Pod", "x-top": [1, 2],
  "metadata": {
    "name": "cart-7", "namespace": "shop", "uid": "u-1", "resourceVersion": "41", "generation": 3,
    "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"app": "cart"}, "annotations": {"a": ""},
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart", "uid": "u-0",
                         "controller": true, "blockOwnerDeletion": false, "x-owner": 1}],
    "finalizers": ["example.com/hold"], "managedFields": [{"manager": "kubectl"}]
  },
  "spec": {
    "nodeName": "n1", "nodeSelector": {"zone": "a"}, "affinity": {"nodeAffinity": {}},
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
    "initContainers": [{"name": "net", "image": "i", "restartPolicy": "Always", "x-probe": {}}],
    "containers": [
      {"name": "a", "image": "img", "command": ["run"], "args": ["-v"], "workingDir": "/w",
       "env": [{"name": "A", "value": "1"},
               {"name": "IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
               {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
       "ports": [{"name": "http", "containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "TCP"}],
       "resources": {"requests": {"cpu": "0.1", "memory": "1024Mi"}, "limits": {"memory": "2Gi"}},
       "securityContext": {"runAsUser": 0}},
      {"name": "b", "resources": {}, "livenessProbe": {"periodSeconds": 3}}],
    "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi", "x-dir": 1}},
                {"name": "cfg", "configMap": {"name": "c"}}],
    "restartPolicy": "Always", "terminationGracePeriodSeconds": 0, "activeDeadlineSeconds": 5, "priority": 0,
    "priorityClassName": "low", "preemptionPolicy": "Never", "schedulerName": "default-scheduler",
    "serviceAccountName": "default", "hostNetwork": true, "overhead": {"cpu": "250m"}, "resources": {},
    "dnsPolicy": "ClusterFirst"
  },
  "status": {
    "phase": "Running", "reason": "r", "message": "m", "hostIP": "10.0.0.2", "hostIPs": [{"ip": "10.0.0.2"}],
    "podIP": "10.1.0.7", "podIPs": [{"ip": "10.1.0.7"}, {"ip": "fd00::7"}], "qosClass": "Burstable",
    "nominatedNodeName": "n2", "resize": "Proposed", "startTime": "2026-01-02T03:04:06Z",
    "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null,
                    "lastTransitionTime": "2026-01-02T03:04:07Z", "x-condition": true}],
    "initContainerStatuses": [{"name": "net", "state": {"waiting": {"reason": "PodInitializing"}}, "lastState": {},
                               "ready": false, "restartCount": 0, "image": "", "imageID": ""}],
    "containerStatuses": [
      {"name": "a", "ready": true, "started": true, "restartCount": 2, "image": "img", "imageID": "id",
       "containerID": "process://1", "state": {"running": {"startedAt": "2026-01-02T03:04:08Z"}},
       "lastState": {"terminated": {"exitCode": 137, "signal": 9, "reason": "OOMKilled", "message": "m",
                                    "startedAt": "2026-01-02T03:04:01Z", "finishedAt": "2026-01-02T03:04:02Z",
                                    "containerID": "process://0"}},
       "resources": {"requests": {"cpu": "100m"}}, "allocatedResources": {"cpu": "100m"}}]
  }
})";

TEST(CodecPod, ReadsEveryFieldItKnows) {
  const Pod pod = decoded<Pod>(parsed(kPod));
  EXPECT_EQ(pod.key(), (PodKey{"shop", "cart-7"}));
  EXPECT_EQ(pod.metadata.generation, 3);
  EXPECT_EQ(pod.metadata.owner_references.at(0).controller, true);
  EXPECT_EQ(pod.metadata.owner_references.at(0).block_owner_deletion, false);
  EXPECT_EQ(pod.spec.tolerations.at(0).toleration_seconds, 0);
  EXPECT_EQ(pod.spec.containers.at(0).env.at(1).field->field_path, "status.podIP");
  EXPECT_EQ(pod.spec.containers.at(0).ports.at(0).host_port, 8080);
  EXPECT_EQ(pod.spec.containers.at(0).resources.requests.at("memory"), Quantity::of_bytes(gibibytes(1)));
  EXPECT_EQ(pod.spec.volumes.at(0).empty_dir->size_limit, Quantity::of_bytes(mebibytes(64)));
  EXPECT_EQ(pod.spec.volumes.at(1).source, "configMap");
  EXPECT_EQ(pod.spec.termination_grace_period_seconds, 0);
  EXPECT_EQ(pod.spec.priority, 0);
  EXPECT_TRUE(pod.spec.resources.has_value());
  EXPECT_EQ(pod.status.conditions.at(0).last_probe_time, std::nullopt);
  EXPECT_EQ(pod.status.container_statuses.at(0).last_state.terminated->exit_code, 137);
  EXPECT_EQ(pod.status.container_statuses.at(0).resources->requests.at("cpu"), Quantity::of_milli(100));
}

TEST(CodecPod, WritingBackWhatWasReadChangesNothing) {
  const Json document = parsed(kPod);
  Json written = document;
  encode_over(decoded<Pod>(document), written);
  EXPECT_EQ(to_pretty_text(written), to_pretty_text(document));
}

TEST(CodecPod, EncodingAloneKeepsTheValue) {
  Pod pod = decoded<Pod>(parsed(kPod));
  EXPECT_EQ(pod.status.further_ips, std::vector<std::string>{"fd00::7"});
  pod.status.further_ips.clear();  // read, never written: writers of a status do not change them
  EXPECT_EQ(decoded<Pod>(encode(pod)), pod);
}

TEST(CodecPod, UnknownFieldsSurviveAChange) {
  Json document = parsed(kPod);
  Pod pod = decoded<Pod>(document);
  pod.metadata.labels["tier"] = "web";
  pod.spec.containers.erase(pod.spec.containers.begin());  // "b" moves to the front and keeps its probe
  pod.spec.volumes.erase(pod.spec.volumes.begin());
  pod.status.conditions.insert(pod.status.conditions.begin(),
                               PodCondition{.type = "DisruptionTarget", .status = "True"});
  pod.status.phase.clear();
  encode_over(pod, document);
  EXPECT_NE(document.find("x-top"), nullptr);
  EXPECT_NE(document.at({"metadata", "managedFields"}), nullptr);
  EXPECT_EQ(document.string_at({"metadata", "labels", "tier"}), "web");
  EXPECT_EQ(document.at({"status", "phase"}), nullptr) << "zero values are removed";
  const Json& container = document.at({"spec", "containers"})->if_array()->at(0);
  EXPECT_EQ(container.string_at({"name"}), "b");
  EXPECT_NE(container.at({"livenessProbe", "periodSeconds"}), nullptr);
  EXPECT_EQ(document.at({"spec", "volumes"})->if_array()->at(0).string_at({"configMap", "name"}), "c");
  const Json::Array& conditions = *document.at({"status", "conditions"})->if_array();
  ASSERT_EQ(conditions.size(), 2U);
  EXPECT_EQ(conditions[0].find("x-condition"), nullptr);
  EXPECT_NE(conditions[1].find("x-condition"), nullptr);
  EXPECT_EQ(decoded<Pod>(document), pod);
}

TEST(CodecPod, SpellingStaysUnlessTheAmountChanges) {
  Json document = parsed(R"({"kind":"Pod","spec":{"containers":[{"name":"a","resources":{
    "requests":{"cpu":0.1,"memory":"1024Mi"}}}]}})");
  Pod pod = decoded<Pod>(document);
  pod.spec.containers[0].resources.requests["memory"] = Quantity::of_bytes(gibibytes(2));
  encode_over(pod, document);
  const Json& requests = *document.at({"spec", "containers"})->if_array()->at(0).at({"resources", "requests"});
  EXPECT_EQ(to_text(requests), R"({"cpu":0.1,"memory":"2Gi"})");
}

TEST(CodecPod, AChangedVolumeLosesItsOldSource) {
  Json document = parsed(R"({"volumes":[{"name":"v","configMap":{"name":"c"}}]})");
  PodSpec spec = decoded<PodSpec>(document);
  spec.volumes[0].source = "emptyDir";
  spec.volumes[0].empty_dir = EmptyDirVolume{.medium = "Memory", .size_limit = {}};
  encode_over(spec, document);
  EXPECT_EQ(to_text(*document.find("volumes")), R"([{"emptyDir":{"medium":"Memory"},"name":"v"}])");
}

TEST(CodecPod, TheFirstOfSeveralAddressesCountsIfThereIsNoOther) {
  const PodStatus status = decoded<PodStatus>(parsed(R"({"podIPs":[{"ip":"10.1.0.9"},{"ip":"fd00::9"}]})"));
  EXPECT_EQ(status.pod_ip, "10.1.0.9");
  EXPECT_EQ(to_text(encode(status)), R"({"podIP":"10.1.0.9","podIPs":[{"ip":"10.1.0.9"}]})");
}

TEST(CodecPod, EmptyAndNullAreAbsent) {
  const Pod pod = decoded<Pod>(parsed(R"({"metadata":{"labels":null,"creationTimestamp":null},"spec":null,
    "status":{"conditions":[],"startTime":null}})"));
  EXPECT_EQ(pod, Pod());
  EXPECT_EQ(to_text(encode(Pod())), R"({"apiVersion":"v1","kind":"Pod"})");
}

TEST(CodecPod, EmptyListsAndObjectsOfTheBaseStay) {
  const std::string_view text =
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":null},"spec":{"containers":[]},"status":{}})";
  Json document = parsed(text);
  encode_over(Pod(), document);
  EXPECT_EQ(to_text(document), text);
}

TEST(CodecErrors, NameTheField) {
  EXPECT_EQ(error_of<Pod>(R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1x"}}}]}})"),
            "spec.containers[0].resources.requests[cpu]: \"1x\": quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  EXPECT_EQ(error_of<Pod>(R"({"spec":{"containers":[{},{"env":[{"name":"A"},{"name":7}]}]}})"),
            "spec.containers[1].env[1].name: expected a string, got a number");
  EXPECT_EQ(error_of<Pod>(R"({"spec":{"containers":[{"env":[{"valueFrom":{"fieldRef":[]}}]}]}})"),
            "spec.containers[0].env[0].valueFrom.fieldRef: expected an object, got a list");
  EXPECT_EQ(error_of<Pod>(R"({"metadata":{"labels":{"a":"b","c":true}}})"),
            "metadata.labels[c]: expected a string, got a boolean");
  EXPECT_EQ(error_of<Pod>(R"({"metadata":{"finalizers":["a",null]}})"),
            "metadata.finalizers[1]: expected a string, got null");
  EXPECT_EQ(error_of<Pod>(R"({"spec":{"containers":{}}})"), "spec.containers: expected a list, got an object");
  EXPECT_EQ(error_of<Pod>(R"({"spec":{"containers":["a"]}})"), "spec.containers[0]: expected an object, got a string");
  EXPECT_EQ(error_of<Pod>(R"({"metadata":{"creationTimestamp":"yesterday"}})"),
            "metadata.creationTimestamp: \"yesterday\" is not an RFC 3339 time such as 2026-01-02T03:04:05Z");
  EXPECT_EQ(error_of<Pod>(R"({"spec":{"priority":2147483648}})"),
            "spec.priority: expected a 32-bit integer, got 2147483648");
  EXPECT_EQ(error_of<Pod>(R"({"spec":{"priority":1.5}})"),
            "spec.priority: expected a 32-bit integer, got a number with a fraction or exponent");
  EXPECT_EQ(error_of<Pod>(R"({"spec":{"terminationGracePeriodSeconds":9223372036854775808}})"),
            "spec.terminationGracePeriodSeconds: expected a 64-bit integer, got 9223372036854775808");
  EXPECT_EQ(error_of<Summary>(R"({"node":{"memory":{"usageBytes":-1}}})"),
            "node.memory.usageBytes: expected an unsigned 64-bit integer, got -1");
  EXPECT_EQ(error_of<Pod>(R"({"kind":"Node"})"), "kind: expected Pod, got Node");
  EXPECT_EQ(error_of<Pod>(R"([])"), "expected an object, got a list");
  EXPECT_EQ(error_of<ReplicaSet>(R"({"spec":{"selector":{"matchLabels":{"a":1}}}})"),
            "spec.selector.matchLabels[a]: expected a string");
  EXPECT_EQ(error_of<ReplicaSet>(R"({"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}})"),
            "spec.selector: \"Near\" is not a valid label selector operator");
}

TEST(CodecNode, WritesConditionsAndPort) {
  Json document = parsed(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},
    "spec":{"podCIDR":"10.0.0.0/24","taints":[{"key":"k","effect":"NoSchedule"}]},
    "status":{"capacity":{"memory":"512Mi"},"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}},
      "conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-02T03:04:05Z"}],
      "addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"images":[{"names":["a"],"sizeBytes":5}],
      "nodeInfo":{"machineID":"m","architecture":"amd64","swap":{"capacity":0}}}})");
  const Json before = document;
  Node node = decoded<Node>(document);
  EXPECT_EQ(node.status.kubelet_port, 10250);
  encode_over(node, document);
  EXPECT_EQ(document, before);
  node.status.kubelet_port.reset();
  node.spec.taints.clear();
  node.status.conditions[0].status = "Unknown";
  encode_over(node, document);
  EXPECT_EQ(document.at({"status", "daemonEndpoints"}), nullptr);
  EXPECT_EQ(document.at({"spec", "taints"}), nullptr);
  EXPECT_NE(document.at({"spec", "podCIDR"}), nullptr);
  EXPECT_NE(document.at({"status", "nodeInfo", "swap"}), nullptr);
  EXPECT_EQ(decoded<Node>(document), node);
}

TEST(CodecLease, KeepsMicroseconds) {
  Lease lease;
  lease.metadata.name = "n1";
  lease.holder_identity = "";
  lease.lease_duration_seconds = 40;
  lease.renew_time = WallTime(microseconds(1'700'000'000'000'001));
  const Json document = encode(lease);
  EXPECT_EQ(document.string_at({"spec", "renewTime"}), "2023-11-14T22:13:20.000001Z");
  EXPECT_EQ(document.string_at({"apiVersion"}), "coordination.k8s.io/v1");
  EXPECT_EQ(decoded<Lease>(document), lease) << "an empty holder is not an absent one";
}

TEST(CodecEvent, HoldsItsSource) {
  Event event;
  event.metadata.name = "e.1";
  event.involved_object = {.kind = "Pod",
                           .api_version = "v1",
                           .ns = "d",
                           .name = "p",
                           .uid = "u",
                           .resource_version = "3",
                           .field_path = "spec.containers{a}"};
  event.type = "Warning";
  event.reason = "Evicted";
  event.message = "low on memory";
  event.source_component = "kubelet";
  event.source_host = "n1";
  event.first_timestamp = event.last_timestamp = WallTime(seconds(1'700'000'000));
  event.count = 2;
  const Json document = encode(event);
  EXPECT_EQ(document.string_at({"source", "host"}), "n1");
  EXPECT_EQ(document.string_at({"reportingComponent"}), "") << "written even when empty";
  EXPECT_NE(document.find("reportingComponent"), nullptr);
  EXPECT_EQ(decoded<Event>(document), event);
}

TEST(CodecWorkload, TemplatesPassWhole) {
  const Json document = parsed(R"({"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"r"},
    "spec":{"replicas":0,"minReadySeconds":4,"selector":{"matchLabels":{"a":"b"}},
      "template":{"metadata":{"labels":{"a":"b"},"creationTimestamp":null},
                  "spec":{"containers":[{"name":"c","x-unknown":{"deep":[1]}}]}}},
    "status":{"replicas":1,"readyReplicas":1,"observedGeneration":7,"conditions":[{"type":"x"}]}})");
  ReplicaSet set = decoded<ReplicaSet>(document);
  EXPECT_EQ(set.replicas, 0);
  EXPECT_TRUE(set.selector.matches({{"a", "b"}}));
  EXPECT_EQ(set.pod_template.spec, *document.at({"spec", "template", "spec"}));
  Json written = document;
  encode_over(set, written);
  EXPECT_EQ(written, document);
  EXPECT_EQ(decoded<ReplicaSet>(encode(set)), set);
}

TEST(CodecWorkload, ZeroReplicasAreWrittenAndOneIsTheDefault) {
  ReplicaSet set;
  set.replicas = 0;
  EXPECT_NE(encode(set).at({"spec", "replicas"}), nullptr);
  EXPECT_EQ(decoded<ReplicaSet>(parsed("{}")).replicas, 1);
}

TEST(CodecWorkload, AnAbsentSelectorMatchesNothing) {
  const auto set = decoded<DaemonSet>(parsed(R"({"spec":{}})"));
  EXPECT_FALSE(set.selector.matches({}));
  EXPECT_EQ(encode(set).at({"spec", "selector"}), nullptr);
  EXPECT_TRUE(decoded<DaemonSet>(parsed(R"({"spec":{"selector":{}}})")).selector.matches({}));
}

TEST(CodecWorkload, DaemonSetNamespaceAndPriorityClass) {
  DaemonSet set;
  set.metadata.name = "d";
  set.status.number_misscheduled = 1;
  EXPECT_EQ(decoded<DaemonSet>(encode(set)), set);
  Namespace ns;
  ns.spec_finalizers = {"kubernetes"};
  ns.phase = "Active";
  EXPECT_EQ(
      to_text(encode(ns)),
      R"({"apiVersion":"v1","kind":"Namespace","spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}})");
  PriorityClass priority;
  priority.value = -5;
  priority.preemption_policy = "Never";
  EXPECT_EQ(decoded<PriorityClass>(encode(priority)), priority);
}

TEST(CodecSummary, KeepsUnknownMeasurements) {
  Json document =
      parsed(R"({"node":{"nodeName":"n1","systemContainers":[{"name":"pods","startTime":"2026-01-02T03:04:05Z",
      "memory":{"usageBytes":18446744073709551615,"pageFaults":3}}],"network":{"name":"eth0"},
      "runtime":{"imageFs":{"availableBytes":0},"containerFs":{}},"rlimit":{"maxpid":32768,"curproc":339}},
    "pods":[{"podRef":{"name":"p","namespace":"d","uid":"u"},"containers":[{"name":"c","rootfs":{},"logs":{"usedBytes":1}}],
      "volume":[{"name":"v","usedBytes":7,"pvcRef":{"name":"claim"}}],"ephemeral-storage":{"usedBytes":9},
      "process_stats":{"process_count":2}}]})");
  const Json before = document;
  const Summary summary = decoded<Summary>(document);
  EXPECT_EQ(summary.node.system_containers.at(0).memory->usage_bytes, 18446744073709551615ULL);
  EXPECT_EQ(summary.node.image_fs->available_bytes, 0U) << "zero is a measurement";
  EXPECT_EQ(summary.node.container_fs->available_bytes, std::nullopt) << "and absent is none";
  EXPECT_EQ(summary.pods.at(0).volumes.at(0).fs.used_bytes, 7U);
  encode_over(summary, document);
  EXPECT_EQ(document, before);
  EXPECT_EQ(decoded<Summary>(encode(summary)), summary);
}

/// Everything in `part` is in `whole` as it is: members of objects, elements of lists in their places.
bool holds(const Json& whole, const Json& part) {
  if (const Json::Array* list = part.if_array()) {
    const Json::Array* other = whole.if_array();
    return other != nullptr && std::equal(other->begin(), other->end(), list->begin(), list->end(), holds);
  }
  if (!part.is_object()) return whole == part;
  return std::all_of(part.if_object()->begin(), part.if_object()->end(), [&whole](const JsonObject::Member& member) {
    const Json* other = whole.find(member.key);
    return other != nullptr && holds(*other, member.value);
  });
}

/// Every pod of the golden vectors, odd ones included. Writing back adds at most fields that must be there.
TEST(CodecPod, RoundTripsAllPodsOfTheVectors) {
  std::size_t pods = 0;
  for (const std::string_view file : {"qos", "pod_requests", "critical_pod", "host_ports", "node_affinity"}) {
    const auto rows = support::load_rows(fmt::format("tests/vectors/admission/{}.jsonl.gz", file));
    ASSERT_TRUE(rows) << rows.error().text();
    for (const support::VectorRow& row : *rows) {
      const Json* document = row.document.at({"in", "pod"});
      if (document == nullptr) continue;
      SCOPED_TRACE(fmt::format("{}:{}", file, row.line));
      const Pod pod = decoded<Pod>(*document);
      Json written = *document;
      encode_over(pod, written);
      EXPECT_TRUE(holds(written, *document)) << to_text(written) << "\nshould hold " << to_text(*document);
      EXPECT_EQ(decoded<Pod>(written), pod);
      EXPECT_EQ(decoded<Pod>(encode(pod)), pod);
      ++pods;
    }
  }
  EXPECT_GT(pods, 1500U);
}

}  // namespace
}  // namespace spillway::api
