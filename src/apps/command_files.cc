#include "apps/command_files.h"

#include "cli/manager_config.h"
#include "cli/yaml_document.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

namespace {

cli::Farewell refusal(const Error& error) {
  return {fmt::format("spillway: {}\n", error.text()), cli::kExitUsage};
}

}  // namespace

std::variant<cli::CommandLine, cli::Farewell> parse_with_files(int argc, const char* const* argv) {
  auto parsed = cli::parse_command_line(argc, argv);
  const auto* line = std::get_if<cli::CommandLine>(&parsed);
  const auto* command = line == nullptr ? nullptr : std::get_if<cli::ControllerCommand>(&line->command);
  if (command == nullptr || command->config.empty()) return parsed;
  const auto document = cli::read_yaml_file(command->config);
  if (!document) return refusal(document.error());
  const auto more = cli::manager_flags(command->config, *document);
  if (!more) return refusal(more.error());
  for (const std::string& warning : more->warnings) fmt::print(stderr, "spillway: warning: {}\n", warning);

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
