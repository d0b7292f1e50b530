// Table columns and cells of CertificateSigningRequests.
// Pure. Source: spec "API server contract", 15; vectors api/table_rows.
#pragma once

#include "apiserver/kinds/tables.h"

namespace spillway::apiserver::kinds {

TableDefinition certificate_signing_request_table();

}  // namespace spillway::apiserver::kinds
