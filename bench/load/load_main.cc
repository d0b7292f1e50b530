// spillway_load: renewals, lists and watches against an API server, at fixed times. See options.cc for what it takes.
#include "load/dialer.h"
#include "load/lister.h"
#include "load/options.h"
#include "load/renewer.h"
#include "load/watchers.h"
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace spillway::load {
namespace {

constexpr Duration kTurnMax = milliseconds(20);
constexpr Duration kDrainMax = seconds(5);

Duration seconds_of(double count) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(count));
}

/// Prints a line for the script that measures the server meanwhile.
void say(std::string_view what) {
  fmt::print(stderr, "{}\n", what);
}

struct Load {
  explicit Load(const Options& chosen, Dialer& over)
      : options(chosen), dialer(over), renewer(chosen, over), lister(chosen, over), watchers(chosen, over) {}

  const Options& options;
  Dialer& dialer;
  Renewer renewer;
  Lister lister;
  Watchers watchers;

  bool renews() const { return options.mode == "renew" || options.mode == "mix" || options.mode == "watch"; }

  bool lists() const { return options.mode == "list" || options.mode == "mix"; }

  Outcome prepare() {
    if (renews()) {
      SPILLWAY_TRY_VOID(renewer.open());
      SPILLWAY_TRY_VOID(renewer.learn());
    }
    if (lists()) SPILLWAY_TRY_VOID(lister.open());
    return options.watches == 0 ? Outcome() : watchers.open();
  }

  void turn_until(Instant end) {
    for (Instant present = now(); present < end; present = now()) {
      Instant next = std::min(end, present + kTurnMax);
      if (renews()) next = std::min(next, renewer.advance().value_or(end));
      if (lists()) next = std::min(next, lister.advance().value_or(end));
      dialer.turn(next - now());
    }
  }

  Result<Report> run() {
    SPILLWAY_TRY_VOID(prepare());
    const Instant start = now();
    const Instant measured = start + seconds_of(options.warm_up_seconds);
    const Instant end = measured + seconds_of(options.seconds);
    if (renews()) renewer.begin(start, measured, end);
    if (lists()) lister.begin(start, measured, end);
    watchers.begin(measured, end);
    turn_until(measured);
    say("measuring");
    turn_until(end);
    say("measured");
    // Late answers are waited for, so that they count with their real latency.
    if (renews()) renewer.advance();
    if (lists()) lister.advance();
    dialer.turn_until([this] { return !renewer.waits() && !lister.waits(); }, kDrainMax);
    renewer.end();
    lister.end();
    Report report{
        .seconds = options.seconds, .renewals = renewer.tally(), .lists = lister.tally(), .list_bytes = lister.bytes()};
    watchers.fill(report);
    return report;
  }
};

Outcome run(const Options& options) {
  SPILLWAY_TRY(dialer, Dialer::make(options));
  Load load(options, *dialer);
  if (options.mode == "fill") {
    SPILLWAY_TRY_VOID(load.renewer.open());
    return load.renewer.fill();
  }
  SPILLWAY_TRY(report, load.run());
  fmt::print("{}", options.as_json ? to_json(options, report) : to_text(options, report));
  return {};
}

}  // namespace
}  // namespace spillway::load

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const auto options = spillway::load::parse_options(argc, argv);
  if (!options) {
    fmt::print(stderr, "spillway_load: {}\n", options.error().text());
    return 2;
  }
  const spillway::Outcome outcome = spillway::load::run(*options);
  if (!outcome) fmt::print(stderr, "spillway_load: {}\n", outcome.error().text());
  return outcome ? 0 : 1;
}
