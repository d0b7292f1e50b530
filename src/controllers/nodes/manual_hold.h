// A manual hold as a ConfigMap: data.why holds everything; data.zones holds zones, one line each, the name as `spillway
// zones` prints it and the reason after a blank. The zone of nodes without zone labels is written "-". A ConfigMap with
// neither holds everything.
// Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "policy/lifecycle/brakes.h"

#include <set>
#include <string>
#include <string_view>

namespace spillway::controllers {

lifecycle::ManualHold manual_hold_of(const api::Json& config_map);

/// The ConfigMap's data; `hold` is not empty.
api::Json manual_hold_data(const lifecycle::ManualHold& hold);

/// "-" for the zone without a name.
std::string zone_text(std::string_view readable_zone);

/// The zone ("r1::a"; empty: the nodes without zone labels) that a user names by its full name, by "-", or by the value
/// of the zone label alone ("a"). kInvalid, for --zone: there is none, or several zones have that label value.
Result<std::string> find_zone(std::string_view asked, const std::set<std::string>& zones);

}  // namespace spillway::controllers
