#include "sim/scenario/advice.h"

#include "agent/node/allocatable.h"
#include "api/text/quantity.h"
#include "policy/eviction/threshold_parse.h"
#include "sim/cluster.h"
#include "sim/scenario/config_parser.h"
#include "sim/scenario/parser.h"
#include "yaml/yaml_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace spillway::sim {
namespace {

using api::Json;

constexpr std::string_view kMemory = "memory";
constexpr std::string_view kMemoryAvailable = "memory.available";

agent::AgentOptions agents_of(const Scenario& scenario) {
  return scenario.config.agents.value_or(plain_agents());
}

template <typename T>
std::vector<std::optional<T>> or_as_it_is(const std::vector<T>& values) {
  if (values.empty()) return {std::nullopt};
  return {values.begin(), values.end()};
}

Outcome check_values(const ChoiceLists& lists) {
  for (const std::string& value : lists.memory_available) {
    const auto parsed = eviction::parse_thresholds({.hard = {{std::string(kMemoryAvailable), value}}});
    if (!parsed) return invalid("--memory-available", "expected quantities or percentages: {}", parsed.error().text());
  }
  for (const std::string& value : lists.system_reserved) {
    const auto parsed = api::parse_quantity(value);
    if (!parsed || *parsed < api::Quantity())
      return invalid("--system-reserved", "expected quantities such as 512Mi, got \"{}\"", value);
  }
  for (const ConfigChoice& each : lists.configs)
    SPILLWAY_TRY_VOID(parse_scenario_config(each.file, each.text, each.read));
  return {};
}

/// The counts in the order of the table; for each, less is better.
std::array<std::uint64_t, 9> counts_of(const Cost& cost) {
  return {cost.oom_kills,           cost.evicted,    cost.deleted,         cost.tainted, cost.flips, cost.unplaced,
          cost.failed_expectations, cost.violations, cost.without_evidence};
}

bool is_worse(const Advice& a, const Advice& b) {
  const auto more = counts_of(a.cost);
  const auto less = counts_of(b.cost);
  if (a.cost.kept_free < b.cost.kept_free) return false;
  for (std::size_t i = 0; i < more.size(); ++i)
    if (more[i] < less[i]) return false;
  return more != less || a.cost.kept_free > b.cost.kept_free;
}

bool knows_oom_kills(const Cost& cost) {
  return cost.recordings < cost.runs;
}

bool knows_memory(const Cost& cost) {
  return cost.controllers < cost.runs;
}

std::string brakes_text(std::optional<bool> brakes) {
  if (!brakes) return "-";
  return *brakes ? "on" : "off";
}

std::string remark_of(const Advice& advice) {
  if (advice.impossible) return "cannot be: " + advice.impossible->text();
  std::string remark;
  const auto say = [&remark](const std::string& text) { remark += (remark.empty() ? "" : ", ") + text; };
  if (advice.choice.is_as_it_is()) say("as it is");
  if (advice.worse_than) say(fmt::format("no better than {}", *advice.worse_than));
  if (advice.cost.without_evidence > 0) say(fmt::format("{} without evidence", advice.cost.without_evidence));
  return remark;
}

}  // namespace

Result<std::vector<Choice>> choices_of(const ChoiceLists& lists) {
  SPILLWAY_TRY_VOID(check_values(lists));
  std::vector<Choice> choices{Choice()};
  for (const auto& memory : or_as_it_is(lists.memory_available))
    for (const auto& reserved : or_as_it_is(lists.system_reserved))
      for (const auto& brakes : or_as_it_is(lists.brakes))
        for (const auto& config : or_as_it_is(lists.configs))
          if (const Choice choice{memory, reserved, brakes, config}; !choice.is_as_it_is()) choices.push_back(choice);
  if (choices.size() > kChoicesMax)
    return invalid("advise", "{} combinations are too many; expected at most {}", choices.size(), kChoicesMax);
  return choices;
}

Result<std::optional<agent::AgentOptions>> agents_under(const ConfigChoice& config, Bytes node_memory) {
  SPILLWAY_TRY_VOID(parse_scenario_config(config.file, config.text, config.read));
  SPILLWAY_TRY(document, yaml::parse(config.file, config.text));
  const yaml::Place place(config.file, document, yaml::Place::Precision::kColumn);
  return parse_agents_of(place, {config.file, document, ""}, config.read, node_memory);
}

