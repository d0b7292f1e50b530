// The zones of a cluster as a table: what `spillway zones` prints of the ZoneList a controller answers with.
// Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "cli/text/explanation.h"

#include <string>

namespace spillway::cli {

/// One row per zone, then what holds everything. Rows that are disrupted or held are coloured. Ends in a newline.
/// Wide: when the zone lets the next node through, whether or not one waits.
std::string zone_table(const api::Json& zone_list, Paint paint, Width width = Width::kUsual);

}  // namespace spillway::cli
