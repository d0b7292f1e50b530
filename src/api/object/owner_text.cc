#include "api/object/owner_text.h"

#include "api/object/kind_id.h"

#include <fmt/format.h>

namespace spillway::api {

std::string controller_text(const ObjectMeta& meta) {
  const OwnerReference* owner = controller_of(meta);
  return owner == nullptr ? std::string() : fmt::format("{}/{}/{}", text_of(kind_of(*owner)), meta.ns, owner->name);
}

}  // namespace spillway::api
