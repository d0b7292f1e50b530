#include "apiserver/kinds/storage/storage_kinds.h"

#include "apiserver/kinds/groups.h"

namespace spillway::apiserver::kinds {

std::vector<Resource> storage_kinds() {
  return {csi_driver_kind(),    csi_node_kind(),          csi_storage_capacity_kind(),
          storage_class_kind(), volume_attachment_kind(), volume_attributes_class_kind()};
}

}  // namespace spillway::apiserver::kinds
