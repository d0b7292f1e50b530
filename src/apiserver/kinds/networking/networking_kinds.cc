#include "apiserver/kinds/networking/networking_kinds.h"

#include "apiserver/kinds/groups.h"

namespace spillway::apiserver::kinds {

std::vector<Resource> networking_kinds() {
  return {ingress_class_kind(), ingress_kind(), ip_address_kind(), network_policy_kind(), service_range_kind()};
}

}  // namespace spillway::apiserver::kinds
