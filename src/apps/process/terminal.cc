#include "apps/process/terminal.h"

#include "base/utf8.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
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

std::size_t screen_width() {
  constexpr std::size_t kNarrowest = 40;  // on less, every cell would be cut into single words
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::max<std::size_t>(size.ws_col, kNarrowest);
  }
  const std::string_view columns = variable("COLUMNS");
  std::size_t width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  return width == 0 ? 0 : std::max(width, kNarrowest);
}

bool shows_colour(cli::Colour wanted, int fd) {
  if (wanted != cli::Colour::kAuto) return wanted == cli::Colour::kAlways;
  return is_terminal(fd) && variable("NO_COLOR").empty();
}

}  // namespace spillway::apps
