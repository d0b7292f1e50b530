// `spillway swarm`: many seeds of the simulator, some at a time, each a world of its own; the first that violates a
// property is made small and written as a scenario. Threads: one per job; they share the next seed and the tally.
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/process/interruption.h"
#include "apps/process/process.h"
#include "apps/process/progress_line.h"
#include "apps/process/terminal.h"
#include "base/file.h"
#include "base/rng.h"
#include "runtime/clock.h"
#include "runtime/fast_heap.h"
#include "sim/properties/property.h"
#include "sim/scenario/player.h"
#include "sim/scenario/printer.h"
#include "sim/swarm/minimise.h"
#include "sim/swarm/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace spillway::apps {

namespace {

constexpr std::size_t kFailuresShown = 20;
constexpr int kEndedBySignal = 128;

double since(Instant begin) {
  return std::chrono::duration<double>(runtime::RealClock::read_mono() - begin).count();
}

void print_line(telemetry::Level, std::string_view event, std::span<const telemetry::Field> fields) {
  std::string line(event);
  for (const telemetry::Field& field : fields) line += fmt::format(" {}={}", field.key, field.value);
  print_err("{}\n", line);
}

bool should_continue(double) {
  return Interruption::signal() == 0;
}

struct Failure {
  std::vector<std::string> violated;    // names of properties
  std::vector<std::string> violations;  // lines
  std::vector<sim::Violated> kinds;     // the first violation first
};

/// The results of all seeds that have been played.
class Tally {
 public:
  Tally(std::uint64_t first, std::uint64_t count) : next_(first), end_(first + count) {}

  /// nullopt: no seed is left.
  std::optional<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    if (next_ == end_ || Interruption::signal() != 0) return std::nullopt;
    return next_++;
  }

  void put(std::uint64_t seed, const sim::RunOutcome& outcome) {
    const std::lock_guard lock(mutex_);
    if (outcome.interrupted) return;
    ++done_;
    writes_ += outcome.writes;
    messages_ += outcome.messages;
    traces_ ^= fnv1a64(fmt::format("{} {}", seed, outcome.trace_hash));
    if (!outcome.violations.empty())
      failed_.emplace(seed, Failure{outcome.violated, outcome.violations, outcome.kinds_of_violations});
  }

  std::uint64_t done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  // Valid after the last put().
  const std::map<std::uint64_t, Failure>& failed() const { return failed_; }

  std::uint64_t writes() const { return writes_; }

  std::uint64_t messages() const { return messages_; }

  /// A hash of all trace hashes, independent of their order: the same seeds give the same text.
  std::string traces() const { return fmt::format("{:016x}", traces_); }

 private:
  std::mutex mutex_;
  std::uint64_t next_;
  std::uint64_t end_;
  std::uint64_t done_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t traces_ = 0;
  std::map<std::uint64_t, Failure> failed_;
};

struct Small {
  std::uint64_t seed = 0;
  std::string property;
  std::string subject;  // kind of object for which the promise was broken
  std::string text;     // the scenario file's
  std::size_t runs = 0;
  double took_s = 0;
};

Small make_small(std::uint64_t seed, const Failure& failure, std::size_t runs_max) {
  const Instant begin = runtime::RealClock::read_mono();
  const sim::Violated& what = failure.kinds.front();
  const ProgressLine line(fmt::format("seed {}: making it small", seed), ProgressLine::Shown::kOnTerminal);
  const auto fails = [&what, seed](const sim::Scenario& scenario) {
    if (Interruption::signal() != 0) return false;
    const sim::RunOutcome outcome = sim::run_scenario(scenario, {.seed = seed, .should_continue = should_continue});
    return !outcome.interrupted &&
           std::ranges::find(outcome.kinds_of_violations, what) != outcome.kinds_of_violations.end();
  };
  sim::Minimised small = sim::minimise(sim::plan_of(seed), fails, runs_max);
  const std::string property(sim::name_of(what.property));
  small.scenario.story = fmt::format("violates {} ({})", property, what.subject);
  return {seed, property, what.subject, sim::scenario_yaml(small.scenario), small.runs, since(begin)};
}

