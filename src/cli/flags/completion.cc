#include "cli/flags/completion.h"

#include "base/check.h"
#include "cli/flags/checks.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace spillway::cli {
namespace {

std::string offer(std::string_view word, std::string_view what) {
  return fmt::format("{}\t{}\n", word, what.substr(0, what.find('\n')));
}

/// The position in a command line before its last word.
class Position {
 public:
  explicit Position(const CLI::App& root) : app_(&root) {}

  void pass(std::string_view word) {
    if (value_of_ != nullptr) {
      value_of_ = nullptr;
    } else if (word.starts_with('-')) {
      const CLI::Option* option = find_flag(word.substr(0, word.find('=')));
      if (option != nullptr && !value_words(*option).empty() && !word.contains('=')) value_of_ = option;
    } else {
      const auto commands = app_->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
      if (!commands.empty()) app_ = commands.front();
    }
  }

  std::string offers(std::string_view begun) const {
    if (value_of_ != nullptr) return values(*value_of_, begun);
    if (begun.starts_with('-')) return flags(begun);
    std::string text;
    for (const CLI::App* each : app_->get_subcommands({})) {
      if (each->get_name().starts_with(begun) && !each->get_group().empty())
        text += offer(each->get_name(), each->get_description());
    }
    for (const CLI::Option* each : app_->get_options([](const CLI::Option* one) { return one->get_positional(); }))
      text += values(*each, begun);
    return text;
  }

 private:
  const CLI::Option* find_flag(std::string_view flag) const {
    for (const CLI::App* app = app_; app != nullptr; app = app->get_parent()) {
      if (const CLI::Option* option = app->get_option_no_throw(std::string(flag)); option != nullptr) return option;
    }
    return nullptr;
  }

  static std::string values(const CLI::Option& option, std::string_view begun) {
    const std::string words = value_words(option);
    if (words == "FILE") return ":file\n";
    if (words == "DIR") return ":directory\n";
    std::string text;
    for (const std::string& word : CLI::detail::split(words, '|')) {
      const bool is_placeholder = std::ranges::any_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
      if (words.contains('|') && !is_placeholder && word.starts_with(begun)) text += offer(word, "");
    }
    return text;
  }

  std::string flags(std::string_view begun) const {
    std::string text;
    for (const CLI::App* app = app_; app != nullptr; app = app->get_parent()) {
      for (const CLI::Option* option :
           app->get_options([](const CLI::Option* each) { return each->nonpositional(); })) {
        if (option->get_group().empty()) continue;
        for (const std::string& name : option->get_lnames()) {
          const std::string flag = "--" + name;
          const bool again = app != app_ && name == "help";
          if (flag.starts_with(begun) && !again) text += offer(flag, option->get_description());
        }
      }
    }
    return text;
  }

  const CLI::App* app_;
  const CLI::Option* value_of_ = nullptr;  // the word before was this flag, which takes a value
};

constexpr std::string_view kBash = R"(# Completion of spillway for bash: source <(spillway completion bash)
_spillway() {
  local word line files=
  COMPREPLY=()
  word=${COMP_WORDS[COMP_CWORD]}
  while IFS= read -r line; do
    case $line in
      :file) files=-f ;;
      :directory) files=-d ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$files" -- "$word")
  fi
}
complete -F _spillway spillway
)";

constexpr std::string_view kZsh = R"(#compdef spillway
# Completion of spillway for zsh: source <(spillway completion zsh), or as a file named _spillway in a directory of $fpath
_spillway() {
  local line word
  local -a offers
  for line in "${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      :file) _files ;;
      :directory) _files -/ ;;
      ?*)
        word=${line%%$'\t'*}
        offers+=("${word//:/\\:}:${line#*$'\t'}")
        ;;
    esac
  done
  (( ${#offers} )) && _describe 'spillway' offers
}
if [[ ${funcstack[1]} == _spillway ]]; then _spillway "$@"; else compdef _spillway spillway; fi
)";

constexpr std::string_view kFish = R"(# Completion of spillway for fish: spillway completion fish | source
function __spillway_complete
    set -l words (commandline -opc)
    set -l begun (commandline -ct)
    for line in ($words[1] __complete -- $words[2..-1] "$begun" 2>/dev/null)
        switch $line
            case :file
                __fish_complete_path "$begun"
            case :directory
                __fish_complete_directories "$begun"
            case '*'
                echo $line
        end
    end
end
complete -c spillway -f -a '(__spillway_complete)'
)";

}  // namespace

std::string completions(const CLI::App& root, std::span<const char* const> words) {
  Position position(root);
  if (words.empty()) return position.offers("");
  for (const char* word : words.first(words.size() - 1)) position.pass(word);
  return position.offers(words.back());
}

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  SPILLWAY_CHECK(shell == "fish");
  return std::string(kFish);
}

}  // namespace spillway::cli
