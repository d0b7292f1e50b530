#include "api/object/meta.h"

namespace spillway::api {

const OwnerReference* controller_of(const ObjectMeta& meta) {
  for (const OwnerReference& owner : meta.owner_references) {
    if (owner.controller.value_or(false)) return &owner;
  }
  return nullptr;
}

}  // namespace spillway::api
