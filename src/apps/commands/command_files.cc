#include "apps/commands/command_files.h"

#include "apps/process/drop_in.h"
#include "apps/process/process.h"
#include "cli/config/manager_config.h"
#include "yaml/yaml_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

namespace {

Result<cli::ManagerFlags> read_manager_files(const std::string& file, const std::string& directory) {
  SPILLWAY_TRY(files, configuration_files(file, directory));
  cli::ManagerFlags all;
  for (const std::string& each : files) {
    SPILLWAY_TRY(document, yaml::read_file(each));
    cli::ManagerFlags more = cli::manager_flags(each, document);
    std::ranges::move(more.flags, std::back_inserter(all.flags));
    std::ranges::move(more.errors, std::back_inserter(all.errors));
    std::ranges::move(more.warnings, std::back_inserter(all.warnings));
  }
  return all;
}

/// Refuses the command, with one line for each error.
cli::EarlyExit refusal(const std::vector<std::string>& errors) {
  std::string text;
  for (const std::string& error : errors) text += fmt::format("spillway: {}\n", error);
  return {text, cli::kExitUsage};
}

}  // namespace

std::variant<cli::CommandLine, cli::EarlyExit> parse_with_files(int argc, const char* const* argv) {
  auto parsed = cli::parse_command_line(argc, argv);
  const auto* line = std::get_if<cli::CommandLine>(&parsed);
  const auto* command = line == nullptr ? nullptr : std::get_if<cli::ControllerCommand>(&line->command);
  if (command == nullptr || (command->config.empty() && command->config_directory.empty())) return parsed;
  const auto more = read_manager_files(command->config, command->config_directory);
  if (!more) return refusal({more.error().text()});
  for (const std::string& warning : more->warnings) print_to_stderr(fmt::format("spillway: warning: {}\n", warning));
  if (!more->errors.empty()) return refusal(more->errors);

  std::vector<const char*> words;
  bool added = false;
  for (int i = 0; i < argc; ++i) {
    words.push_back(argv[i]);
    if (added || std::string_view(argv[i]) != "controller") continue;
    for (const std::string& flag : more->flags) words.push_back(flag.c_str());
    added = true;
  }
  return cli::parse_command_line(static_cast<int>(words.size()), words.data());
}

}  // namespace spillway::apps
