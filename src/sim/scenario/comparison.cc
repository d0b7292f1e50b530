#include "sim/scenario/outcome.h"
#include "sim/scenario/summary.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace spillway::sim {
namespace {

using api::Json;
using Kind = HappeningKind;

struct Row {
  std::string name;   // in JSON
  std::string words;  // on a terminal
  std::string a;
  std::string b;
};

/// Rows with the figures of both runs.
std::vector<Row> rows_of(const RunOutcome& a, const RunOutcome& b) {
  std::vector<Row> rows;
  for (const Kind kind : {Kind::kEvicted, Kind::kOomKill, Kind::kDeleted, Kind::kFlip, Kind::kTaint, Kind::kUnplaced}) {
    rows.push_back({std::string(counter_name(kind)), fmt::format("{} ({})", figure_words(kind), counter_name(kind)),
                    fmt::format("{}", a.count(kind)), fmt::format("{}", b.count(kind))});
  }
  rows.push_back({"taintedNodesMax", "nodes tainted at the same time, at most", fmt::format("{}", a.tainted_nodes_max),
                  fmt::format("{}", b.tainted_nodes_max)});
  rows.push_back({"recoveredAt", "until all was well again", virtual_time_text(a.recovered_at),
                  virtual_time_text(b.recovered_at)});
  rows.push_back({"timeToRecovery", "after the last event", virtual_time_text(a.time_to_recovery),
                  virtual_time_text(b.time_to_recovery)});
  rows.push_back({"heldBy", "brakes that held actions back", fmt::format("{}", fmt::join(a.held_by, ",")),
                  fmt::format("{}", fmt::join(b.held_by, ","))});
  const auto before = disruption_by_owner(a);
  const auto after = disruption_by_owner(b);
  std::set<std::string> owners;
  for (const auto& [owner, count] : before) owners.insert(owner);
  for (const auto& [owner, count] : after) owners.insert(owner);
  for (const std::string& owner : owners) {
    const auto in_a = before.find(owner);
    const auto in_b = after.find(owner);
    rows.push_back({"disrupted " + owner, "lost by " + owner,
                    fmt::format("{}", in_a == before.end() ? 0 : in_a->second),
                    fmt::format("{}", in_b == after.end() ? 0 : in_b->second)});
  }
  return rows;
}

}  // namespace

Json comparison_json(const RunOutcome& a, const RunOutcome& b) {
  Json differences = Json::array();
  for (const Row& row : rows_of(a, b)) {
    if (row.a == row.b) continue;
    differences.if_array()->push_back(Json::object({{"what", row.name}, {"a", row.a}, {"b", row.b}}));
  }
  return Json::object({{"differences", std::move(differences)}, {"a", outcome_json(a)}, {"b", outcome_json(b)}});
}

std::string comparison_text(const RunOutcome& a, const RunOutcome& b) {
  std::string differ;
  std::string same;
  for (const Row& row : rows_of(a, b)) {
    std::string& part = row.a == row.b ? same : differ;
    part +=
        fmt::format("  {:<40} {:>18} {:>18}\n", row.words, row.a.empty() ? "-" : row.a, row.b.empty() ? "-" : row.b);
  }
  std::string out =
      fmt::format("A  {}: {}\nB  {}: {}\n\n", a.scenario, summary_of(a).verdict, b.scenario, summary_of(b).verdict);
  out += fmt::format("{:<42} {:>18} {:>18}\n", differ.empty() ? "nothing differs" : "differs", "A", "B");
  out += differ;
  if (!same.empty()) out += "the same\n" + same;
  return out;
}

}  // namespace spillway::sim
