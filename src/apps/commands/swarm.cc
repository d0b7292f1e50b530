// `spillway swarm`: many seeds of the simulator, some at a time, each a world of its own. Threads: one per job; they
// share the next seed and the tally.
#include "apps/commands/commands.h"
#include "runtime/clock.h"
#include "sim/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace spillway::apps {

namespace {

constexpr std::uint64_t kLinesMax = 50;  // seeds up to which each has its line
constexpr std::size_t kFailuresShown = 20;
constexpr double kProgressEvery = 10;  // seconds

double since(Instant begin) {
  return std::chrono::duration<double>(runtime::RealClock::read_mono() - begin).count();
}

void print_line(telemetry::Level, std::string_view event, std::span<const telemetry::Field> fields) {
  std::string line(event);
  for (const telemetry::Field& field : fields) line += fmt::format(" {}={}", field.key, field.value);
  fmt::print(stderr, "{}\n", line);
}

class Tally {
 public:
  Tally(std::uint64_t first, std::uint64_t count, int jobs)
      : next_(first), end_(first + count), count_(count), jobs_(jobs), begin_(runtime::RealClock::read_mono()) {}

  /// nullopt: no seed is left.
  std::optional<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    if (next_ == end_) return std::nullopt;
    return next_++;
  }

  void put(std::uint64_t seed, const sim::Report& report, double took_s) {
    const std::lock_guard lock(mutex_);
    ++done_;
    writes_ += report.writes;
    messages_ += report.messages;
    if (!report.violations.empty()) {
      failed_.push_back(seed);
      std::ranges::sort(failed_);
    }
    if (count_ <= kLinesMax || !report.violations.empty()) print(seed, report, took_s);
    const double elapsed = since(begin_);
    if (count_ <= kLinesMax || elapsed < progress_at_) return;
    progress_at_ = elapsed + kProgressEvery;
    fmt::print("{} of {} seeds, {} failed, {:.0f} s, {:.1f} seeds/s\n", done_, count_, failed_.size(), elapsed,
               static_cast<double>(done_) / elapsed);
    std::fflush(stdout);
  }

  int finish() const {
    const double elapsed = since(begin_);
    fmt::print("{} seeds: {} passed, {} failed; {} writes, {} messages; {:.1f} s with {} at a time\n", count_,
               count_ - failed_.size(), failed_.size(), writes_, messages_, elapsed, jobs_);
    for (std::size_t i = 0; i < std::min(failed_.size(), kFailuresShown); ++i) {
      fmt::print("replay: spillway swarm --seed {}\n", failed_[i]);
    }
    if (failed_.empty()) fmt::print("replay one of them: spillway swarm --seed {}\n", end_ - 1);
    return failed_.empty() ? cli::kExitOk : cli::kExitFailure;
  }

 private:
  static void print(std::uint64_t seed, const sim::Report& report, double took_s) {
    fmt::print("{} seed {:>6} trace {} {:>6} writes {:>7} messages {:>5.1f} s  {}\n",
               report.violations.empty() ? "pass" : "FAIL", seed, report.trace_hash, report.writes, report.messages,
               took_s, report.summary);
    for (const std::string& violation : report.violations) fmt::print("  violated: {}\n", violation);
    std::fflush(stdout);
  }

  std::mutex mutex_;
  std::uint64_t next_;
  std::uint64_t end_;
  std::uint64_t count_;
  int jobs_;
  Instant begin_;
  double progress_at_ = kProgressEvery;
  std::uint64_t done_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t messages_ = 0;
  std::vector<std::uint64_t> failed_;
};

}  // namespace

int run_swarm(const cli::SwarmCommand& command) {
  const std::uint64_t first = command.only.value_or(command.first_seed);
  const std::uint64_t count = command.only ? 1 : command.seeds;
  const int wanted = command.jobs > 0 ? command.jobs : static_cast<int>(std::thread::hardware_concurrency());
  const int jobs =
      static_cast<int>(std::clamp<std::uint64_t>(count, 1, static_cast<std::uint64_t>(std::max(wanted, 1))));
  Tally tally(first, count, jobs);
  const auto work = [&tally, &command] {
    while (const auto seed = tally.take()) {
      const Instant begin = runtime::RealClock::read_mono();
      const sim::Report report = sim::run_swarm_seed(*seed, command.only ? print_line : telemetry::Log::Sink());
      tally.put(*seed, report, since(begin));
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < jobs; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return tally.finish();
}

}  // namespace spillway::apps
