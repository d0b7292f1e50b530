#include "apiserver/kinds/kind_rows.h"

#include "apiserver/kinds/groups.h"

#include <array>
#include <iterator>

namespace spillway::apiserver::kinds {

std::vector<Resource> kind_rows() {
  constexpr std::array kGroups{core_kinds,
                               admission_registration_kinds,
                               api_registration_kinds,
                               apps_kinds,
                               authentication_kinds,
                               authorization_kinds,
                               autoscaling_kinds,
                               batch_kinds,
                               certificates_kinds,
                               coordination_kinds,
                               discovery_kinds,
                               events_kinds,
                               flow_control_kinds,
                               metrics_kinds,
                               networking_kinds,
                               node_api_kinds,
                               policy_kinds,
                               rbac_kinds,
                               scheduling_kinds,
                               storage_kinds,
                               api_extensions_kinds};
  std::vector<Resource> rows;
  for (const auto group : kGroups) {
    std::vector<Resource> kinds = group();
    rows.insert(rows.end(), std::make_move_iterator(kinds.begin()), std::make_move_iterator(kinds.end()));
  }
  return rows;
}

}  // namespace spillway::apiserver::kinds
