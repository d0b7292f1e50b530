#include "apps/commands/scenario_sources.h"

#include "apps/commands/incident_files.h"
#include "base/edit_distance.h"
#include "base/file.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apps {
namespace {

struct ScenarioSource {
  std::string file;
  std::string text;
};

std::string incident_name(std::string_view file) {
  return std::string(file.substr(0, file.rfind('.')));
}

/// A file, or a scenario of the program; "all" means every one of these.
Result<std::vector<ScenarioSource>> find_sources(const std::string& wanted) {
  std::vector<ScenarioSource> found;
  std::string names;
  NearestWord nearest(wanted);
  for (const auto& [file, text] : kIncidentFiles) {
    names += " " + incident_name(file);
    nearest.offer(incident_name(file));
    if (wanted == "all" || wanted == incident_name(file)) found.push_back({std::string(file), std::string(text)});
  }
  if (!found.empty()) return found;
  if (wanted.find_first_of("./") == std::string::npos) {
    return invalid(wanted, "there is no such scenario{}; expected a file, all, or one of{}", nearest.suggestion(),
                   names);
  }
  auto text = read_file(wanted);
  if (!text) return text.error();
  return std::vector{ScenarioSource{wanted, *std::move(text)}};
}

}  // namespace

Result<std::vector<sim::Scenario>> read_scenarios(const std::vector<std::string>& wanted,
                                                  const sim::ClusterOverride& instead) {
  std::vector<sim::Scenario> scenarios;
  for (const std::string& each : wanted) {
    SPILLWAY_TRY(sources, find_sources(each));
    for (const ScenarioSource& source : sources) {
      SPILLWAY_TRY(scenario, sim::parse_scenario(source.file, source.text, reader_beside(source.file), instead));
      scenarios.push_back(std::move(scenario));
    }
  }
  return scenarios;
}

sim::ReadText reader_beside(const std::string& file) {
  const auto folder = std::filesystem::path(file).parent_path();
  return [folder](const std::string& name) { return read_file((folder / name).string()); };
}

}  // namespace spillway::apps
