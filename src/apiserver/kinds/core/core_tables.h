// Table columns and cells of the kinds of the core group.
// Pure. Source: spec "API server contract", 15; vectors api/table_rows.
#pragma once

#include "apiserver/kinds/tables.h"

namespace spillway::apiserver::kinds {

TableDefinition pod_table();
TableDefinition node_table();
TableDefinition event_table();
TableDefinition namespace_table();
TableDefinition component_status_table();
TableDefinition config_map_table();
TableDefinition secret_table();
TableDefinition service_table();
TableDefinition service_account_table();

}  // namespace spillway::apiserver::kinds
