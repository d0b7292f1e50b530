#include "sim/scenario/summary.h"

#include "api/text/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

using Kind = HappeningKind;

constexpr std::array<std::pair<Kind, std::string_view>, 6> kWords{{{Kind::kEvicted, "pods evicted by their nodes"},
                                                                   {Kind::kOomKill, "kernel OOM kills"},
                                                                   {Kind::kDeleted, "pods deleted"},
                                                                   {Kind::kFlip, "times a node left Ready"},
                                                                   {Kind::kTaint, "NoExecute taints set"},
                                                                   {Kind::kUnplaced, "pods that found no node"}}};

constexpr std::size_t kNamedMax = 3;  // objects that a sentence names

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// "a, b, c and 4 more".
std::string named(std::span<const std::string> names) {
  std::string text = fmt::format("{}", fmt::join(names.first(std::min(names.size(), kNamedMax)), ", "));
  if (names.size() > kNamedMax) text += fmt::format(" and {} more", names.size() - kNamedMax);
  return text;
}

std::string verdict_of(const RunOutcome& outcome) {
  if (!outcome.violations.empty()) {
    return fmt::format("a bug of Spillway: {} violated; report it with the file and the seed",
                       counted(outcome.violations.size(), "property was", "properties were"));
  }
  const std::size_t all = outcome.expectations.size();
  const auto failed =
      static_cast<std::size_t>(std::ranges::count(outcome.expectations, false, &ExpectationResult::held));
  if (failed > 0) {
    return fmt::format("failed: {} of {} does not hold", failed, counted(all, "expectation", "expectations"));
  }
  if (all == 1) return "passed: its expectation holds";
  if (all > 1) return fmt::format("passed: all {} expectations hold", all);
  return outcome.recovered_at ? "recovered; the scenario expects nothing in particular"
                              : "not recovered; the scenario expects nothing in particular";
}

std::string recovery_of(const RunOutcome& outcome) {
  if (outcome.recovered_at && *outcome.recovered_at == Duration::zero()) {
    return "All was well from beginning to end: every node was ready, and every pod ran.";
  }
  if (outcome.recovered_at) {
    return fmt::format("All was well again at {}, {} after the last event: every node is ready, and every pod runs.",
                       virtual_time_text(outcome.recovered_at), virtual_time_text(outcome.time_to_recovery));
  }
  if (outcome.unrecovered.empty()) return "All was not well again before the end.";
  const auto first = std::span(outcome.unrecovered).first(std::min(outcome.unrecovered.size(), kNamedMax));
  return fmt::format("Not well at the end: {}{}.", fmt::join(first, ", "),
                     outcome.unrecovered.size() > kNamedMax ? " and others" : "");
}

/// "of ReplicaSet/default/web 20, in zone-0 25": the owner and the zone that lost most.
std::string most_of(const RunOutcome& outcome, Kind kind) {
  std::map<std::string, std::uint64_t> owners;
  std::map<std::string, std::uint64_t> zones;
  for (const Happening& each : outcome.happenings) {
    if (each.kind != kind) continue;
    ++owners[each.owner.empty() ? "no owner" : each.owner];
    if (!each.zone.empty()) ++zones[each.zone];
  }
  const auto by_count = [](const auto& each) { return each.second; };
  const auto owner = std::ranges::max_element(owners, {}, by_count);
  std::string text = fmt::format("{} of {}", owner->second, owner->first);
  if (const auto zone = std::ranges::max_element(zones, {}, by_count); zone != zones.end() && zones.size() > 1) {
    text += fmt::format(", {} in zone {}", zone->second, zone->first);
  }
  return text;
}

void say_losses(const RunOutcome& outcome, std::vector<std::string>& sentences) {
  const std::uint64_t evicted = outcome.count(Kind::kEvicted);
  if (evicted > 0) {
    sentences.push_back(fmt::format("Nodes evicted {} to keep a threshold ({}).", counted(evicted, "pod", "pods"),
                                    most_of(outcome, Kind::kEvicted)));
  }
  const std::uint64_t killed = outcome.count(Kind::kOomKill);
  if (killed > 0) {
    sentences.push_back(fmt::format("The kernel killed containers {}: no eviction had freed memory in time ({}).",
                                    counted(killed, "time", "times"), most_of(outcome, Kind::kOomKill)));
  }
  const std::uint64_t deleted = outcome.count(Kind::kDeleted);
  if (deleted > 0) {
    sentences.push_back(fmt::format("{} deleted through the API server ({}).", counted(deleted, "pod was", "pods were"),
                                    most_of(outcome, Kind::kDeleted)));
  }
  if (!outcome.unplaced.empty()) {
    sentences.push_back(fmt::format("At the end {} no node: {}.",
                                    counted(outcome.unplaced.size(), "pod has", "pods have"), named(outcome.unplaced)));
  }
}

void say_nodes(const RunOutcome& outcome, std::vector<std::string>& sentences) {
  if (outcome.count(Kind::kFlip) > 0) {
    sentences.push_back(fmt::format(
        "Of {}, at most {} tainted NoExecute at the same time: pods that do not tolerate the taint leave such a node.",
        counted(outcome.nodes, "node", "nodes"), counted(outcome.tainted_nodes_max, "was", "were")));
  }
  if (!outcome.held_by.empty()) {
    sentences.push_back(fmt::format("Brakes held actions back: {}.", fmt::join(outcome.held_by, ", ")));
  }
}

}  // namespace

std::string_view figure_words(HappeningKind kind) {
  return std::ranges::find(kWords, kind, [](const auto& each) { return each.first; })->second;
}

std::string virtual_time_text(std::optional<Duration> time) {
  if (!time) return "never";
  if (*time < seconds(10)) return api::format_duration(std::chrono::floor<std::chrono::milliseconds>(*time));
  return api::format_duration(std::chrono::floor<std::chrono::seconds>(*time));
}

RunSummary summary_of(const RunOutcome& outcome) {
  RunSummary summary{.verdict = verdict_of(outcome),
                     .is_good = outcome.violations.empty() && outcome.all_expectations_held(),
                     .sentences = {recovery_of(outcome)},
                     .expectations = {},
                     .figures = {}};
  if (outcome.expectations.empty() && !outcome.recovered_at) summary.is_good = false;
  say_losses(outcome, summary.sentences);
  say_nodes(outcome, summary.sentences);
  for (const ExpectationResult& each : outcome.expectations) {
    summary.expectations.push_back({each.held, each.text, each.seen});
  }
  for (const auto& [kind, words] : kWords) {
    const std::uint64_t count = outcome.count(kind);
    summary.figures.push_back(
        {fmt::format("{}", count), std::string(words), std::string(counter_name(kind)), count > 0});
  }
  summary.figures.push_back({fmt::format("{}", outcome.tainted_nodes_max),
                             "nodes tainted at the same time, at most",
                             {},
                             outcome.tainted_nodes_max > 0});
  summary.figures.push_back(
      {virtual_time_text(outcome.recovered_at), "until all was well again", {}, !outcome.recovered_at});
  return summary;
}

}  // namespace spillway::sim
