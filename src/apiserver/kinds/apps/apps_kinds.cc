#include "apiserver/kinds/apps/apps_kinds.h"

#include "apiserver/kinds/groups.h"

namespace spillway::apiserver::kinds {

std::vector<Resource> apps_kinds() {
  return {controller_revision_kind(), daemon_set_kind(), deployment_kind(), replica_set_kind(), stateful_set_kind()};
}

}  // namespace spillway::apiserver::kinds
