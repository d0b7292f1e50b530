#include "apiserver/kinds/advice/advice.h"

#include "api/text/ip_address.h"
#include "api/text/names.h"
#include "apiserver/kinds/advice/members.h"
#include "apiserver/kinds/advice/pod_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using kinds::AdviceList;
using kinds::is_given;
using kinds::list_at;
using kinds::number_at;

constexpr std::string_view kStorageClassAnnotation = "volume.beta.kubernetes.io/storage-class";
constexpr std::string_view kMountOptionsAnnotation = "volume.beta.kubernetes.io/mount-options";
constexpr std::string_view kIngressClassAnnotation = "kubernetes.io/ingress.class";
constexpr std::string_view kTopologyHintsAnnotation = "service.kubernetes.io/topology-aware-hints";
constexpr std::string_view kTopologyModeAnnotation = "service.kubernetes.io/topology-mode";
constexpr std::string_view kMountableSecretsAnnotation = "kubernetes.io/enforce-mountable-secrets";

// Above both, the indexes of an Indexed Job that failed may not fit into its status.
constexpr std::int64_t kIndexesMax = 100'000;
constexpr std::int64_t kParallelIndexesMax = 10'000;

bool has_annotation(const Json& object, std::string_view key) {
  return is_given(object.at({"metadata", "annotations", key}));
}

bool counts_another_generation(const Json& object, const Json* old) {
  return old == nullptr || number_at(object, {"metadata", "generation"}) != number_at(*old, {"metadata", "generation"});
}

/// `use`: where the name turns up ("Pod names and hostnames").
void advise_on_name(const Json& object, std::string_view use, AdviceList& advice) {
  const std::string_view name = object.string_at({"metadata", "name"});
  std::vector<std::string> problems = api::dns1123_label_errors(name);
  if (problems.empty()) return;
  const bool only_dots = api::dns1123_subdomain_errors(name).empty() && name.find('.') != std::string_view::npos;
  if (only_dots) problems.back() = "must not contain dots";
  advice.add(
      fmt::format("metadata.name: this is used in {}, which can result in surprising behavior; a DNS label is "
                  "recommended: [{}]",
                  use, fmt::join(problems, " ")));
}

void advise_on_template(const Json& object, const std::string& at, std::initializer_list<std::string_view> path,
                        AdviceList& advice) {
  const Json* pod_template = object.at(path);
  if (is_given(pod_template)) kinds::advise_on_pod(*pod_template, at, advice);
}

void advise_on_job_spec(const Json& spec, const std::string& at, AdviceList& advice) {
  if (spec.string_at({"completionMode"}) == "Indexed" && number_at(spec, {"completions"}) > kIndexesMax &&
      number_at(spec, {"parallelism"}) > kParallelIndexesMax) {
    advice.add(at +
               ": In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
               "Kubernetes might not be able to track completedIndexes when a big number of indexes fail");
  }
  advise_on_template(spec, at + ".template", {"template"}, advice);
}

void advise_on_pod_object(const Json& object, const Json* old, AdviceList& advice) {
  if (old != nullptr) return;  // controllers write pods, and read no warnings
  advise_on_name(object, "the Pod's hostname", advice);
  kinds::advise_on_pod(object, "", advice);
}

void advise_on_workload(const Json& object, const Json* old, AdviceList& advice) {
  if (old == nullptr) advise_on_name(object, "Pod names and hostnames", advice);
  if (counts_another_generation(object, old)) {
    advise_on_template(object, "spec.template", {"spec", "template"}, advice);
  }
}

void advise_on_daemon_set(const Json& object, const Json* old, AdviceList& advice) {
  if (counts_another_generation(object, old)) {
    advise_on_template(object, "spec.template", {"spec", "template"}, advice);
  }
}

