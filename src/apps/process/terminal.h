// What may be written to standard output or error: lines that are drawn over, colours. Thread: main. Source:
// https://no-color.org; terminfo, "dumb".
#pragma once

#include "cli/flags/command_line.h"

namespace spillway::apps {

/// A terminal that can draw over a line: neither a file, nor TERM=dumb.
bool is_terminal(int fd);

/// kAuto: on such a terminal, unless NO_COLOR is set to anything but nothing.
bool shows_colour(cli::Colour wanted, int fd);

}  // namespace spillway::apps
