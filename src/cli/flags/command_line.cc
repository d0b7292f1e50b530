#include "cli/flags/command_line.h"

#include "base/edit_distance.h"
#include "base/version.h"
#include "cli/flags/checks.h"
#include "cli/flags/commands.h"
#include "cli/flags/completion.h"
#include "cli/flags/flags.h"
#include "cli/flags/help_text.h"
#include "cli/flags/help_topics.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

void collect_flags(const CLI::App& app, std::vector<std::string>& flags) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
}

/// True if the text has the word as a whole word, not as a part of another one.
bool names_word(std::string_view text, std::string_view word) {
  if (word.empty()) return false;
  constexpr std::string_view kAround = " \"=:,;";
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || kAround.contains(text[at - 1]);
    if (begins && (end == text.size() || kAround.contains(text[end]))) return true;
  }
  return false;
}

/// The library's message about a value, in the style of all other messages.
std::string in_our_words(std::string text) {
  constexpr std::string_view kTwice = ": At Most 1 required but received ";
  constexpr std::string_view kMissing = ": 1 required ";
  constexpr std::string_view kNoFile = ": File does not exist: ";
  constexpr std::string_view kNoDirectory = ": Directory does not exist: ";
  constexpr std::string_view kUnexpected = "The following argument was not expected: ";
  if (const std::size_t at = text.find(kTwice); at != std::string::npos)
    return fmt::format("{}: given {} times, expected once", text.substr(0, at), text.substr(at + kTwice.size()));
  if (const std::size_t at = text.find(kMissing); at != std::string::npos && text.ends_with(" missing"))
    return text.substr(0, at) + ": expected a value after it";
  if (const std::size_t at = text.find(kNoFile); at != std::string::npos)
    return fmt::format("{}: expected a file, got \"{}\", which does not exist", text.substr(0, at),
                       text.substr(at + kNoFile.size()));
  if (const std::size_t at = text.find(kNoDirectory); at != std::string::npos)
    return fmt::format("{}: expected a directory, got \"{}\", which does not exist", text.substr(0, at),
                       text.substr(at + kNoDirectory.size()));
  if (text.starts_with(kUnexpected)) return fmt::format("unexpected argument \"{}\"", text.substr(kUnexpected.size()));
  return text;
}

class Parser {
 public:
  std::variant<CommandLine, EarlyExit> parse(int argc, const char* const* argv) {
    define();
    if (argc > 2 && argv[1] == kCompleteWord) return EarlyExit{completions(app_, asked_words(argc, argv)), kExitOk};
    // "help COMMAND" is "COMMAND --help".
    std::vector<const char*> words(argv, argv + argc);
    if (argc > 1 && std::string_view(argv[1]) == "help") {
      words.erase(words.begin() + 1);
      if (argc > 2 && std::string_view(argv[2]) == "exit-codes") return EarlyExit{exit_codes_text(), kExitOk};
      const auto named = [&](const CLI::App* app) { return app->get_name() == argv[2]; };
      if (argc > 2 && std::ranges::none_of(app_.get_subcommands({}), named)) {
        return unknown_command(argv[2]);
      }
      words.push_back("--help");
    } else if (argc < 2) {
      words.push_back("--help");
    } else if (argc == 2 && std::string_view(argv[1]) == "version") {
      words.back() = "--version";
    }
    try {
      app_.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::CallForHelp&) {
      if (&chosen() == &app_ && (argc < 2 || std::string_view(argv[1]) != "help")) {
        if (const std::string word = word_behind(app_, argc, argv); !word.empty()) return unknown_command(word);
      }
      return EarlyExit{chosen().help(), kExitOk};
    } catch (const CLI::CallForAllHelp&) {
      return EarlyExit{chosen().help("", CLI::AppFormatMode::All), kExitOk};
    } catch (const CLI::CallForVersion& version) {
      return EarlyExit{std::string(version.what()) + "\n", kExitOk};
    } catch (const CLI::ParseError& error) {
      return EarlyExit{mistake(error, argc, argv), kExitUsage};
    }
    if (!shell_.empty()) return EarlyExit{completion_script(shell_), kExitOk};
    return CommandLine{log_, commands_.chosen()};
  }

 private:
  /// Behind "__complete --".
  static std::span<const char* const> asked_words(int argc, const char* const* argv) {
    const bool marked = std::string_view(argv[2]) == "--";
    return std::span(argv, static_cast<std::size_t>(argc)).subspan(marked ? 3 : 2);
  }

  void define() {
    app_.formatter(help_text());
    app_.require_subcommand(1);
    app_.footer(
        "spillway help COMMAND shows examples and the most used flags of a command, spillway COMMAND --help-all all "
        "flags.\n"
        "spillway help exit-codes lists the exit codes.");
    app_.set_help_flag("-h,--help", "Show this help and exit; of a command with many flags, the most used ones");
    app_.set_help_all_flag("--help-all", "Show all flags and exit");
    app_.set_version_flag("-v,--version", fmt::format("spillway {}", program_version()), "Show the version and exit");
    add_log(app_, log_);
    define_process_commands(commands_);
    define_proxy(commands_);
    define_offline_commands(commands_);
    define_explain(commands_);
    define_recording_commands(commands_);
    define_cluster_commands(commands_);
    define_image_commands(commands_);
    define_store_commands(commands_);
    define_completion(commands_, shell_);
  }

