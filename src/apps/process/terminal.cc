#include "apps/process/terminal.h"

#include "base/utf8.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace spillway::apps {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

void write_to(std::FILE* file, std::string_view text) {
  const std::string shown = printable_painted(text);
  std::fwrite(shown.data(), 1, shown.size(), file);  // fmt::print would throw
}

}  // namespace

void clear_screen() {
  std::fputs("\x1b[H\x1b[2J", stdout);
}

void write_stdout(std::string_view text) {
  write_to(stdout, text);
}

void write_stderr(std::string_view text) {
  write_to(stderr, text);
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1 && variable("TERM") != "dumb";
}

bool shows_colour(cli::Colour wanted, int fd) {
  if (wanted != cli::Colour::kAuto) return wanted == cli::Colour::kAlways;
  return is_terminal(fd) && variable("NO_COLOR").empty();
}

}  // namespace spillway::apps
