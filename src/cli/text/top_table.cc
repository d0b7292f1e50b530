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
constexpr double kNearShare =
    0.05;  // share of the capacity above a threshold, below which a signal is shown in place of memory

std::optional<double> measured(const Reason& reason, std::string_view what) {
  const Fact* fact = find_measured(reason.facts, what);
  return fact == nullptr ? std::nullopt : std::optional(fact_number(*fact));
}

/// nullopt: no forecast says that the threshold will be reached.
std::optional<double> forecast_of(const Reason& reason) {
  const Fact* fact = policy::find_fact(reason.facts, "forecast_seconds");
  if (fact == nullptr || fact_number(*fact) > kForeseenSeconds) return std::nullopt;
  return fact_number(*fact);
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

std::string next_of(const policy::Decision& decision) {
  for (const policy::Candidate& each : decision.candidates) {
    if (each.reason.code == ReasonCode::kRankedFirst) return each.subject.ns + "/" + each.subject.name;
  }
  return {};
}

std::string_view colour_of(const Reason& nearest) {
  if (is_met(nearest)) return "\x1b[31m";
  return forecast_of(nearest).value_or(kSoonSeconds) < kSoonSeconds ? "\x1b[33m" : "";
}

bool is_memory(const Reason& reason) {
  return policy::text_fact(reason, "signal") == "memory.available";
}

/// The nearest first. Of the usual table one alone: memory, unless another one is met, foreseen or within kNearShare.
std::vector<const Reason*> thresholds_of(const policy::Decision& decision, Width width) {
  std::vector<const Reason*> found;
  for (const Reason& each : decision.reasons) {
    if (is_threshold(each)) found.push_back(&each);
  }
  std::ranges::stable_sort(found, {}, [](const Reason* each) { return nearness(*each); });
  if (width == Width::kWide || found.empty()) return found;
  const Reason* shown = found.front();
  const auto memory = std::ranges::find_if(found, [](const Reason* each) { return is_memory(*each); });
  const bool is_near = is_met(*shown) || forecast_of(*shown) || std::get<2>(nearness(*shown)) < kNearShare;
  if (!is_near && memory != found.end()) shown = *memory;
  return {shown};
}

void add_threshold(Table& table, const NodeRow& row, const Reason& reason, bool is_first, Paint paint) {
  const auto forecast = forecast_of(reason);
  table.add({row.node, row.state, std::string(*policy::text_fact(reason, "signal")),
             value_text(*find_measured(reason.facts, "available")),
             value_text(*find_measured(reason.facts, "threshold")), value_text(left_of(reason)),
             is_met(reason) ? "now"
             : forecast     ? value_text({"forecast_seconds", *forecast})
                            : "",
             is_first ? next_of(*row.decision) : ""},
            paint == Paint::kTerminal ? colour_of(reason) : "");
}

}  // namespace

const Reason* nearest_threshold(const policy::Decision& decision) {
  const Reason* nearest = nullptr;
  for (const Reason& each : decision.reasons) {
    if (is_threshold(each) && (nearest == nullptr || nearness(each) < nearness(*nearest))) nearest = &each;
  }
  return nearest;
}

std::vector<NodeRow> nearest_first(std::vector<NodeRow> rows) {
  const auto key = [](const NodeRow& row) {
    const Reason* nearest = row.decision ? nearest_threshold(*row.decision) : nullptr;
    const auto near =
        nearest == nullptr ? std::tuple(true, std::numeric_limits<double>::infinity(), 1.0) : nearness(*nearest);
    return std::tuple(row.state == "Ready" ? 1 : 0, near);
  };
  std::ranges::sort(rows, [&key](const NodeRow& a, const NodeRow& b) {
    return std::tuple(key(a), std::string_view(a.node)) < std::tuple(key(b), std::string_view(b.node));
  });
  return rows;
}

std::vector<NodeRow> least_memory_first(std::vector<NodeRow> rows) {
  const auto left = [](const NodeRow& row) {
    if (row.decision) {
      for (const Reason& each : row.decision->reasons) {
        if (is_memory(each)) return measured(each, "available").value_or(std::numeric_limits<double>::infinity());
      }
    }
    return std::numeric_limits<double>::infinity();
  };
  std::ranges::stable_sort(rows, {}, left);
  return rows;
}

std::string top_table(const std::vector<NodeRow>& rows, Paint paint, Width width, std::size_t columns) {
  if (rows.empty()) return "No nodes.\n";
  Table table({"NODE", "STATE", "SIGNAL", "AVAILABLE", "THRESHOLD", "LEFT", "MET IN", "NEXT EVICTED"});
  // With several rows of a node the signal distinguishes them.
  table.may_drop(width == Width::kWide ? std::vector<std::string>{"LEFT", "STATE", "NEXT EVICTED"}
                                       : std::vector<std::string>{"LEFT", "THRESHOLD", "SIGNAL"});
  std::string silent;
  for (const NodeRow& row : rows) {
    const std::vector<const Reason*> shown =
        row.decision ? thresholds_of(*row.decision, width) : std::vector<const Reason*>();
    if (shown.empty()) {
      table.add({row.node, row.state}, paint == Paint::kTerminal ? "\x1b[33m" : "");
      silent += fmt::format("{}: {}\n", printable_line(row.node),
                            row.silent.empty() ? "no threshold is measured there" : printable_line(row.silent));
    }
    for (const Reason* each : shown) add_threshold(table, row, *each, each == shown.front(), paint);
  }
  return table.text("", columns) + (silent.empty() ? "" : "\n" + silent);
}

}  // namespace spillway::cli
