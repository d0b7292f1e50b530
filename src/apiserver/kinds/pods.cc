// The hooks of pods, from the rules in kinds/pod.
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/tables.h"

namespace spillway::apiserver::kinds {

KindHooks pod_hooks() {
  const TableDefinition table = pod_table();
  return {.set_defaults = default_pod,
          .prepare_create = prepare_new_pod,
          .admit_create = admit_pod,
          .validate_create = validate_new_pod,
          .confirm_create = confirm_pod,
          .prepare_update = prepare_pod_update,
          .admit_update = admit_pod_update,
          .validate_update = validate_pod_update,
          .confirm_update = confirm_pod_update,
          .columns = table.columns,
          .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
