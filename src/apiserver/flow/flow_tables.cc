#include "apiserver/flow/flow_tables.h"

#include "base/json_string.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

constexpr std::string_view kPages = "/debug/api_priority_and_fairness/";
constexpr std::size_t kCellBytesMax = 256;

/// Names of flows are names of users, who may be called anything that a certificate can hold.
std::string cell_of(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f && c != ',' && c != '"'; });
  if (plain && name.size() <= kCellBytesMax) return std::string(name);
  std::string out;
  append_json_string(name.substr(0, kCellBytesMax), out);
  std::ranges::replace_if(out, [](char c) { return static_cast<unsigned char>(c) >= 0x7f; }, '?');
  return out;
}

/// Columns as wide as their widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> columns) { rows_.push_back(std::move(columns)); }

  void add(std::vector<std::string> row) {
    if (rows_.size() > kFlowRowsMax)
      ++left_out_;
    else
      rows_.push_back(std::move(row));
  }

  std::string text() const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size() + 2);
    }
    std::string out;
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        const bool last = i + 1 == row.size();
        out += last ? row[i] : fmt::format("{:<{}}", row[i] + ",", widths[i]);
      }
      out += '\n';
    }
    if (left_out_ > 0) out += fmt::format("... and {} more\n", left_out_);
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::size_t left_out_ = 0;
};

std::string seconds_text(Duration duration) {
  return fmt::format("{:.3f}s", std::chrono::duration<double>(duration).count());
}

/// Calls `visit` with the level's place and every flow.
template <typename Visit>
void visit_all(const FlowGate& gate, const Visit& visit) {
  for (std::size_t level = 0; level < gate.configuration().levels.size(); ++level) {
    if (gate.configuration().levels[level].name.empty()) continue;
    gate.visit_flows(level, [&](std::string_view name, const FlowGate::Flow& flow) { visit(level, name, flow); });
  }
}

std::string priority_levels(const FlowGate& gate) {
  Table table({"PriorityLevelName", "ActiveQueues", "IsIdle", "WaitingRequests", "ExecutingRequests",
               "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests", "NominalSeats",
               "LendableSeats", "SeatsInUse"});
  const auto& levels = gate.configuration().levels;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    if (levels[level].name.empty()) continue;
    std::size_t active = 0;
    gate.visit_flows(level, [&](std::string_view, const FlowGate::Flow& flow) { active += !flow.waiting.empty(); });
    std::size_t running = 0;
    int seats = 0;
    for (std::size_t schema = 0; schema < gate.configuration().schemas.size(); ++schema) {
      if (gate.level_of(schema) != level) continue;
      running += gate.counts(schema).running;
      seats += gate.counts(schema).seats;
    }
    const FlowGate::LevelTotals& totals = gate.totals(level);
    const flow::Share& share = gate.seats().share(level);
    const bool idle = running == 0 && gate.waiting(level) == 0;
    table.add({cell_of(levels[level].name), std::to_string(active), idle ? "true" : "false",
               std::to_string(gate.waiting(level)), std::to_string(running), std::to_string(totals.dispatched),
               std::to_string(totals.rejected), std::to_string(totals.timed_out), std::to_string(totals.cancelled),
               std::to_string(share.nominal), std::to_string(share.lendable), std::to_string(seats)});
  }
  return table.text();
}

std::string queues(const FlowGate& gate, Instant now) {
  Table table({"PriorityLevelName", "FlowSchemaName", "FlowDistinguisher", "PendingRequests", "InitialSeatsSum",
               "NextDispatchR", "LongestWait"});
  visit_all(gate, [&](std::size_t level, std::string_view name, const FlowGate::Flow& flow) {
    if (flow.waiting.empty()) return;
    int seats = 0;
    for (const FlowGate::Ticket* ticket : flow.waiting) seats += ticket->seats;
    table.add({cell_of(gate.configuration().levels[level].name),
               cell_of(gate.configuration().schemas[flow.schema].name), cell_of(name),
               std::to_string(flow.waiting.size()), std::to_string(seats), std::to_string(flow.start),
               seconds_text(now - flow.waiting.front()->since)});
  });
  return table.text();
}

std::string requests(const FlowGate& gate, Instant now) {
  Table table({"PriorityLevelName", "FlowSchemaName", "FlowDistinguisher", "RequestIndexInQueue", "InitialSeats",
               "Waited", "TimeLeft"});
  visit_all(gate, [&](std::size_t level, std::string_view name, const FlowGate::Flow& flow) {
    for (std::size_t i = 0; i < flow.waiting.size(); ++i) {
      const FlowGate::Ticket& ticket = *flow.waiting[i];
      table.add({cell_of(gate.configuration().levels[level].name),
                 cell_of(gate.configuration().schemas[flow.schema].name), cell_of(name), std::to_string(i),
                 std::to_string(ticket.seats), seconds_text(now - ticket.since), seconds_text(ticket.deadline - now)});
    }
  });
  return table.text();
}

}  // namespace

std::optional<std::string> flow_page(const FlowGate& gate, std::string_view path, Instant now) {
  if (!path.starts_with(kPages)) return std::nullopt;
  path.remove_prefix(kPages.size());
  if (path == "dump_priority_levels") return priority_levels(gate);
  if (path == "dump_queues") return queues(gate, now);
  if (path == "dump_requests") return requests(gate, now);
  return std::nullopt;
}

}  // namespace spillway::apiserver
