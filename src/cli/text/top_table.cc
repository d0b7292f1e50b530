#include "cli/text/top_table.h"

#include "base/utf8.h"
#include "cli/text/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

namespace spillway::cli {
namespace {

using policy::Fact;
using policy::Reason;
using policy::ReasonCode;

constexpr double kSoonSeconds = 60;
constexpr double kForeseenSeconds = 3600;  // beyond this time an extrapolation of the last seconds means nothing

double number_of(const Fact& fact) {
  if (const auto* whole = std::get_if<std::int64_t>(&fact.value)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&fact.value);
  return number == nullptr ? 0 : *number;
}

std::optional<double> measured(const Reason& reason, std::string_view what) {
  const Fact* fact = find_measured(reason.facts, what);
  return fact == nullptr ? std::nullopt : std::optional(number_of(*fact));
}

/// nullopt: it is not foreseen that the threshold will be met.
std::optional<double> forecast_of(const Reason& reason) {
  const Fact* fact = policy::find_fact(reason.facts, "forecast_seconds");
  if (fact == nullptr || number_of(*fact) > kForeseenSeconds) return std::nullopt;
  return number_of(*fact);
}

bool is_met(const Reason& reason) {
  return reason.code == ReasonCode::kThresholdMet || reason.code == ReasonCode::kGraceNotOver;
}

bool is_threshold(const Reason& reason) {
  return policy::text_fact(reason, "signal") && measured(reason, "available") && measured(reason, "threshold");
}

/// Smaller is nearer.
std::tuple<bool, double, double> nearness(const Reason& reason) {
  const double capacity = measured(reason, "capacity").value_or(0);
  const double left = measured(reason, "available").value_or(0) - measured(reason, "threshold").value_or(0);
  return {!is_met(reason), forecast_of(reason).value_or(std::numeric_limits<double>::infinity()),
          capacity > 0 ? left / capacity : 1};
}

/// The rest above the threshold, in its unit.
Fact left_of(const Reason& reason) {
  const Fact* available = find_measured(reason.facts, "available");
  const auto left =
      static_cast<std::int64_t>(measured(reason, "available").value_or(0) - measured(reason, "threshold").value_or(0));
  return {"left" + available->name.substr(std::string_view("available").size()), left};
}

std::string next_of(const policy::Decision& standing) {
  for (const policy::Candidate& each : standing.candidates) {
    if (each.reason.code == ReasonCode::kRankedFirst) return each.subject.ns + "/" + each.subject.name;
  }
  return {};
}

std::string_view colour_of(const Reason& nearest) {
  if (is_met(nearest)) return "\x1b[31m";
  return forecast_of(nearest).value_or(kSoonSeconds) < kSoonSeconds ? "\x1b[33m" : "";
}

/// The nearest first; of the usual table that one alone.
std::vector<const Reason*> thresholds_of(const policy::Decision& standing, Width width) {
  std::vector<const Reason*> found;
  for (const Reason& each : standing.reasons) {
    if (is_threshold(each)) found.push_back(&each);
  }
  std::ranges::stable_sort(found, {}, [](const Reason* each) { return nearness(*each); });
  if (width == Width::kUsual && found.size() > 1) found.resize(1);
  return found;
}

void add_threshold(Table& table, const NodeRow& row, const Reason& reason, bool is_first, Paint paint) {
  const auto forecast = forecast_of(reason);
  table.add({row.node, row.state, std::string(*policy::text_fact(reason, "signal")),
             value_text(*find_measured(reason.facts, "available")),
             value_text(*find_measured(reason.facts, "threshold")), value_text(left_of(reason)),
             is_met(reason) ? "now"
             : forecast     ? value_text({"forecast_seconds", *forecast})
                            : "",
             is_first ? next_of(*row.standing) : ""},
            paint == Paint::kTerminal ? colour_of(reason) : "");
}

}  // namespace

const Reason* nearest_threshold(const policy::Decision& standing) {
  const Reason* nearest = nullptr;
  for (const Reason& each : standing.reasons) {
    if (is_threshold(each) && (nearest == nullptr || nearness(each) < nearness(*nearest))) nearest = &each;
  }
  return nearest;
}

std::vector<NodeRow> nearest_first(std::vector<NodeRow> rows) {
  const auto key = [](const NodeRow& row) {
    const Reason* nearest = row.standing ? nearest_threshold(*row.standing) : nullptr;
    return nearest == nullptr ? std::tuple(2, std::tuple(true, 0.0, 0.0)) : std::tuple(1, nearness(*nearest));
  };
  std::ranges::sort(rows, [&key](const NodeRow& a, const NodeRow& b) {
    return std::tuple(key(a), std::string_view(a.node)) < std::tuple(key(b), std::string_view(b.node));
  });
  return rows;
}

std::string top_table(const std::vector<NodeRow>& rows, Paint paint, Width width) {
  if (rows.empty()) return "No nodes.\n";
  Table table({"NODE", "STATE", "SIGNAL", "AVAILABLE", "THRESHOLD", "LEFT", "MET IN", "NEXT EVICTED"});
  std::string silent;
  for (const NodeRow& row : rows) {
    const std::vector<const Reason*> shown =
        row.standing ? thresholds_of(*row.standing, width) : std::vector<const Reason*>();
    if (shown.empty()) {
      table.add({row.node, row.state}, paint == Paint::kTerminal ? "\x1b[33m" : "");
      silent += fmt::format("{}: {}\n", printable_line(row.node),
                            row.silent.empty() ? "no threshold is measured there" : printable_line(row.silent));
    }
    for (const Reason* each : shown) add_threshold(table, row, *each, each == shown.front(), paint);
  }
  return table.text("") + (silent.empty() ? "" : "\n" + silent);
}

}  // namespace spillway::cli
