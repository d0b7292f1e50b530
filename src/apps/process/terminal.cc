#include "apps/process/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace spillway::apps {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

bool is_terminal(int fd) {
  return ::isatty(fd) == 1 && variable("TERM") != "dumb";
}

bool shows_colour(cli::Colour wanted, int fd) {
  if (wanted != cli::Colour::kAuto) return wanted == cli::Colour::kAlways;
  return is_terminal(fd) && variable("NO_COLOR").empty();
}

}  // namespace spillway::apps
