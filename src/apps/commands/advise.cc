// `spillway advise`: the same scenarios and recordings under several settings, and the cost of each.
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/commands/live_inventory.h"
#include "apps/commands/scenario_sources.h"
#include "apps/process/interruption.h"
#include "apps/process/process.h"
#include "apps/process/progress_line.h"
#include "apps/process/terminal.h"
#include "base/file.h"
#include "host/files/recording_ring.h"
#include "runtime/fast_heap.h"
#include "sim/replay/recorded_cost.h"
#include "sim/scenario/advice.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

/// recordings in memory at a time
constexpr std::int64_t kRecordingsBytesMax = std::int64_t{3} << 30U;

struct Recording {
  std::string file;
  std::string bytes;
};

struct Question {
  std::vector<sim::Scenario> scenarios;
  std::vector<Recording> recordings;
  std::vector<sim::Choice> choices;
};

/// True only for regular files.
bool begins_as_recording(const std::string& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return false;
  std::array<char, 64> head{};
  std::ifstream input(file, std::ios::binary);
  input.read(head.data(), head.size());
  return sim::is_recording({head.data(), static_cast<std::size_t>(input.gcount())});
}

/// Separates the recordings from the other arguments.
Result<std::vector<Recording>> take_recordings(std::vector<std::string>& wanted) {
  std::vector<Recording> found;
  std::int64_t left = kRecordingsBytesMax;
  const auto [begin, end] =
      std::ranges::stable_partition(wanted, [](const auto& each) { return !begins_as_recording(each); });
  for (const std::string& file : std::ranges::subrange(begin, end)) {
    SPILLWAY_TRY(bytes, host::read_recording_file(file, left));
    left -= static_cast<std::int64_t>(bytes.size());
    found.push_back({file, std::move(bytes)});
  }
  wanted.erase(begin, end);
  return found;
}

Result<Question> read_question(const cli::AdviseCommand& command) {
  sim::ChoiceLists lists{command.memory_available, command.system_reserved, {}, {}};
  for (const std::string& each : command.brakes) lists.brakes.push_back(each == "on");
  for (const std::string& each : command.configs) {
    SPILLWAY_TRY(text, read_file(each));
    lists.configs.push_back({each, std::move(text), reader_beside(each)});
  }
  Question question;
  SPILLWAY_TRY(choices, sim::choices_of(lists));
  question.choices = std::move(choices);
  std::vector<std::string> wanted = command.scenarios;
  SPILLWAY_TRY(recordings, take_recordings(wanted));
  question.recordings = std::move(recordings);
  sim::ClusterOverride instead{};
  if (command.from_cluster) {
    SPILLWAY_TRY(inventory, read_live_inventory(command.api));
    instead.inventory = std::move(inventory);
  }
  SPILLWAY_TRY(scenarios, read_scenarios(wanted, instead));
  question.scenarios = std::move(scenarios);
  return question;
}

/// Plays all runs, and reports the progress.
class Trial {
 public:
  Trial(const Question& question, std::uint64_t seeds)
      : question_(question),
        seeds_(seeds),
        runs_(static_cast<double>(question.choices.size() *
                                  (question.scenarios.size() * seeds + question.recordings.size()))),
        line_("advise", ProgressLine::Shown::kOnTerminal) {}

  /// nullopt: interrupted.
  std::optional<sim::Advice> evaluate(const sim::Choice& choice) {
    sim::Advice advice{.choice = choice, .cost = {}, .impossible = {}, .worse_than = {}};
    for (const sim::Scenario& each : question_.scenarios) {
      const auto scenario = sim::with_choice(each, choice);
      if (!scenario) {
        advice.impossible = Error{scenario.error().code, scenario.error().text(), each.name};
        return advice;
      }
      for (std::uint64_t n = 0; n < seeds_; ++n) {
        const sim::RunOutcome outcome = run_scenario(*scenario, scenario->seed.value_or(1) + n);
        if (outcome.interrupted) return std::nullopt;
        sim::add(advice.cost, sim::cost_of(*scenario, outcome));
      }
    }
    for (const Recording& each : question_.recordings) {
      if (Interruption::signal() != 0) return std::nullopt;
      const auto cost = replay(each, choice);
      if (Interruption::signal() != 0) return std::nullopt;
      if (!cost) {
        advice.impossible = Error{cost.error().code, cost.error().text(), each.file};
        return advice;
      }
      sim::add(advice.cost, *cost);
    }
    return advice;
  }

 private:
  sim::RunOutcome run_scenario(const sim::Scenario& scenario, std::uint64_t seed) {
    const auto should_continue = [this](double share) {
      line_.show((done_ + share) / runs_);
      return Interruption::signal() == 0;
    };
    sim::RunOutcome outcome =
        sim::run_scenario(scenario, {.seed = seed, .observer = nullptr, .should_continue = should_continue});
    ++done_;
    return outcome;
  }

  Result<sim::Cost> replay(const Recording& recording, const sim::Choice& choice) {
    auto cost = sim::cost_of_recording(recording.bytes, choice, [this](std::size_t done, std::size_t all) {
      line_.show((done_ + static_cast<double>(done) / static_cast<double>(all)) / runs_);
      return Interruption::signal() == 0;
    });
    ++done_;
    return cost;
  }

  const Question& question_;
  std::uint64_t seeds_;
  double runs_;
  double done_ = 0;
  ProgressLine line_;
};

}  // namespace

int run_advise(const cli::AdviseCommand& command) {
  runtime::use_fast_heap();
  const auto question = read_question(command);
  if (!question) {
    print_error(question.error());
    const ErrorCode code = question.error().code;
    return code == ErrorCode::kInvalid || code == ErrorCode::kNotFound ? cli::kExitUsage : cli::kExitFailure;
  }
  const Interruption interruption;
  std::vector<sim::Advice> all;
  std::optional<Error> broken_input;
  {
    Trial trial(*question, command.seeds);
    for (const sim::Choice& choice : question->choices) {
      auto advice = trial.evaluate(choice);
      if (!advice) break;
      if (advice->impossible && choice.is_as_it_is()) {  // the recording lacks the data for it
        broken_input = advice->impossible;
        break;
      }
      all.push_back(*std::move(advice));
    }
  }
  if (broken_input) {
    print_error(*broken_input);
    return cli::kExitUsage;
  }
  if (all.size() < question->choices.size()) {
    print_err("spillway: interrupted after {} of {} settings; nothing is reported\n", all.size(),
              question->choices.size());
    return cli::kExitSignalBase + Interruption::signal();
  }
  sim::compare(all);
  if (!cli::is_document(command.output)) {
    print_out("{}", sim::advice_text(all));
  } else {
    print_answer(sim::advice_json(all), command.output);
  }
  const bool broken = std::ranges::any_of(all, [](const sim::Advice& each) { return each.cost.violations > 0; });
  return broken ? cli::kExitInvariant : cli::kExitOk;
}

}  // namespace spillway::apps
