// status.conditions of any object. Thread: any. Source: Kubernetes API conventions, "Typical status properties".
#pragma once

#include "api/json/json.h"
#include "base/time.h"

#include <string_view>

namespace spillway::apiserver {

/// Sets the condition of that type in status.conditions; lastTransitionTime moves only with the status.
void set_condition(api::Json& object, std::string_view type, std::string_view status, std::string_view reason,
                   std::string_view message, WallTime now);

}  // namespace spillway::apiserver