Result<Scenario> with_choice(Scenario scenario, const Choice& choice) {
  if (const auto& config = choice.config) {
    SPILLWAY_TRY(changed, parse_scenario_config(config->file, config->text, config->read, std::move(scenario.config)));
    scenario.config = std::move(changed);
    SPILLWAY_TRY_VOID(check_agents(scenario));
  }
  if (choice.brakes) set_brakes(scenario.config.controllers, *choice.brakes);
  if (choice.memory_available || choice.system_reserved) {
    agent::AgentOptions options = agents_of(scenario);
    if (choice.memory_available)
      options.eviction.thresholds.hard.insert_or_assign(std::string(kMemoryAvailable), *choice.memory_available);
    if (choice.system_reserved) {
      SPILLWAY_TRY(amount, api::parse_quantity(*choice.system_reserved));
      options.system_reserved.insert_or_assign(std::string(kMemory), amount);
    }
    scenario.config.agents = std::move(options);
  }
  for (const MachineSpec& machine : machines_of(scenario)) {
    const auto kept = kept_free(agents_of(scenario), machine.memory);
    if (!kept) return invalid("node " + machine.name, "{}", kept.error().text());
  }
  return scenario;
}

Result<Bytes> kept_free(const agent::AgentOptions& options, Bytes memory) {
  SPILLWAY_TRY(thresholds, eviction::parse_thresholds(options.eviction.thresholds));
  const api::ResourceList capacity{{std::string(kMemory), api::Quantity::of_units(memory.count())}};
  SPILLWAY_TRY(reserved, agent::node_reservation(capacity, options, thresholds));
  const auto found = reserved.find(kMemory);
  return Bytes{found == reserved.end() ? 0 : found->second.value()};
}

Cost cost_of(const Scenario& scenario, const RunOutcome& outcome) {
  Cost cost{.oom_kills = outcome.count(HappeningKind::kOomKill),
            .evicted = outcome.count(HappeningKind::kEvicted),
            .deleted = outcome.count(HappeningKind::kDeleted),
            .tainted = outcome.count(HappeningKind::kTaint),
            .flips = outcome.count(HappeningKind::kFlip),
            .unplaced = outcome.count(HappeningKind::kUnplaced),
            .violations = outcome.violations.size(),
            .kept_free = {},
            .runs = 1};
  cost.failed_expectations = static_cast<std::uint64_t>(
      std::ranges::count_if(outcome.expectations, [](const ExpectationResult& each) { return !each.held; }));
  const agent::AgentOptions options = agents_of(scenario);
  const std::vector<MachineSpec> machines = machines_of(scenario);
  Bytes sum;
  for (const MachineSpec& machine : machines) sum += kept_free(options, machine.memory).value_or(Bytes{});
  if (!machines.empty()) cost.kept_free = Bytes{sum.count() / static_cast<std::int64_t>(machines.size())};
  return cost;
}

void add(Cost& sum, const Cost& more) {
  sum.oom_kills += more.oom_kills;
  sum.evicted += more.evicted;
  sum.deleted += more.deleted;
  sum.tainted += more.tainted;
  sum.flips += more.flips;
  sum.unplaced += more.unplaced;
  sum.failed_expectations += more.failed_expectations;
  sum.violations += more.violations;
  const auto nodes_of = [](const Cost& each) { return static_cast<std::int64_t>(each.runs - each.controllers); };
  const std::int64_t nodes = nodes_of(sum) + nodes_of(more);
  const std::int64_t bytes = sum.kept_free.count() * nodes_of(sum) + more.kept_free.count() * nodes_of(more);
  if (nodes > 0) sum.kept_free = Bytes{bytes / nodes};
  sum.runs += more.runs;
  sum.recordings += more.recordings;
  sum.controllers += more.controllers;
  sum.without_evidence += more.without_evidence;
}

