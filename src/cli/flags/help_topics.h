// The first lines of a command's help: examples, the flags that most people need, and the group of commands that it
// belongs to. Thread: any; the tables are constants.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace spillway::cli {

/// A complete call, without "sudo" where no root is needed, and a phrase that describes it.
struct HelpExample {
  std::string_view call;
  std::string_view meaning;
};

struct HelpTopic {
  std::string_view command;  // "up", "store backup"
  /// Heading of the list in `spillway --help`; empty for a command of a command.
  std::string_view group;
  std::span<const HelpExample> examples;
  /// Flags that `--help` shows, in this order. Empty: `--help` shows all flags, as --help-all does.
  std::span<const std::string_view> most_used;
};

/// Topics in the order of `spillway --help`.
std::span<const HelpTopic> help_topics();

/// nullptr: there is no such command.
const HelpTopic* find_help_topic(std::string_view command);

/// The table of `spillway help exit-codes`: one line per code, the same for every command.
std::string exit_codes_text();

}  // namespace spillway::cli
