#include "cli/flags/command_line.h"

#include "base/edit_distance.h"
#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

void collect_flags(const CLI::App& app, std::vector<std::string>& flags) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
}

/// " (did you mean --data-dir?)", or empty when nothing is close.
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  std::size_t best = word.size() / 3 + 2;
  std::string found;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found.empty() ? "" : fmt::format(" (did you mean {}?)", found);
}

class Parser {
 public:
  std::variant<CommandLine, EarlyExit> parse(int argc, const char* const* argv) {
    define();
    // "help COMMAND" is "COMMAND --help".
    std::vector<const char*> words(argv, argv + argc);
    if (argc > 1 && std::string_view(argv[1]) == "help") {
      words.erase(words.begin() + 1);
      const auto named = [&](const CLI::App* app) { return app->get_name() == argv[2]; };
      if (argc > 2 && std::ranges::none_of(app_.get_subcommands({}), named)) {
        return EarlyExit{fmt::format("spillway: unknown command \"{}\"{}; see `spillway --help`\n", argv[2],
                                     suggestion(argv[2], command_names())),
                         kExitUsage};
      }
      words.push_back("--help");
    }
    try {
      app_.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::CallForHelp&) {
      return EarlyExit{chosen().help(), kExitOk};
    } catch (const CLI::CallForVersion& version) {
      return EarlyExit{std::string(version.what()) + "\n", kExitOk};
    } catch (const CLI::ParseError& error) {
      return EarlyExit{mistake(error, argc, argv), kExitUsage};
    }
    return CommandLine{log_, commands_.chosen()};
  }

 private:
  void define() {
    app_.require_subcommand(1);
    app_.footer("spillway help COMMAND lists the flags of a command.");
    app_.set_version_flag("--version", "spillway " SPILLWAY_VERSION);
    add_log(app_, log_);
    define_process_commands(commands_);
    define_offline_commands(commands_);
    define_explain(commands_);
    define_zone_commands(commands_);
  }

  /// To be suggested: not the brake of a whole cluster, which nobody should come to by a slip.
  std::vector<std::string> command_names() const {
    std::vector<std::string> names{"help"};
    for (const CLI::App* app : app_.get_subcommands({})) {
      if (app->get_name() != "hold" && app->get_name() != "resume") names.push_back(app->get_name());
    }
    return names;
  }

  const CLI::App& chosen() const {
    const std::vector<CLI::App*> apps = app_.get_subcommands();
    return apps.empty() ? static_cast<const CLI::App&>(app_) : *apps.front();
  }

  std::string mistake(const CLI::ParseError& error, int argc, const char* const* argv) const {
    std::string text = error.what();
    std::vector<std::string> known;
    if (app_.get_subcommands().empty()) {
      known = command_names();
      if (argc > 1 && argv[1][0] != '-') text = fmt::format("unknown command \"{}\"", argv[1]);
    }
    collect_flags(app_, known);
    collect_flags(chosen(), known);
    for (int i = 1; i < argc; ++i) {
      const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
      if (text.find(word) == std::string::npos || std::find(known.begin(), known.end(), word) != known.end()) continue;
      if (word.starts_with("--")) text = fmt::format("unknown flag {}", word);
      text += suggestion(word, known);
      break;
    }
    const std::string& command = chosen().get_name();
    return fmt::format("spillway: {}; see `spillway {}--help`\n", text,
                       app_.get_subcommands().empty() ? "" : command + " ");
  }

  CLI::App app_{"Keeps Kubernetes nodes alive under resource pressure and their workloads running when nodes fail.",
                "spillway"};
  LogArgs log_;
  Commands commands_{app_};
};

}  // namespace

CLI::App& Commands::add(const std::string& name, const std::string& help) {
  CLI::App* app = root_.add_subcommand(name, help);
  app->fallthrough();
  return *app;
}

void Commands::on_chosen(CLI::App& app, std::function<Command()> chosen) {
  app.callback([this, chosen = std::move(chosen)] { chosen_ = chosen; });
}

std::variant<CommandLine, EarlyExit> parse_command_line(int argc, const char* const* argv) {
  return Parser().parse(argc, argv);
}

}  // namespace spillway::cli
