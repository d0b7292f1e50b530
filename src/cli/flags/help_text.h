// The help of a command, in lines of at most 100 columns: examples, then its flags by group with values and defaults.
// --help shows the most used flags of a command with many, --help-all shows every flag.
// Thread: main.
#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace spillway::cli {

/// The formatter of the root command, set before it gets commands.
std::shared_ptr<CLI::FormatterBase> help_text();

/// Flags that are defined from now on are listed under this heading.
void begin_group(CLI::App& app, const std::string& heading);

/// "spillway store backup".
std::string command_words(const CLI::App& app);

}  // namespace spillway::cli
