#include "apiserver/kinds/kind_table.h"

#include "apiserver/kinds/kinds.h"

#include <map>
#include <string_view>
#include <utility>

namespace spillway::apiserver::kinds {

const KindHooks& kind_hooks(std::string_view group, std::string_view kind) {
  static const KindHooks kNeutral{};
  static const std::map<std::pair<std::string_view, std::string_view>, KindHooks> kTable{
      {{"", "ComponentStatus"}, component_status_hooks()},
      {{"", "ConfigMap"}, config_map_hooks()},
      {{"", "Endpoints"}, endpoints_hooks()},
      {{"", "Event"}, event_hooks()},
      {{"", "LimitRange"}, limit_range_hooks()},
      {{"", "Namespace"}, namespace_hooks()},
      {{"", "Node"}, node_hooks()},
      {{"", "PodTemplate"}, pod_template_hooks()},
      {{"", "PersistentVolume"}, persistent_volume_hooks()},
      {{"", "PersistentVolumeClaim"}, persistent_volume_claim_hooks()},
      {{"", "Pod"}, pod_hooks()},
      {{"", "ReplicationController"}, replication_controller_hooks()},
      {{"", "Secret"}, secret_hooks()},
      {{"", "Service"}, service_hooks()},
      {{"", "ResourceQuota"}, resource_quota_hooks()},
      {{"", "ServiceAccount"}, service_account_hooks()},
      {{"admissionregistration.k8s.io", "MutatingWebhookConfiguration"}, mutating_webhook_hooks()},
      {{"admissionregistration.k8s.io", "ValidatingAdmissionPolicy"}, admission_policy_hooks()},
      {{"admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"}, admission_policy_binding_hooks()},
      {{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration"}, validating_webhook_hooks()},
      {{"apiregistration.k8s.io", "APIService"}, api_service_hooks()},
      {{"apiextensions.k8s.io", "CustomResourceDefinition"}, custom_resource_definition_hooks()},
      {{"apps", "DaemonSet"}, daemon_set_hooks()},
      {{"apps", "ControllerRevision"}, controller_revision_hooks()},
      {{"apps", "Deployment"}, deployment_hooks()},
      {{"apps", "ReplicaSet"}, replica_set_hooks()},
      {{"apps", "StatefulSet"}, stateful_set_hooks()},
      {{"autoscaling", "HorizontalPodAutoscaler"}, horizontal_pod_autoscaler_hooks()},
      {{"batch", "CronJob"}, cron_job_hooks()},
      {{"batch", "Job"}, job_hooks()},
      {{"certificates.k8s.io", "CertificateSigningRequest"}, certificate_signing_request_hooks()},
      {{"coordination.k8s.io", "Lease"}, lease_hooks()},
      {{"discovery.k8s.io", "EndpointSlice"}, endpoint_slice_hooks()},
      {{"events.k8s.io", "Event"}, new_event_hooks()},
      {{"networking.k8s.io", "Ingress"}, ingress_hooks()},
      {{"networking.k8s.io", "IngressClass"}, ingress_class_hooks()},
      {{"networking.k8s.io", "NetworkPolicy"}, network_policy_hooks()},
      {{"node.k8s.io", "RuntimeClass"}, runtime_class_hooks()},
      {{"policy", "PodDisruptionBudget"}, pod_disruption_budget_hooks()},
      {{"rbac.authorization.k8s.io", "ClusterRole"}, role_hooks()},
      {{"rbac.authorization.k8s.io", "ClusterRoleBinding"}, role_binding_hooks()},
      {{"rbac.authorization.k8s.io", "Role"}, role_hooks()},
      {{"rbac.authorization.k8s.io", "RoleBinding"}, role_binding_hooks()},
      {{"scheduling.k8s.io", "PriorityClass"}, priority_class_hooks()},
      {{"storage.k8s.io", "CSIDriver"}, csi_driver_hooks()},
      {{"storage.k8s.io", "CSINode"}, csi_node_hooks()},
      {{"storage.k8s.io", "CSIStorageCapacity"}, storage_capacity_hooks()},
      {{"storage.k8s.io", "StorageClass"}, storage_class_hooks()},
      {{"storage.k8s.io", "VolumeAttachment"}, volume_attachment_hooks()}};
  const auto found = kTable.find({group, kind});
  return found == kTable.end() ? kNeutral : found->second;
}

}  // namespace spillway::apiserver::kinds
