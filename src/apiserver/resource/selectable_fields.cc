#include "apiserver/resource/selectable_fields.h"

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

namespace spillway::apiserver {

namespace {

std::string false_unless_set(const api::Json& object, std::initializer_list<std::string_view> path) {
  const api::Json* value = object.at(path);
  return value != nullptr && value->if_bool().value_or(false) ? "true" : "false";
}

std::string host_network(const api::Json& pod) {
  return false_unless_set(pod, {"spec", "hostNetwork"});
}

std::string unschedulable(const api::Json& node) {
  return false_unless_set(node, {"spec", "unschedulable"});
}

std::string pod_ips(const api::Json& pod) {
  const api::Json* ips = pod.at({"status", "podIPs"});
  std::string joined;
  if (ips == nullptr || ips->if_array() == nullptr) return joined;
  for (const api::Json& ip : *ips->if_array()) {
    if (!joined.empty()) joined += ',';
    joined += ip.string_at({"ip"});
  }
  return joined;
}

std::string event_source(const api::Json& event) {
  const std::string_view component = event.string_at({"source", "component"});
  return std::string(component.empty() ? event.string_at({"reportingComponent"}) : component);
}

/// The number of pods of a Job that have succeeded.
std::string successful(const api::Json& job) {
  const api::Json* count = job.at({"status", "succeeded"});
  return std::to_string(count != nullptr ? count->if_int64().value_or(0) : 0);
}

std::string replicas(const api::Json& controller) {
  const api::Json* count = controller.at({"status", "replicas"});
  return std::to_string(count != nullptr ? count->if_int64().value_or(0) : 0);
}

constexpr std::array kPodFields{SelectableField{"spec.nodeName"},
                                SelectableField{"spec.restartPolicy"},
                                SelectableField{"spec.schedulerName"},
                                SelectableField{"spec.serviceAccountName"},
                                SelectableField{"spec.hostNetwork", host_network},
                                SelectableField{"status.phase"},
                                SelectableField{"status.podIP"},
                                SelectableField{"status.podIPs", pod_ips},
                                SelectableField{"status.nominatedNodeName"}};
constexpr std::array kNodeFields{SelectableField{"spec.unschedulable", unschedulable}};
constexpr std::array kNamespaceFields{SelectableField{"status.phase"}};
constexpr std::array kSecretFields{SelectableField{"type"}};
constexpr std::array kServiceFields{SelectableField{"spec.clusterIP"}, SelectableField{"spec.type"}};
constexpr std::array kJobFields{SelectableField{"status.successful", successful}};
constexpr std::array kSigningRequestFields{SelectableField{"spec.signerName"}};
constexpr std::array kReplicationControllerFields{SelectableField{"status.replicas", replicas}};
constexpr std::array kEventFields{SelectableField{"involvedObject.kind"},
                                  SelectableField{"involvedObject.namespace"},
                                  SelectableField{"involvedObject.name"},
                                  SelectableField{"involvedObject.uid"},
                                  SelectableField{"involvedObject.apiVersion"},
                                  SelectableField{"involvedObject.resourceVersion"},
                                  SelectableField{"involvedObject.fieldPath"},
                                  SelectableField{"reason"},
                                  SelectableField{"reportingComponent"},
                                  SelectableField{"source", event_source},
                                  SelectableField{"type"}};
constexpr std::array kEventViewFields{SelectableField{"regarding.kind"},
                                      SelectableField{"regarding.namespace"},
                                      SelectableField{"regarding.name"},
                                      SelectableField{"regarding.uid"},
                                      SelectableField{"regarding.apiVersion"},
                                      SelectableField{"regarding.resourceVersion"},
                                      SelectableField{"regarding.fieldPath"},
                                      SelectableField{"reason"},
                                      SelectableField{"reportingController"},
                                      SelectableField{"source", event_source},
                                      SelectableField{"type"}};
static_assert(kEventFields.size() == kEventViewFields.size());

}  // namespace

std::span<const SelectableField> pod_fields() {
  return kPodFields;
}

std::span<const SelectableField> node_fields() {
  return kNodeFields;
}

std::span<const SelectableField> namespace_fields() {
  return kNamespaceFields;
}

std::span<const SelectableField> secret_fields() {
  return kSecretFields;
}

std::span<const SelectableField> service_fields() {
  return kServiceFields;
}

std::span<const SelectableField> signing_request_fields() {
  return kSigningRequestFields;
}

std::span<const SelectableField> job_fields() {
  return kJobFields;
}

std::span<const SelectableField> replication_controller_fields() {
  return kReplicationControllerFields;
}

std::span<const SelectableField> event_fields() {
  return kEventFields;
}

std::span<const SelectableField> event_view_fields() {
  return kEventViewFields;
}

}  // namespace spillway::apiserver
