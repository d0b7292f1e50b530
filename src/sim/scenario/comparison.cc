#include "api/text/duration.h"
#include "sim/scenario/outcome.h"

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
  std::string name;
  std::string a;
  std::string b;
};

std::string time_text(std::optional<Duration> time) {
  return time ? api::format_duration(*time) : "never";
}

/// Every figure of both.
std::vector<Row> rows_of(const RunOutcome& a, const RunOutcome& b) {
  std::vector<Row> rows;
  for (const Kind kind : {Kind::kEvicted, Kind::kOomKill, Kind::kDeleted, Kind::kFlip, Kind::kTaint, Kind::kUnplaced}) {
    rows.push_back(
        {std::string(counter_name(kind)), fmt::format("{}", a.count(kind)), fmt::format("{}", b.count(kind))});
  }
  rows.push_back({"taintedNodesMax", fmt::format("{}", a.tainted_nodes_max), fmt::format("{}", b.tainted_nodes_max)});
  rows.push_back({"recoveredAt", time_text(a.recovered_at), time_text(b.recovered_at)});
  rows.push_back({"timeToRecovery", time_text(a.time_to_recovery), time_text(b.time_to_recovery)});
  rows.push_back(
      {"heldBy", fmt::format("{}", fmt::join(a.held_by, ",")), fmt::format("{}", fmt::join(b.held_by, ","))});
  const auto before = disruption_by_owner(a);
  const auto after = disruption_by_owner(b);
  std::set<std::string> owners;
  for (const auto& [owner, count] : before) owners.insert(owner);
  for (const auto& [owner, count] : after) owners.insert(owner);
  for (const std::string& owner : owners) {
    const auto in_a = before.find(owner);
    const auto in_b = after.find(owner);
    rows.push_back({"disrupted " + owner, fmt::format("{}", in_a == before.end() ? 0 : in_a->second),
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
    part += fmt::format("  {:<36} {:>22} {:>22}\n", row.name, row.a.empty() ? "-" : row.a, row.b.empty() ? "-" : row.b);
  }
  std::string out = fmt::format("{:<38} {:>22} {:>22}\n", "", "A", "B");
  out += differ.empty() ? "nothing differs\n" : "differs\n" + differ;
  if (!same.empty()) out += "the same\n" + same;
  return out;
}

}  // namespace spillway::sim
