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

/// The word by which the scripts ask.
inline constexpr std::string_view kCompleteWord = "__complete";

/// One line each: the word, a tab, what it is. ":file" or ":directory" alone: names of such. `words`: those behind the
/// program's name; the last one is unfinished, and may be empty.
std::string completions(const CLI::App& root, std::span<const char* const> words);

/// The script for "bash", "zsh" or "fish".
std::string completion_script(std::string_view shell);

}  // namespace spillway::cli