void compare(std::vector<Advice>& all) {
  for (Advice& each : all) {
    each.worse_than.reset();
    if (each.impossible) continue;
    const auto better =
        std::ranges::find_if(all, [&](const Advice& other) { return !other.impossible && is_worse(each, other); });
    if (better != all.end()) each.worse_than = static_cast<std::size_t>(better - all.begin());
  }
}

namespace {

Json cost_json(const Cost& cost) {
  const auto number = [](std::uint64_t count) { return static_cast<std::int64_t>(count); };
  return Json::object({{"oomKills", knows_oom_kills(cost) ? Json(number(cost.oom_kills)) : Json()},
                       {"evicted", number(cost.evicted)},
                       {"withoutEvidence", number(cost.without_evidence)},
                       {"deleted", number(cost.deleted)},
                       {"tainted", number(cost.tainted)},
                       {"flips", number(cost.flips)},
                       {"unplaced", number(cost.unplaced)},
                       {"failedExpectations", number(cost.failed_expectations)},
                       {"violations", number(cost.violations)},
                       {"keptFreeBytesPerNode", knows_memory(cost) ? Json(cost.kept_free.count()) : Json()},
                       {"runs", number(cost.runs)},
                       {"recordings", number(cost.recordings)}});
}

}  // namespace

Json advice_json(const std::vector<Advice>& all) {
  Json choices = Json::array();
  for (const Advice& each : all) {
    Json one = Json::object();
    if (each.choice.memory_available) one["memoryAvailable"] = *each.choice.memory_available;
    if (each.choice.system_reserved) one["systemReserved"] = *each.choice.system_reserved;
    if (each.choice.brakes) one["brakes"] = *each.choice.brakes;
    if (each.choice.config) one["config"] = each.choice.config->file;
    if (each.impossible) {
      one["impossible"] = each.impossible->text();
    } else {
      one["cost"] = cost_json(each.cost);
    }
    if (each.worse_than) one["noBetterThan"] = static_cast<std::int64_t>(*each.worse_than);
    choices.if_array()->push_back(std::move(one));
  }
  return Json::object({{"choices", std::move(choices)}});
}

std::string advice_text(const std::vector<Advice>& all) {
  constexpr std::string_view kRow =
      "{:>3}  {:<16}  {:<15}  {:<6}{}  {:>9}  {:>7}  {:>7}  {:>7}  {:>5}  {:>8}  {:>6}  {:>9}  {}\n";
  std::size_t config_width = 0;  // 0: the table has no such column
  for (const Advice& each : all) {
    if (each.choice.config) config_width = std::max({config_width, each.choice.config->file.size(), std::size_t{6}});
  }
  const auto config_cell = [config_width](const std::string& text) {
    return config_width == 0 ? std::string() : fmt::format("  {:<{}}", text, config_width);
  };
  std::string out;
  const auto put = [&out](std::string row) {
    row.erase(row.find_last_not_of(" \n") + 1);
    out += row + "\n";
  };
  put(fmt::format(kRow, "#", "MEMORY.AVAILABLE", "SYSTEM-RESERVED", "BRAKES", config_cell("CONFIG"), "OOM-KILLS",
                  "EVICTED", "DELETED", "TAINTED", "FLIPS", "UNPLACED", "FAILED", "KEPT FREE", ""));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Choice& choice = all[i].choice;
    const Cost& cost = all[i].cost;
    const auto figure = [&](std::uint64_t count) { return all[i].impossible ? "-" : std::to_string(count); };
    const bool has_memory = !all[i].impossible && knows_memory(cost);
    put(fmt::format(kRow, i, choice.memory_available.value_or("-"), choice.system_reserved.value_or("-"),
                    brakes_text(choice.brakes), config_cell(choice.config ? choice.config->file : "-"),
                    knows_oom_kills(cost) ? figure(cost.oom_kills) : "-", figure(cost.evicted), figure(cost.deleted),
                    figure(cost.tainted), figure(cost.flips), figure(cost.unplaced), figure(cost.failed_expectations),
                    has_memory ? fmt::format("{}Mi", cost.kept_free.count() >> 20) : "-", remark_of(all[i])));
    if (cost.violations > 0)
      out += fmt::format("     {} invariants of the product were violated: a bug, please report it\n", cost.violations);
  }
  return out;
}

}  // namespace spillway::sim