void advise_on_stateful_set(const Json& object, const Json* old, AdviceList& advice) {
  advise_on_workload(object, old, advice);
  if (!counts_another_generation(object, old)) return;
  const auto& claims = list_at(object, {"spec", "volumeClaimTemplates"});
  for (std::size_t i = 0; i < claims.size() && !advice.full(); ++i) {
    kinds::advise_on_claim_spec(claims[i].find("spec"), fmt::format("spec.volumeClaimTemplates[{}].spec", i), advice);
  }
  if (number_at(object, {"spec", "revisionHistoryLimit"}) < 0) {
    advice.add(
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended");
  }
}

void advise_on_pod_template(const Json& object, const Json* old, AdviceList& advice) {
  if (counts_another_generation(object, old)) advise_on_template(object, "template", {"template"}, advice);
}

void advise_on_job(const Json& object, const Json* old, AdviceList& advice) {
  if (old == nullptr) advise_on_name(object, "Pod names and hostnames", advice);
  const Json* spec = object.find("spec");
  if (is_given(spec) && counts_another_generation(object, old)) advise_on_job_spec(*spec, "spec", advice);
}

void advise_on_cron_job(const Json& object, const Json* old, AdviceList& advice) {
  if (old == nullptr) advise_on_name(object, "Pod names and hostnames", advice);
  const Json* spec = object.at({"spec", "jobTemplate", "spec"});
  if (is_given(spec) && counts_another_generation(object, old)) {
    advise_on_job_spec(*spec, "spec.jobTemplate.spec", advice);
  }
}

/// An IPv4 address of which a part of several digits begins with a zero.
bool has_leading_zero(std::string_view address) {
  if (address.find(':') != std::string_view::npos) return false;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t end = address.find('.', at);
    const std::string_view part = address.substr(at, end == std::string_view::npos ? end : end - at);
    if (part.size() > 1 && part.front() == '0') return true;
    at = end == std::string_view::npos ? end : end + 1;
  }
  return false;
}

void advise_on_address(std::string_view address, const std::string& at, AdviceList& advice) {
  if (!has_leading_zero(address)) return;
  advice.add(
      fmt::format("{}: IP address was accepted, but will be invalid in a future Kubernetes release: "
                  "ParseAddr(\"{}\"): IPv4 field has octet with leading zero",
                  at, address));
}

