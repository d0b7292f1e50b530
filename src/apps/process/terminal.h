// Ways to write to standard output and error: lines that are drawn over, colours, text of others. Thread:
// main. Source: https://no-color.org; terminfo, "dumb".
#pragma once

#include "cli/flags/command_line.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace spillway::apps {

/// A terminal that can draw over a line: neither a file, nor TERM=dumb.
bool is_terminal(int fd);

/// kAuto: colours on such a terminal, unless NO_COLOR is set and not empty.
bool shows_colour(cli::Colour wanted, int fd);

/// Columns of the terminal at standard output; without one, the value of COLUMNS, else 0: any number.
std::size_t screen_width();

// Prints the texts of commands. They may contain text of a node, a server or a file: of terminal controls only colours
// are kept (base/utf8.h). A closed reader is no failure.

/// Clears the screen, with the cursor in its first place.
void clear_screen();

void write_stdout(std::string_view text);
void write_stderr(std::string_view text);

template <typename... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_stdout(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void print_err(fmt::format_string<Args...> format, Args&&... args) {
  write_stderr(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace spillway::apps
