#include "controllers/nodes/manual_hold.h"

#include "base/edit_distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace spillway::controllers {
namespace {

constexpr std::size_t kNamedMax = 10;  // zones in a message

std::string_view label_value(std::string_view zone) {
  const std::size_t separator = zone.rfind("::");
  return separator == std::string_view::npos ? zone : zone.substr(separator + 2);
}

std::string names_of(const std::vector<std::string>& zones) {
  std::string text;
  for (std::size_t i = 0; i < std::min(zones.size(), kNamedMax); ++i) {
    text += (i == 0 ? "" : ", ") + zone_text(zones[i]);
  }
  return zones.size() > kNamedMax ? text + fmt::format(" and {} more", zones.size() - kNamedMax) : text;
}

/// " (did you mean X?)", or empty. Zones are compared whole and by the value of their label.
std::string suggestion(std::string_view asked, const std::vector<std::string>& zones) {
  if (asked == "-") return {};
  NearestWord nearest(asked);
  for (const std::string& zone : zones) {
    nearest.offer(zone, zone_text(zone));
    nearest.offer(label_value(zone), zone_text(zone));
  }
  return nearest.suggestion();
}

}  // namespace

Result<std::string> find_zone(std::string_view asked, const std::set<std::string>& zones) {
  const std::string name = asked == "-" ? std::string() : std::string(asked);
  if (zones.contains(name)) return name;
  std::vector<std::string> meant;
  std::ranges::copy_if(zones, std::back_inserter(meant),
                       [&](const std::string& zone) { return !name.empty() && label_value(zone) == name; });
  if (meant.size() == 1) return meant.front();
  if (meant.size() > 1) return invalid("--zone", "\"{}\" is the label of several zones: {}", asked, names_of(meant));
  const std::vector<std::string> known(zones.begin(), zones.end());
  if (known.empty()) return invalid("--zone", "there is no zone \"{}\": no nodes are known", asked);
  return invalid("--zone", "there is no zone \"{}\"{}: the nodes are in {}", asked, suggestion(asked, known),
                 names_of(known));
}

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
