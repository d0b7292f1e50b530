#include "apps/commands/scenario_sources.h"

#include "apps/commands/incident_files.h"
#include "base/file.h"

#include <filesystem>
#include <string_view>
#include <utility>

namespace spillway::apps {
namespace {

std::string name_of(std::string_view file) {
  return std::string(file.substr(0, file.rfind('.')));
}

}  // namespace

Result<std::vector<ScenarioSource>> find_sources(const std::string& wanted) {
  std::vector<ScenarioSource> found;
  std::string names;
  for (const auto& [file, text] : kIncidentFiles) {
    names += " " + name_of(file);
    if (wanted == "all" || wanted == name_of(file)) found.push_back({std::string(file), std::string(text)});
  }
  if (!found.empty()) return found;
  if (wanted.find_first_of("./") == std::string::npos) {
    return invalid(wanted, "there is no such scenario; expected a file, all, or one of{}", names);
  }
  auto text = read_file(wanted);
  if (!text) return text.error();
  return std::vector{ScenarioSource{wanted, *std::move(text)}};
}

sim::ReadText reader_beside(const std::string& file) {
  const auto folder = std::filesystem::path(file).parent_path();
  return [folder](const std::string& name) { return read_file((folder / name).string()); };
}

}  // namespace spillway::apps
