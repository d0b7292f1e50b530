// Table columns and cells of Jobs and CronJobs.
// Pure. Source: spec "API server contract", 15; vectors api/table_rows.
#pragma once

#include "apiserver/kinds/tables.h"

namespace spillway::apiserver::kinds {

TableDefinition cron_job_table();
TableDefinition job_table();

}  // namespace spillway::apiserver::kinds
