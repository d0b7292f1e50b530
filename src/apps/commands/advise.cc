// `spillway advise`: the same scenarios under several settings, and what each of these costs.
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/commands/live_inventory.h"
#include "apps/commands/scenario_sources.h"
#include "apps/process/interruption.h"
#include "apps/process/process.h"
#include "apps/process/progress_line.h"
#include "runtime/fast_heap.h"
#include "sim/scenario/advice.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

constexpr int kExitInvariant = 4;
constexpr int kExitSignal = 128;

struct Question {
  std::vector<sim::Scenario> scenarios;
  std::vector<sim::Choice> choices;
};

Result<Question> read_question(const cli::AdviseCommand& command) {
  sim::ChoiceLists lists{command.memory_available, command.system_reserved, {}};
  for (const std::string& each : command.brakes) lists.brakes.push_back(each == "on");
  Question question;
  SPILLWAY_TRY(choices, sim::choices_of(lists));
  question.choices = std::move(choices);
  sim::ClusterOverride instead{};
  if (command.from_cluster) {
    SPILLWAY_TRY(inventory, read_live_inventory(command.api));
    instead.inventory = std::move(inventory);
  }
  SPILLWAY_TRY(scenarios, read_scenarios(command.scenarios, instead));
  question.scenarios = std::move(scenarios);
  return question;
}

/// Plays everything, and tells how far that is.
class Trial {
 public:
  Trial(const Question& question, std::uint64_t seeds)
      : question_(question),
        seeds_(seeds),
        runs_(static_cast<double>(question.choices.size() * question.scenarios.size() * seeds)),
        line_("advise", ProgressLine::Shown::kOnTerminal) {}

  /// nullopt: interrupted.
  std::optional<sim::Advice> judge(const sim::Choice& choice) {
    sim::Advice advice{.choice = choice, .cost = {}, .impossible = {}, .worse_than = {}};
    for (const sim::Scenario& each : question_.scenarios) {
      const auto scenario = sim::with_choice(each, choice);
      if (!scenario) {
        advice.impossible = Error{scenario.error().code, scenario.error().text(), each.name};
        return advice;
      }
      for (std::uint64_t n = 0; n < seeds_; ++n) {
        const sim::RunOutcome outcome = play(*scenario, scenario->seed.value_or(1) + n);
        if (outcome.interrupted) return std::nullopt;
        sim::add(advice.cost, sim::cost_of(*scenario, outcome));
      }
    }
    return advice;
  }

 private:
  sim::RunOutcome play(const sim::Scenario& scenario, std::uint64_t seed) {
    const auto go_on = [this](double share) {
      line_.show((done_ + share) / runs_);
      return Interruption::signal() == 0;
    };
    sim::RunOutcome outcome = sim::play(scenario, {.seed = seed, .observer = nullptr, .go_on = go_on});
    ++done_;
    return outcome;
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
  {
    Trial trial(*question, command.seeds);
    for (const sim::Choice& choice : question->choices) {
      auto advice = trial.judge(choice);
      if (!advice) break;
      all.push_back(*std::move(advice));
    }
  }
  if (all.size() < question->choices.size()) {
    fmt::print(stderr, "spillway: interrupted after {} of {} settings; nothing is reported\n", all.size(),
               question->choices.size());
    return kExitSignal + Interruption::signal();
  }
  sim::compare(all);
  if (!cli::is_document(command.output)) {
    fmt::print("{}", sim::advice_text(all));
  } else {
    print_answer(sim::advice_json(all), command.output);
  }
  const bool broken = std::ranges::any_of(all, [](const sim::Advice& each) { return each.cost.violations > 0; });
  return broken ? kExitInvariant : cli::kExitOk;
}

}  // namespace spillway::apps
