#include "controllers/manual_hold.h"

#include <algorithm>

namespace spillway::controllers {

std::string zone_text(std::string_view readable_zone) {
  return readable_zone.empty() ? "-" : std::string(readable_zone);
}

lifecycle::ManualHold manual_hold_of(const api::Json& config_map) {
  lifecycle::ManualHold hold;
  if (config_map.at({"data", "why"}) != nullptr) hold.everything = std::string(config_map.string_at({"data", "why"}));
  std::string_view lines = config_map.string_at({"data", "zones"});
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (line.empty()) continue;
    const std::string_view zone = line.substr(0, line.find(' '));
    const std::string_view why = line.size() > zone.size() ? line.substr(zone.size() + 1) : std::string_view();
    hold.zones[zone == "-" ? "" : std::string(zone)] = std::string(why);
  }
  if (hold.empty()) hold.everything = "";
  return hold;
}

api::Json manual_hold_data(const lifecycle::ManualHold& hold) {
  api::Json data = api::Json::object();
  if (hold.everything) data["why"] = *hold.everything;
  std::string lines;
  for (const auto& [zone, why] : hold.zones) lines += zone_text(zone) + " " + why + "\n";
  if (!lines.empty()) data["zones"] = lines;
  return data;
}

}  // namespace spillway::controllers
