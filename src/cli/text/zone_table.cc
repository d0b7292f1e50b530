#include "cli/text/zone_table.h"

#include "base/utf8.h"
#include "cli/text/reason_sentence.h"
#include "cli/text/value_text.h"
#include "policy/decision_json.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

std::int64_t integer_at(const api::Json& item, std::string_view key) {
  const api::Json* found = item.find(key);
  return found == nullptr ? 0 : found->if_int64().value_or(0);
}

double number_at(const api::Json& item, std::string_view key) {
  const api::Json* found = item.find(key);
  if (found == nullptr) return 0;
  if (const auto whole = found->if_int64()) return static_cast<double>(*whole);
  return found->if_double().value_or(0);
}

std::string rate_text(double per_second) {
  if (per_second <= 0) return "stopped";
  return fmt::format("{:.3g}/s", per_second);
}

std::string brake_text(const api::Json* brake) {
  if (brake == nullptr) return {};
  const auto reason = policy::reason_from_json(*brake);
  return reason ? sentence_of(*reason) : std::string(brake->string_at({"code"}));
}

std::string next_text(const api::Json& item) {
  const std::string node(item.string_at({"nextNode"}));
  if (node.empty()) return {};
  if (item.find("nextActInSeconds") == nullptr) return node + ", not now";
  return fmt::format("{} in {}", node, value_text({"in_seconds", number_at(item, "nextActInSeconds")}));
}

/// The time of the next token of a zone's rate.
std::string token_text(const api::Json& item) {
  if (item.find("nextTokenInSeconds") == nullptr) return "none";
  const double after = number_at(item, "nextTokenInSeconds");
  return after <= 0 ? "there" : "in " + value_text({"in_seconds", after});
}

}  // namespace

std::string zone_table(const api::Json& zone_list, Paint paint, Width width) {
  static constexpr std::string_view kRed = "\x1b[31m";
  static constexpr std::string_view kYellow = "\x1b[33m";
  std::vector<std::string> headings{"ZONE", "STATE", "READY", "RATE", "QUEUE", "NEXT", "BRAKE"};
  if (width == Width::kWide) headings.insert(headings.begin() + 4, "TOKEN");
  Table table(std::move(headings));
  const api::Json* items = zone_list.find("items");
  if (items != nullptr && items->if_array() != nullptr) {
    for (const api::Json& item : *items->if_array()) {
      const std::string_view state = item.string_at({"state"});
      const api::Json* brake = item.find("brake");
      const std::string_view colour = state == "FullDisruption"                          ? kRed
                                      : state == "PartialDisruption" || brake != nullptr ? kYellow
                                                                                         : std::string_view();
      std::vector<std::string> cells{std::string(item.string_at({"zone"})),
                                     std::string(state),
                                     fmt::format("{}/{}", integer_at(item, "readyNodes"), integer_at(item, "nodes")),
                                     rate_text(number_at(item, "nodesPerSecond")),
                                     fmt::format("{}", integer_at(item, "waitingNodes")),
                                     next_text(item),
                                     brake_text(brake)};
      if (width == Width::kWide) cells.insert(cells.begin() + 4, token_text(item));
      table.add(std::move(cells), paint == Paint::kTerminal ? colour : std::string_view());
    }
  }
  const std::int64_t new_nodes = integer_at(zone_list, "newNodes");
  std::string text = table.empty() ? "" : table.text("");
  if (new_nodes > 0) {
    text += fmt::format(
        "{}{} new: the controllers have not synced {} yet; they sync every {}.\n", text.empty() ? "" : "\n",
        new_nodes == 1 ? "One node is" : fmt::format("{} nodes are", new_nodes), new_nodes == 1 ? "it" : "them",
        value_text({"look_every_seconds", number_at(zone_list, "lookEverySeconds")}));
  }
  if (text.empty()) text = "No zones: there are no nodes.\n";
  if (const std::string held = brake_text(zone_list.find("brake")); !held.empty()) {
    text += fmt::format("\nNothing is marked, tainted or deleted: {}\n", printable_line(held));
  }
  const api::Json* disrupted = zone_list.find("masterDisruption");
  if (disrupted != nullptr && disrupted->if_bool().value_or(false)) {
    text += "\nEvery zone is fully disrupted: evictions have stopped.\n";
  }
  return text;
}

}  // namespace spillway::cli