void advise_on_service(const Json& object, const Json* /*old*/, AdviceList& advice) {
  if (has_annotation(object, kTopologyHintsAnnotation)) {
    advice.add(fmt::format("annotation {} is deprecated, please use {} instead", kTopologyHintsAnnotation,
                           kTopologyModeAnnotation));
  }
  const std::string_view type = object.string_at({"spec", "type"});
  const std::string_view address = object.string_at({"spec", "clusterIP"});
  const auto& external = list_at(object, {"spec", "externalIPs"});
  const bool is_headless = type == "ClusterIP" && address == "None";
  if (!is_headless && type != "ExternalName") {
    const auto& addresses = list_at(object, {"spec", "clusterIPs"});
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (!addresses[i].is_string()) continue;
      advise_on_address(*addresses[i].if_string(), fmt::format("spec.clusterIPs[{}]", i), advice);
    }
  }
  if (is_headless) {
    if (!object.string_at({"spec", "loadBalancerIP"}).empty()) {
      advice.add("spec.loadBalancerIP is ignored for headless services");
    }
    if (!external.empty()) advice.add("spec.externalIPs is ignored for headless services");
    if (object.string_at({"spec", "sessionAffinity"}) != "None") {
      advice.add("spec.SessionAffinity is ignored for headless services");
    }
  }
  for (std::size_t i = 0; i < external.size() && !advice.full(); ++i) {
    if (external[i].is_string()) {
      advise_on_address(*external[i].if_string(), fmt::format("spec.externalIPs[{}]", i), advice);
    }
  }
  advise_on_address(object.string_at({"spec", "loadBalancerIP"}), "spec.loadBalancerIP", advice);
  if (type == "ExternalName" && !external.empty()) {
    advice.add("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  }
  if (type != "ExternalName" && !object.string_at({"spec", "externalName"}).empty()) {
    advice.add("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  }
}

void advise_on_ingress(const Json& object, const Json* old, AdviceList& advice) {
  if (old != nullptr || !has_annotation(object, kIngressClassAnnotation)) return;
  if (is_given(object.at({"spec", "ingressClassName"}))) return;
  advice.add(fmt::format("annotation \"{}\" is deprecated, please use 'spec.ingressClassName' instead",
                         kIngressClassAnnotation));
}

void advise_on_class_annotation(const Json& object, AdviceList& advice) {
  if (!has_annotation(object, kStorageClassAnnotation)) return;
  advice.add(fmt::format("metadata.annotations[{}]: deprecated since v1.8; use \"storageClassName\" attribute instead",
                         kStorageClassAnnotation));
}

void advise_on_claim(const Json& object, const Json* /*old*/, AdviceList& advice) {
  advise_on_class_annotation(object, advice);
  kinds::advise_on_claim_spec(object.find("spec"), "spec", advice);
}

void advise_on_volume(const Json& object, const Json* /*old*/, AdviceList& advice) {
  advise_on_class_annotation(object, advice);
  if (has_annotation(object, kMountOptionsAnnotation)) {
    advice.add(fmt::format("metadata.annotations[{}]: deprecated since v1.31; use \"mountOptions\" attribute instead",
                           kMountOptionsAnnotation));
  }
  if (object.string_at({"spec", "persistentVolumeReclaimPolicy"}) == "Recycle") {
    advice.add(
        "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
        "approach is to use dynamic provisioning.");
  }
  const auto& terms = list_at(object, {"spec", "nodeAffinity", "required", "nodeSelectorTerms"});
  for (std::size_t i = 0; i < terms.size() && !advice.full(); ++i) {
    kinds::advise_on_node_term(terms[i], fmt::format("spec.nodeAffinity.required.nodeSelectorTerms[{}]", i), advice);
  }
  kinds::advise_on_bytes(object.at({"spec", "capacity", "storage"}), "spec.capacity[storage]", advice);
  const Json* spec = object.find("spec");
  if (is_given(spec)) kinds::advise_on_volume_source(*spec, "spec", advice);
}

void advise_on_storage_class(const Json& object, const Json* /*old*/, AdviceList& advice) {
  const auto& topologies = list_at(object, {"allowedTopologies"});
  for (std::size_t i = 0; i < topologies.size() && !advice.full(); ++i) {
    const auto& expressions = list_at(topologies[i], {"matchLabelExpressions"});
    for (std::size_t j = 0; j < expressions.size() && !advice.full(); ++j) {
      const std::string_view text = kinds::deprecated_node_label(expressions[j].string_at({"key"}));
      if (!text.empty()) {
        advice.add(fmt::format("allowedTopologies[{}].matchLabelExpressions[{}].key: {}", i, j, text));
      }
    }
  }
}

void advise_on_runtime_class(const Json& object, const Json* /*old*/, AdviceList& advice) {
  const Json* selector = object.at({"scheduling", "nodeSelector"});
  if (selector == nullptr || selector->if_object() == nullptr) return;
  for (const auto& [key, value] : *selector->if_object()) {
    const std::string_view text = kinds::deprecated_node_label(key);
    if (!text.empty()) advice.add(fmt::format("scheduling.nodeSelector: {}", text));
  }
}

void advise_on_service_account(const Json& object, const Json* old, AdviceList& advice) {
  if (!has_annotation(object, kMountableSecretsAnnotation)) return;
  if (old != nullptr && has_annotation(*old, kMountableSecretsAnnotation)) return;
  advice.add(
      fmt::format("metadata.annotations[{}]: deprecated in v1.32+; prefer separate namespaces to isolate access "
                  "to mounted secrets",
                  kMountableSecretsAnnotation));
}

struct KindAdvice {
  std::string_view group;
  std::string_view kind;
  void (*advise)(const Json& object, const Json* old, AdviceList& advice);
};

constexpr std::array kAdvice{
    KindAdvice{"", "Pod", advise_on_pod_object},
    KindAdvice{"", "PodTemplate", advise_on_pod_template},
    KindAdvice{"", "ReplicationController", advise_on_workload},
    KindAdvice{"apps", "ReplicaSet", advise_on_workload},
    KindAdvice{"apps", "Deployment", advise_on_workload},
    KindAdvice{"apps", "StatefulSet", advise_on_stateful_set},
    KindAdvice{"apps", "DaemonSet", advise_on_daemon_set},
    KindAdvice{"batch", "Job", advise_on_job},
    KindAdvice{"batch", "CronJob", advise_on_cron_job},
    KindAdvice{"", "Service", advise_on_service},
    KindAdvice{"", "ServiceAccount", advise_on_service_account},
    KindAdvice{"", "PersistentVolumeClaim", advise_on_claim},
    KindAdvice{"", "PersistentVolume", advise_on_volume},
    KindAdvice{"storage.k8s.io", "StorageClass", advise_on_storage_class},
    KindAdvice{"node.k8s.io", "RuntimeClass", advise_on_runtime_class},
    KindAdvice{"networking.k8s.io", "Ingress", advise_on_ingress},
};

}  // namespace

void advise(const Resource& resource, const Json& object, const Json* old, AdviceList& advice) {
  for (const KindAdvice& each : kAdvice) {
    if (resource.is(each.group, each.kind)) return each.advise(object, old, advice);
  }
}

api::StatusResult<void> Adviser::confirm(const ValidWrite& write) const {
  if (write.part != SubresourceId::kNone) return {};
  AdviceList advice(write.warnings);
  advise(write.resource, write.object, write.old, advice);
  return {};
}

}  // namespace spillway::apiserver
