#include "apiserver/kinds/core/core_kinds.h"

#include "apiserver/kinds/apps/apps_kinds.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"

namespace spillway::apiserver::kinds {

std::vector<Resource> core_kinds() {
  return {{.version = "v1", .plural = "bindings", .singular = "binding", .kind = "Binding", .verbs = kCreateOnly},
          component_status_kind(),
          config_map_kind(),
          endpoints_kind(),
          event_kind(),
          limit_range_kind(),
          namespace_kind(),
          node_kind(),
          persistent_volume_claim_kind(),
          persistent_volume_kind(),
          pod_kind(),
          pod_template_kind(),
          replication_controller_kind(),
          resource_quota_kind(),
          secret_kind(),
          service_account_kind(),
          service_kind()};
}

}  // namespace spillway::apiserver::kinds
