// Completions of an unfinished command line, and the scripts by which bash, zsh and fish request them: `spillway
// __complete -- WORD…`. Only the program's own commands and flags are offered. Thread: main.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The hidden command that the shell scripts call.
inline constexpr std::string_view kCompleteWord = "__complete";

/// Completions, one a line: the word, a tab, its description. ":file" or ":directory" alone: the shell completes names.
/// `words`: those behind the program's name; the last one is unfinished, and may be empty.
std::string completions(const CLI::App& root, std::span<const char* const> words);

/// The script for "bash", "zsh" or "fish".
std::string completion_script(std::string_view shell);

}  // namespace spillway::cli
