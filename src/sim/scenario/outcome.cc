#include "sim/scenario/outcome.h"

#include "sim/scenario/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

using api::Json;
using Kind = HappeningKind;

constexpr std::array<Kind, 6> kHappeningKinds = {Kind::kEvicted, Kind::kOomKill, Kind::kDeleted,
                                                 Kind::kFlip,    Kind::kTaint,   Kind::kUnplaced};

Json seconds_or_null(std::optional<Duration> duration) {
  return duration ? Json(in_seconds(*duration)) : Json();
}

bool disrupts(const Happening& happening) {
  return happening.kind == Kind::kEvicted || happening.kind == Kind::kDeleted || happening.kind == Kind::kOomKill;
}

Json texts(const auto& lines) {
  Json out = Json::array();
  for (const std::string& line : lines) out.if_array()->emplace_back(line);
  return out;
}

Json counts_json(const RunOutcome& outcome) {
  Json out = Json::object();
  for (const Kind kind : kHappeningKinds) out[counter_name(kind)] = outcome.count(kind);
  return out;
}

Json by_name(const std::map<std::string, std::uint64_t>& counts) {
  Json out = Json::object();
  for (const auto& [name, count] : counts) out[name] = count;
  return out;
}

Json happenings_json(const RunOutcome& outcome) {
  Json out = Json::array();
  for (const Happening& each : outcome.happenings) {
    out.if_array()->push_back(Json::object({{"atSeconds", in_seconds(each.at)},
                                            {"what", counter_name(each.kind)},
                                            {"object", each.object},
                                            {"node", each.node},
                                            {"zone", each.zone},
                                            {"owner", each.owner},
                                            {"reason", each.reason}}));
  }
  return out;
}

constexpr std::size_t kListRowsMax = 5;  // rows of a list on a terminal; the JSON has all of them

void add_counts(std::string& out, std::string_view title, const std::map<std::string, std::uint64_t>& counts) {
  if (counts.empty()) return;
  std::vector<std::pair<std::string, std::uint64_t>> rows(counts.begin(), counts.end());
  std::ranges::stable_sort(rows, std::ranges::greater(), [](const auto& each) { return each.second; });
  out += fmt::format("\n{}\n", title);
  for (const auto& [name, count] : std::span(rows).first(std::min(rows.size(), kListRowsMax)))
    out += fmt::format("{:>10}  {}\n", count, name);
  if (rows.size() > kListRowsMax) out += fmt::format("{:>10}  and {} more (-o json)\n", "", rows.size() - kListRowsMax);
}

void add_lines(std::string& out, std::string_view title, const std::vector<std::string>& lines) {
  for (const std::string& each : std::span(lines).first(std::min(lines.size(), kListRowsMax)))
    out += fmt::format("{}: {}\n", title, each);
  if (lines.size() > kListRowsMax) out += fmt::format("{}: {} more (-o json)\n", title, lines.size() - kListRowsMax);
}

}  // namespace

std::uint64_t RunOutcome::count(HappeningKind kind) const {
  return static_cast<std::uint64_t>(std::ranges::count(happenings, kind, &Happening::kind));
}

bool RunOutcome::all_expectations_held() const {
  return std::ranges::all_of(expectations, &ExpectationResult::held);
}

std::map<std::string, std::uint64_t> disruption_by_owner(const RunOutcome& outcome) {
  std::map<std::string, std::uint64_t> out;
  for (const Happening& each : outcome.happenings) {
    if (disrupts(each)) ++out[each.owner.empty() ? "(no owner)" : each.owner];
  }
  return out;
}

std::map<std::string, std::uint64_t> disruption_by_zone(const RunOutcome& outcome) {
  std::map<std::string, std::uint64_t> out;
  for (const Happening& each : outcome.happenings) {
    if (disrupts(each)) ++out[each.zone.empty() ? "(no zone)" : each.zone];
  }
  return out;
}

Json outcome_json(const RunOutcome& outcome) {
  Json expectations = Json::array();
  for (const ExpectationResult& each : outcome.expectations) {
    expectations.if_array()->push_back(Json::object({{"text", each.text}, {"held", each.held}, {"seen", each.seen}}));
  }
  Json left_out = Json::array();
  for (const LeftOut& each : outcome.left_out) {
    left_out.if_array()->push_back(Json::object({{"what", each.what}, {"why", each.why}}));
  }
  return Json::object({{"scenario", outcome.scenario},
                       {"seed", outcome.seed},
                       {"interrupted", outcome.interrupted},
                       {"nodes", outcome.nodes},
                       {"pods", outcome.pods},
                       {"lastedSeconds", in_seconds(outcome.lasted)},
                       {"counts", counts_json(outcome)},
                       {"taintedNodesMax", outcome.tainted_nodes_max},
                       {"recoveredAtSeconds", seconds_or_null(outcome.recovered_at)},
                       {"timeToRecoverySeconds", seconds_or_null(outcome.time_to_recovery)},
                       {"heldBy", texts(outcome.held_by)},
                       {"unplaced", texts(outcome.unplaced)},
                       {"unrecovered", texts(outcome.unrecovered)},
                       {"disruptionByOwner", by_name(disruption_by_owner(outcome))},
                       {"disruptionByZone", by_name(disruption_by_zone(outcome))},
                       {"leftOut", std::move(left_out)},
                       {"expectations", std::move(expectations)},
                       {"violations", texts(outcome.violations)},
                       {"violated", texts(outcome.violated)},
                       {"events", happenings_json(outcome)},
                       {"writes", outcome.writes},
                       {"messages", outcome.messages},
                       {"traceHash", outcome.trace_hash}});
}

std::string outcome_text(const RunOutcome& outcome) {
  const RunSummary summary = summary_of(outcome);
  std::string out = fmt::format("{}: {}\n", outcome.scenario, summary.verdict);
  if (!outcome.story.empty()) out += outcome.story + "\n";
  for (const RunSummary::Expectation& each : summary.expectations)
    out += fmt::format("{} {} ({})\n", each.held ? "pass" : "FAIL", each.text, each.seen);
  out += "\n";
  for (const std::string& each : summary.sentences) out += each + "\n";
  out += fmt::format("\n{} nodes, {} pods, {} of virtual time, seed {}\n", outcome.nodes, outcome.pods,
                     virtual_time_text(outcome.lasted), outcome.seed);
  for (const RunSummary::Figure& each : summary.figures) {
    out += fmt::format("{:>10}  {}{}\n", each.value, each.words,
                       each.counter.empty() ? std::string() : fmt::format(" ({})", each.counter));
  }
  std::map<std::string, std::uint64_t> reasons;
  for (const Happening& each : outcome.happenings) {
    if (each.kind == Kind::kEvicted) ++reasons[each.reason.substr(0, each.reason.find(". "))];
  }
  add_counts(out, "Pods were evicted because", reasons);
  add_counts(out, "Owners that lost pods", disruption_by_owner(outcome));
  add_counts(out, "Zones that lost pods", disruption_by_zone(outcome));
  if (!outcome.left_out.empty() || !outcome.violations.empty()) out += "\n";
  std::vector<std::string> left_out;
  for (const LeftOut& each : outcome.left_out) left_out.push_back(fmt::format("{}: {}", each.what, each.why));
  add_lines(out, "left out", left_out);
  for (const std::string& each : outcome.violations) out += fmt::format("violated: {}\n", each);
  return out;
}

}  // namespace spillway::sim
