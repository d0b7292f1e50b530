#include "sim/scenario/outcome.h"

#include "api/text/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

std::string when(std::optional<Duration> time) {
  return time ? api::format_duration(*time) : "never";
}

std::string joined(const std::set<std::string>& words) {
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ", "));
}

void add_counts(std::string& out, std::string_view title, const std::map<std::string, std::uint64_t>& counts) {
  if (counts.empty()) return;
  out += fmt::format("{}\n", title);
  for (const auto& [name, count] : counts) out += fmt::format("  {:<40} {:>6}\n", name, count);
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
  std::string out = fmt::format("{}: {} nodes, {} pods, {} of virtual time, seed {}\n", outcome.scenario, outcome.nodes,
                                outcome.pods, api::format_duration(outcome.lasted), outcome.seed);
  for (const Kind kind : kHappeningKinds)
    out += fmt::format("  {:<18} {:>8}\n", counter_name(kind), outcome.count(kind));
  out += fmt::format("  {:<18} {:>8}\n", "tainted at once", outcome.tainted_nodes_max);
  out += fmt::format("  {:<18} {:>8}\n", "recovered at", when(outcome.recovered_at));
  out += fmt::format("  {:<18} {:>8}\n", "time to recovery", when(outcome.time_to_recovery));
  out += fmt::format("  {:<18} {:>8}\n", "brakes that held", joined(outcome.held_by));
  std::map<std::string, std::uint64_t> reasons;
  for (const Happening& each : outcome.happenings) {
    if (each.kind == Kind::kEvicted) ++reasons[each.reason.substr(0, each.reason.find(". "))];
  }
  add_counts(out, "evicted because", reasons);
  add_counts(out, "disruption by owner", disruption_by_owner(outcome));
  add_counts(out, "disruption by zone", disruption_by_zone(outcome));
  for (const std::string& each : outcome.unplaced) out += fmt::format("no place for {}\n", each);
  for (const std::string& each : outcome.unrecovered) out += fmt::format("not well at the end: {}\n", each);
  for (const LeftOut& each : outcome.left_out) out += fmt::format("left out: {}: {}\n", each.what, each.why);
  for (const ExpectationResult& each : outcome.expectations) {
    out += fmt::format("{} {} ({})\n", each.held ? "pass" : "FAIL", each.text, each.seen);
  }
  for (const std::string& each : outcome.violations) out += fmt::format("violated: {}\n", each);
  return out + fmt::format("trace hash {}\n", outcome.trace_hash);
}

}  // namespace spillway::sim
