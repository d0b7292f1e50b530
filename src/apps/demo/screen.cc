#include "apps/demo/screen.h"

#include "apps/process/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace spillway::apps {

namespace {

constexpr int kGaugeWidth = 40;

void print(const std::string& text) {
  write_stdout(text);
  std::fflush(stdout);
}

/// Draws over the previous line.
void draw(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

Screen::Screen() : terminal_(is_terminal(STDOUT_FILENO)), coloured_(shows_colour(cli::Colour::kAuto, STDOUT_FILENO)) {}

void Screen::chapter(std::string_view title) {
  end_gauge();
  print(fmt::format(fmt::runtime(coloured_ ? "\n\x1b[1m{}. {}\x1b[0m\n" : "\n{}. {}\n"), ++chapter_, title));
}

void Screen::line(std::string_view text) {
  end_gauge();
  print(fmt::format("   {}\n", text));
}

void Screen::passed(std::string_view text) {
  end_gauge();
  print(fmt::format(fmt::runtime(coloured_ ? "   \x1b[32m✔\x1b[0m {}\n" : "   ok    {}\n"), text));
}

void Screen::failed(std::string_view text) {
  end_gauge();
  ++failures_;
  print(fmt::format(fmt::runtime(coloured_ ? "   \x1b[31m✘ {}\x1b[0m\n" : "   FAIL  {}\n"), text));
}

void Screen::gauge(Bytes available, Bytes capacity, Bytes threshold) {
  const auto columns = [capacity](Bytes amount) {
    const std::int64_t clamped = std::clamp<std::int64_t>(amount.count(), 0, capacity.count());
    return static_cast<int>(clamped * kGaugeWidth / std::max<std::int64_t>(capacity.count(), 1));
  };
  std::string bar(static_cast<std::size_t>(columns(available)), '#');
  bar.resize(kGaugeWidth, ' ');
  bar[static_cast<std::size_t>(std::min(columns(threshold), kGaugeWidth - 1))] = '|';
  const std::string text = fmt::format("   memory.available {:>10} [{}] threshold {}", mebibytes_text(available), bar,
                                       mebibytes_text(threshold));
  if (!terminal_) return print(text + "\n");
  draw((gauge_open_ ? "\r" : "") + text + "\x1b[K");
  gauge_open_ = true;
}

void Screen::end_gauge() {
  if (gauge_open_) print("\n");
  gauge_open_ = false;
}

std::string mebibytes_text(Bytes bytes) {
  return fmt::format("{:.1f}Mi", static_cast<double>(bytes.count()) / (1024.0 * 1024.0));
}

std::string seconds_text(Duration duration) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
}

}  // namespace spillway::apps
