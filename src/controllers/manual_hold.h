// A manual hold as a ConfigMap: data.why holds everything; data.zones holds zones, one line each, the name as `spillway
// zones` prints it and the reason after a blank. The zone of nodes without zone labels is written "-". A ConfigMap with
// neither holds everything.
// Thread: any (pure).
#pragma once

#include "api/json.h"
#include "policy/lifecycle/brakes.h"

#include <string>
#include <string_view>

namespace spillway::controllers {

lifecycle::ManualHold manual_hold_of(const api::Json& config_map);

/// The ConfigMap's data; `hold` is not empty.
api::Json manual_hold_data(const lifecycle::ManualHold& hold);

/// "-" for the zone without a name.
std::string zone_text(std::string_view readable_zone);

}  // namespace spillway::controllers
