#include "apps/process/progress_line.h"

#include "apps/process/terminal.h"
#include "runtime/clock.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace spillway::apps {
namespace {

constexpr Duration kBetween = milliseconds(200);

}  // namespace

ProgressLine::ProgressLine(std::string what, Shown shown)
    : what_(std::move(what)), shown_(shown == Shown::kOnTerminal && is_terminal(STDERR_FILENO)) {}

ProgressLine::~ProgressLine() {
  if (shown_ && next_ != Instant()) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::show(double share) {
  if (!shown_) return;
  const Instant now = runtime::RealClock::read_mono();
  if (now < next_) return;
  next_ = now + kBetween;
  fmt::print(stderr, "\r\x1b[K{}{}", what_, share > 0 ? fmt::format(" {:.0f}%", share * 100) : "");
  std::fflush(stderr);
}

}  // namespace spillway::apps
