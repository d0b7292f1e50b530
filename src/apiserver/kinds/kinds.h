// The hooks of every kind, by the file that holds them. Pure.
// Source: spec "API server contract", 12; vectors api/create.
#pragma once

#include "apiserver/resource/kind_hooks.h"

namespace spillway::apiserver::kinds {

// pods.cc
KindHooks pod_hooks();
// pod_templates.cc
KindHooks pod_template_hooks();
// certificates.cc
KindHooks certificate_signing_request_hooks();
// workloads.cc
KindHooks controller_revision_hooks();
KindHooks deployment_hooks();
KindHooks replica_set_hooks();
KindHooks replication_controller_hooks();
KindHooks daemon_set_hooks();
KindHooks stateful_set_hooks();
// autoscalers.cc
KindHooks horizontal_pod_autoscaler_hooks();
// cron_jobs.cc
KindHooks cron_job_hooks();
// jobs.cc
KindHooks job_hooks();
// budgets.cc
KindHooks pod_disruption_budget_hooks();
// node.cc
KindHooks node_hooks();
// storage.cc
KindHooks csi_node_hooks();
KindHooks csi_driver_hooks();
// persistent_volumes.cc
KindHooks persistent_volume_hooks();
KindHooks persistent_volume_claim_hooks();
KindHooks storage_class_hooks();
// volume_attachments.cc
KindHooks volume_attachment_hooks();
KindHooks storage_capacity_hooks();
// network_policies.cc
KindHooks network_policy_hooks();
// ingresses.cc
KindHooks ingress_hooks();
// ingress_classes.cc
KindHooks api_service_hooks();
KindHooks ingress_class_hooks();
// lease.cc
KindHooks lease_hooks();
// runtime_class.cc
KindHooks runtime_class_hooks();
// configuration.cc
KindHooks component_status_hooks();
KindHooks config_map_hooks();
KindHooks secret_hooks();
KindHooks service_account_hooks();
// namespace.cc
KindHooks namespace_hooks();
// events.cc
KindHooks endpoints_hooks();
KindHooks endpoint_slice_hooks();
KindHooks event_hooks();
KindHooks new_event_hooks();
// service.cc
KindHooks service_hooks();
// limit_ranges.cc
KindHooks limit_range_hooks();
// resource_quotas.cc
KindHooks resource_quota_hooks();
// priority_class.cc
KindHooks priority_class_hooks();
// admission_policies.cc
KindHooks admission_policy_hooks();
KindHooks admission_policy_binding_hooks();

// webhook_configurations.cc
KindHooks mutating_webhook_hooks();
KindHooks validating_webhook_hooks();
// custom_resource_definitions.cc
KindHooks custom_resource_definition_hooks();
// roles.cc
KindHooks role_hooks();
KindHooks role_binding_hooks();

}  // namespace spillway::apiserver::kinds