void print_text(const cli::SwarmCommand& command, Tally& tally, const std::optional<Small>& small, double took_s) {
  std::size_t shown = 0;
  for (const auto& [seed, failure] : tally.failed()) {
    if (++shown > kFailuresShown) break;
    print_out("FAIL seed {}\n", seed);
    for (const std::string& each : failure.violations) print_out("  violated: {}\n", each);
  }
  print_out("{} of {} seeds from {} on: {} with violations; {} writes, {} messages, {:.1f} s; traces {}\n",
            tally.done(), command.count(), command.first(), tally.failed().size(), tally.writes(), tally.messages(),
            took_s, tally.traces());
  if (!small) return;
  print_out("seed {} violates {} ({}); made small with {} runs in {:.1f} s:\n", small->seed, small->property,
            small->subject, small->runs, small->took_s);
  print_out("{}", command.write.empty() ? small->text : command.write + "\n");
}

void print_document(const cli::SwarmCommand& command, Tally& tally, const std::optional<Small>& small, double took_s) {
  api::Json failed = api::Json::array();
  for (const auto& [seed, failure] : tally.failed()) {
    api::Json each =
        api::Json::object({{"seed", seed}, {"violated", api::Json::array()}, {"violations", api::Json::array()}});
    for (const std::string& name : failure.violated) each["violated"].if_array()->emplace_back(name);
    for (const std::string& line : failure.violations) each["violations"].if_array()->emplace_back(line);
    failed.if_array()->push_back(std::move(each));
  }
  api::Json out = api::Json::object({{"firstSeed", command.first()},
                                     {"seeds", command.count()},
                                     {"done", tally.done()},
                                     {"interrupted", Interruption::signal() != 0},
                                     {"seconds", took_s},
                                     {"writes", tally.writes()},
                                     {"messages", tally.messages()},
                                     {"traces", tally.traces()},
                                     {"failed", std::move(failed)},
                                     {"minimised", nullptr}});
  if (small) {
    out["minimised"] = api::Json::object({{"seed", small->seed},
                                          {"property", small->property},
                                          {"subject", small->subject},
                                          {"runs", static_cast<std::uint64_t>(small->runs)},
                                          {"seconds", small->took_s},
                                          {"scenario", small->text}});
  }
  print_answer(out, command.output);
}

/// Plays all seeds; the main thread is one of the workers.
void run_seeds(const cli::SwarmCommand& command, Tally& tally, std::uint64_t count) {
  const int wanted = command.jobs > 0 ? command.jobs : static_cast<int>(std::thread::hardware_concurrency());
  const auto jobs = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max(wanted, 1)), 1, count);
  const auto work = [&tally, &command](ProgressLine* line, std::uint64_t of) {
    while (const auto seed = tally.take()) {
      sim::RunOptions options{.seed = *seed, .should_continue = should_continue};
      if (command.only) options.log = print_line;
      tally.put(*seed, sim::run_scenario(sim::plan_of(*seed), options));
      if (line != nullptr) line->show(static_cast<double>(tally.done()) / static_cast<double>(of));
    }
  };
  ProgressLine line("seeds", ProgressLine::Shown::kOnTerminal);
  std::vector<std::thread> others;
  for (std::uint64_t i = 1; i < jobs; ++i) others.emplace_back(work, nullptr, count);
  work(&line, count);
  for (std::thread& thread : others) thread.join();
}

}  // namespace

int run_swarm(const cli::SwarmCommand& command) {
  runtime::use_fast_heap();
  const std::uint64_t count = command.count();
  const Interruption interruption;
  const Instant begin = runtime::RealClock::read_mono();
  Tally tally(command.first(), count);
  run_seeds(command, tally, count);
  const double took_s = since(begin);
  std::optional<Small> small;
  if (!tally.failed().empty() && command.minimise_runs > 0 && Interruption::signal() == 0) {
    const auto& [seed, failure] = *tally.failed().begin();
    small = make_small(seed, failure, command.minimise_runs);
  }
  if (cli::is_document(command.output))
    print_document(command, tally, small, took_s);
  else
    print_text(command, tally, small, took_s);
  if (small && !command.write.empty()) {
    if (const Outcome written = replace_file(command.write, small->text); !written) {
      print_error(written.error());
      return cli::kExitFailure;
    }
  }
  if (Interruption::signal() != 0) {
    print_err("spillway: interrupted after {} of {} seeds\n", tally.done(), count);
    return kEndedBySignal + Interruption::signal();
  }
  return tally.failed().empty() ? cli::kExitOk : cli::kExitInvariant;
}

}  // namespace spillway::apps
