// Golden vectors of a pod's class and requests: QoS, requests, criticality, ports, resource names; and of ages.
#include "api/codec/codec.h"
#include "api/object/host_ports.h"
#include "api/object/pod_requests.h"
#include "api/text/resource_names.h"
#include "api/text/time_text.h"
#include "support/vectors.h"

#include <algorithm>
#include <cmath>

namespace spillway::api {
namespace {

using support::Mismatch;

Result<Pod> pod_at(const Json& in, std::string_view member = "pod") {
  return decode<Pod>(*in.find(member));
}

Mismatch undecodable(const Error& error) {
  return {"a pod", error.text()};
}

PodFeatures features_of(const Json& in) {
  const auto on = [&in](std::string_view gate) {
    const Json* found = in.at({"features", gate});
    return found != nullptr && found->if_bool().value_or(false);
  };
  return {.pod_level_resources = on("PodLevelResources"),
          .in_place_pod_vertical_scaling = on("InPlacePodVerticalScaling")};
}

std::optional<Mismatch> check_qos(const Json& row) {
  const Json& in = *row.find("in");
  const auto pod = pod_at(in);
  if (!pod) return undecodable(pod.error());
  const std::string_view computed = to_string(compute_qos(pod->spec, features_of(in)));
  const std::string_view set = pod->status.qos_class;
  // An unknown class is passed on as text; as a value it counts as computed.
  if (const auto known = parse_qos(set); known && qos_of(*pod) != *known) return Mismatch{std::string(set), "another"};
  return support::compare(*row.find("want"),
                          Json::object({{"computed", computed}, {"qos", set.empty() ? computed : set}}));
}

Json printed(const ResourceList& list) {
  Json out = Json::object();
  for (const auto& [name, amount] : list) out[name] = amount.to_string();
  return out;
}

std::int64_t amount_of(const ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  if (found == list.end()) return 0;
  return name == "cpu" ? found->second.milli_value() : found->second.value();
}

/// The integers that fit counts with.
Json totals(const ResourceList& list) {
  Json out = Json::object({{"milli_cpu", amount_of(list, "cpu")},
                           {"memory", amount_of(list, "memory")},
                           {"ephemeral_storage", amount_of(list, "ephemeral-storage")},
                           {"pods", 0}});
  for (const auto& [name, amount] : list) {
    if (is_scalar_resource(name)) out.make({"scalar", name}) = amount.value();
  }
  return out;
}

std::optional<Mismatch> check_pod_requests(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const auto pod = pod_at(in);
  if (!pod) return undecodable(pod.error());
  const PodFeatures features = features_of(in);
  RequestOptions options;
  options.features = features;
  RequestOptions bare = options;
  bare.overhead = Overhead::kLeftOut;
  RequestOptions newcomer = options;
  newcomer.features.in_place_pod_vertical_scaling = false;
  RequestOptions scoring = options;
  scoring.missing_cpu = Quantity::of_milli(100);
  scoring.missing_memory = Quantity::of_bytes(mebibytes(200));
  const ResourceList scored = effective_requests(*pod, scoring);
  Json agent = Json::object();
  for (const auto& [name, amount] : *want.find("kubelet_request")->if_object()) {
    const Quantity sum = agent_request(pod->spec, name, {.pod_level_resources = false});
    agent[name] = name == "cpu" ? sum.milli_value() : sum.value();
  }
  // The rows are of Kubernetes 1.32, where both gates were off and the spec had no pod level.
  if (!pod->spec.resources && features == features_of(Json::object()) &&
      effective_requests(pod->spec) != effective_requests(*pod, options)) {
    return Mismatch{"the same by both functions", to_text(printed(effective_requests(pod->spec)))};
  }
  return support::compare(want, Json::object({{"requests", printed(effective_requests(*pod, options))},
                                              {"requests_no_overhead", printed(effective_requests(*pod, bare))},
                                              {"limits", printed(effective_limits(*pod, options))},
                                              {"limits_no_overhead", printed(effective_limits(*pod, bare))},
                                              {"node_used", totals(effective_requests(*pod, options))},
                                              {"node_nonzero", Json::object({{"milli_cpu", amount_of(scored, "cpu")},
                                                                             {"memory", amount_of(scored, "memory")}})},
                                              {"fit_request", totals(effective_requests(*pod, newcomer))},
                                              {"kubelet_request", agent}}));
}

/// Kubernetes 1.36: pods with requests and limits of their own, and statuses of pods that are resized.
std::optional<Mismatch> check_pod_requests_136(const Json& row) {
  const auto pod = pod_at(*row.find("in"));
  if (!pod) return undecodable(pod.error());
  RequestOptions of_spec;
  of_spec.features.in_place_pod_vertical_scaling = false;
  RequestOptions bare = of_spec;
  bare.overhead = Overhead::kLeftOut;
  RequestOptions containers = of_spec;
  containers.features.pod_level_resources = false;
  const auto names_some = [&](const auto& list) {
    return std::ranges::any_of(list, [](const auto& each) { return is_pod_level_resource(each.first); });
  };
  const ResourceRequirements whole = pod->spec.resources.value_or(ResourceRequirements());
  return support::compare(*row.find("want"),
                          Json::object({{"requests", printed(effective_requests(*pod, of_spec))},
                                        {"requests_no_overhead", printed(effective_requests(*pod, bare))},
                                        {"requests_of_containers", printed(effective_requests(*pod, containers))},
                                        {"requests_with_status", printed(effective_requests(*pod, {}))},
                                        {"limits", printed(effective_limits(*pod, of_spec))},
                                        {"limits_with_status", printed(effective_limits(*pod, {}))},
                                        {"pod_level_requests_set", names_some(whole.requests)},
                                        {"pod_level_limits_set", names_some(whole.limits)},
                                        {"qos", to_string(compute_qos(pod->spec))}}));
}

std::optional<Mismatch> check_critical_pod(const Json& row) {
  const Json& in = *row.find("in");
  if (row.string_at({"op"}) == "preemptable") {
    const auto preemptor = pod_at(in, "preemptor");
    const auto preemptee = pod_at(in, "preemptee");
    if (!preemptor || !preemptee) return undecodable(preemptor ? preemptee.error() : preemptor.error());
    return support::compare(*row.find("want"), Json::object({{"result", may_preempt(*preemptor, *preemptee)}}));
  }
  const auto pod = pod_at(in);
  if (!pod) return undecodable(pod.error());
  Json got = Json::object({{"critical", is_critical(*pod)},
                           {"static", is_static(*pod)},
                           {"mirror", is_mirror(*pod)},
                           {"node_critical", is_node_critical(*pod)}});
  const auto source = pod->metadata.annotations.find(kConfigSourceAnnotation);
  if (source != pod->metadata.annotations.end()) got["source"] = source->second;
  return support::compare(*row.find("want"), got);
}

std::optional<Mismatch> check_resource_name(const Json& row) {
  const std::string_view name = row.string_at({"in", "resource"});
  return support::compare(*row.find("want"), Json::object({{"native", is_native_resource(name)},
                                                           {"prefixed_native", is_prefixed_native_resource(name)},
                                                           {"extended", is_extended_resource(name)},
                                                           {"hugepage", is_hugepage_resource(name)},
                                                           {"attachable_volume", is_attachable_volume_resource(name)},
                                                           {"scalar", is_scalar_resource(name)},
                                                           {"overcommit_allowed", allows_overcommit(name)}}));
}

std::optional<Mismatch> check_host_ports(const Json& row) {
  const Json& in = *row.find("in");
  UsedHostPorts used;
  for (const Json& document : *in.find("pods")->if_array()) {
    const auto pod = decode<Pod>(document);
    if (!pod) return undecodable(pod.error());
    used.add(pod->spec);
  }
  const auto pod = pod_at(in);
  if (!pod) return undecodable(pod.error());
  return support::compare(*row.find("want"), Json::object({{"fits", !used.conflicts_with(pod->spec)},
                                                           {"used_ports", static_cast<std::int64_t>(used.size())}}));
}

std::optional<Mismatch> check_human_duration(const Json& row) {
  const double seconds_count = row.find("seconds")->if_double().value_or(0);
  const Duration duration(static_cast<std::int64_t>(std::llround(seconds_count * 1e9)));
  return support::compare(*row.find("expected"), human_duration(duration));
}

const bool kQos = support::add_vector_check("admission/qos", check_qos);
const bool kPodRequests = support::add_vector_check("admission/pod_requests", check_pod_requests);
const bool kPodRequests136 = support::add_vector_check("admission/pod_requests_136", check_pod_requests_136);
const bool kCriticalPod = support::add_vector_check("admission/critical_pod", check_critical_pod);
const bool kResourceNames = support::add_vector_check("admission/resource_names", check_resource_name);
const bool kHostPorts = support::add_vector_check("admission/host_ports", check_host_ports);
const bool kHumanDuration = support::add_vector_check("api/human_duration", check_human_duration);

}  // namespace
}  // namespace spillway::api
