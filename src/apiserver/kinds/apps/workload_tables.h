// Table columns and cells of workloads.
// Pure. Source: spec "API server contract", 15; vectors api/table_rows.
#pragma once

#include "apiserver/kinds/tables.h"

namespace spillway::apiserver::kinds {

TableDefinition controller_revision_table();
TableDefinition deployment_table();
TableDefinition replica_set_table();
TableDefinition replication_controller_table();
TableDefinition daemon_set_table();
TableDefinition stateful_set_table();

}  // namespace spillway::apiserver::kinds
