// Table columns and cells of every kind that has more to show than a name and an age: what `kubectl get` prints.
// Pure. Source: spec "API server contract", 15; vectors api/table_rows.
#pragma once

#include "api/json/json.h"
#include "apiserver/resource/kind_hooks.h"

#include <span>

namespace spillway::apiserver::kinds {

/// The columns of a kind and the function that fills one row.
struct TableDefinition {
  std::span<const TableColumn> columns;
  TableRow (*row)(const api::Json& object, WallTime now) = nullptr;
};

TableDefinition pod_table();
TableDefinition node_table();
TableDefinition event_table();
TableDefinition namespace_table();
TableDefinition component_status_table();
TableDefinition config_map_table();
TableDefinition secret_table();
TableDefinition service_table();
TableDefinition service_account_table();
TableDefinition controller_revision_table();
TableDefinition deployment_table();
TableDefinition replica_set_table();
TableDefinition replication_controller_table();
TableDefinition daemon_set_table();
TableDefinition stateful_set_table();
TableDefinition cron_job_table();
TableDefinition job_table();
TableDefinition lease_table();
TableDefinition pod_disruption_budget_table();
TableDefinition priority_class_table();
TableDefinition runtime_class_table();
TableDefinition csi_node_table();
TableDefinition certificate_signing_request_table();
TableDefinition role_table();
TableDefinition role_binding_table();

}  // namespace spillway::apiserver::kinds
