// The controller of an object as a text, by which objects of one controller are counted together. Thread: any (pure).
#pragma once

#include "api/object/meta.h"

#include <string>

namespace spillway::api {

/// "ReplicaSet/shop/web"; "ReplicaSet.example.com/shop/web" for a custom kind of that name. Empty: no controller.
std::string controller_text(const ObjectMeta& meta);

}  // namespace spillway::api