  /// Commands that may be suggested for a mistyped one: without the brakes of a whole cluster, which no typing mistake
  /// should lead to.
  std::vector<std::string> command_names() const {
    std::vector<std::string> names{"help"};
    for (const CLI::App* app : app_.get_subcommands({})) {
      if (app->get_name() != "hold" && app->get_name() != "resume") names.push_back(app->get_name());
    }
    return names;
  }

  /// The innermost command that was named.
  const CLI::App& chosen() const {
    const CLI::App* app = &app_;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    return *app;
  }

  bool is_chosen(std::string_view word) const {
    const CLI::App* app = &chosen();
    while (app != &app_ && app->get_name() != word) app = app->get_parent();
    return app != &app_;
  }

  /// "store backup "; empty if none was named.
  std::string chosen_words() const {
    std::string words;
    for (const CLI::App* app = &chosen(); app != &app_; app = app->get_parent()) words.insert(0, app->get_name() + " ");
    return words;
  }

  /// The first word behind the command, unless it is a flag.
  static std::string word_behind(const CLI::App& command, int argc, const char* const* argv) {
    int at = 1;
    if (command.get_parent() != nullptr) {
      while (at < argc && command.get_name() != argv[at]) ++at;
      ++at;
    }
    return at < argc && argv[at][0] != '-' ? argv[at] : "";
  }

  /// The first given word that the text names and that is neither command nor flag, flags first; empty if there is
  /// none.
  std::string mistaken_word(std::string_view text, const std::vector<std::string>& known, int argc,
                            const char* const* argv) const {
    for (const bool flags : {true, false}) {
      for (int i = 1; i < argc; ++i) {
        const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
        if (word.starts_with("--") != flags || is_chosen(word) || !names_word(text, word)) continue;
        if (std::ranges::find(known, word) == known.end()) return word;
      }
    }
    return {};
  }

  EarlyExit unknown_command(const std::string& word) const {
    return {fmt::format("spillway: unknown command \"{}\"{}; see `spillway --help`\n", word,
                        nearest_word(word, command_names()).suggestion()),
            kExitUsage};
  }

  std::string mistake(const CLI::ParseError& error, int argc, const char* const* argv) const {
    std::string text = error.what();
    std::vector<std::string> known;
    const std::vector<const CLI::App*> further = chosen().get_subcommands({});
    if (!further.empty()) {
      if (&chosen() == &app_) known = command_names();
      if (&chosen() != &app_) {
        for (const CLI::App* app : further) known.push_back(app->get_name());
      }
      if (const std::string word = word_behind(chosen(), argc, argv); !word.empty()) {
        text = fmt::format("unknown command \"{}{}\"", chosen_words(), word);
      }
    }
    text = in_our_words(std::move(text));
    collect_flags(app_, known);
    collect_flags(chosen(), known);
    if (const std::string word = mistaken_word(text, known, argc, argv); !word.empty()) {
      if (word.starts_with("--")) text = fmt::format("unknown flag {}", word);
      text += nearest_word(word, known).suggestion();
    }
    return fmt::format("spillway: {}; see `spillway {}--help`\n", text, chosen_words());
  }

  CLI::App app_{"Keeps Kubernetes nodes alive under resource pressure and their workloads running when nodes fail.",
                "spillway"};
  LogArgs log_;
  std::string shell_;  // the requested completion script
  Commands commands_{app_};
};

}  // namespace

void define_completion(Commands& commands, std::string& shell) {
  CLI::App& app = commands.add("completion", "Print the completion script of a shell");
  app.add_option("SHELL", shell, "Shell that the script is for")->check(one_of({"bash", "zsh", "fish"}))->required();
  app.footer(
      "bash: source <(spillway completion bash)   zsh: source <(spillway completion zsh)\n"
      "fish: spillway completion fish | source");
}

CLI::App& Commands::add(const std::string& name, const std::string& help) {
  return add_to(root_, name, help);
}

CLI::App& Commands::add_to(CLI::App& group, const std::string& name, const std::string& help) {
  CLI::App* app = group.add_subcommand(name, help);
  app->fallthrough();
  app->footer("");  // the program's footer is not inherited
  return *app;
}

void Commands::on_chosen(CLI::App& app, std::function<Command()> chosen) {
  app.callback([this, chosen = std::move(chosen)] { chosen_ = chosen; });
}

std::variant<CommandLine, EarlyExit> parse_command_line(int argc, const char* const* argv) {
  return Parser().parse(argc, argv);
}

}  // namespace spillway::cli
