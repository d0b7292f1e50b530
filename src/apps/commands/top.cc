// `spillway top`: how near nodes are to evictions, once or again and again.
#include "api/codec/codec.h"
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/commands/node_standing.h"
#include "apps/process/process.h"
#include "apps/process/progress_line.h"
#include "apps/process/terminal.h"
#include "apps/view/cluster_view.h"
#include "apps/view/remote.h"
#include "base/utf8.h"
#include "cli/text/top_table.h"
#include "policy/decision_json.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apps {
namespace {

std::string state_of(const api::Node& node) {
  std::string state = "NotReady";
  std::string more;
  for (const api::NodeCondition& each : node.status.conditions) {
    if (each.type == "Ready") {
      if (each.status == "True") state = "Ready";
      if (each.status == "Unknown") state = "Unknown";
    } else if (each.status == "True") {
      more += "," + each.type;
    }
  }
  if (node.spec.unschedulable) more += ",SchedulingDisabled";
  return state + more;
}

class NodeReader {
 public:
  NodeReader(runtime::Loop& loop, ClusterView& cluster, const cli::TopCommand& command)
      : loop_(loop), cluster_(cluster), command_(command) {}

  Result<std::vector<cli::NodeRow>> take() {
    SPILLWAY_TRY(nodes, read_nodes());
    ProgressLine progress("asking nodes",
                          command_.watch ? ProgressLine::Shown::kNever : ProgressLine::Shown::kOnTerminal);
    std::vector<cli::NodeRow> rows;
    for (const api::Node& node : nodes) {
      if (interrupted()) break;
      progress.show(static_cast<double>(rows.size()) / static_cast<double>(nodes.size()));
      rows.push_back(row_of(node));
    }
    return nearest_first(std::move(rows));
  }

 private:
  Result<std::vector<api::Node>> read_nodes() {
    std::string path = "/api/v1/nodes";
    std::vector<api::Node> nodes;
    if (!command_.node.empty()) {
      SPILLWAY_TRY(document, cluster_.get(path + "/" + api::percent_encode(command_.node)));
      SPILLWAY_TRY(node, api::decode<api::Node>(document));
      nodes.push_back(std::move(node));
      return nodes;
    }
    if (!command_.selector.empty()) path += "?labelSelector=" + api::percent_encode(command_.selector);
    SPILLWAY_TRY(list, cluster_.get(path));
    const api::Json* items = list.find("items");
    if (items == nullptr || items->if_array() == nullptr) {
      return make_error(ErrorCode::kInternalError, "the list of nodes has no items");
    }
    for (const api::Json& each : *items->if_array()) {
      SPILLWAY_TRY(node, api::decode<api::Node>(each));
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  /// Nodes that are not Ready are left out of the queries, unless one is named: the API server would wait for each
  /// until its time-out.
  cli::NodeRow row_of(const api::Node& node) {
    cli::NodeRow row{node.metadata.name, state_of(node), {}, {}};
    if (command_.node.empty() && !row.state.starts_with("Ready")) {
      row.silent = "not read, because it is not Ready";
      return row;
    }
    auto decision = node_standing(cluster_, row.node, loop_.now());
    decision ? void(row.decision = *std::move(decision)) : void(row.silent = printable(decision.error().text()));
    return row;
  }

  runtime::Loop& loop_;
  ClusterView& cluster_;
  const cli::TopCommand& command_;
};

api::Json document_of(const std::vector<cli::NodeRow>& rows) {
  api::Json items = api::Json::array();
  for (const cli::NodeRow& row : rows) {
    api::Json item = api::Json::object({{"node", row.node}, {"state", row.state}});
    if (row.decision) item["standing"] = policy::to_json(*row.decision);
    if (!row.silent.empty()) item["silent"] = row.silent;
    items.if_array()->push_back(std::move(item));
  }
  return api::Json::object({{"kind", "NodeStandingList"}, {"apiVersion", "spillway/v1"}, {"items", std::move(items)}});
}

std::vector<cli::NodeRow> sorted(std::vector<cli::NodeRow> rows, cli::TopCommand::Sort by) {
  if (by == cli::TopCommand::Sort::kName) std::ranges::sort(rows, {}, &cli::NodeRow::node);
  if (by == cli::TopCommand::Sort::kMemory) rows = cli::least_memory_first(std::move(rows));
  return rows;
}

std::string text_of(const std::vector<cli::NodeRow>& rows, const cli::TopCommand& command) {
  if (cli::is_document(command.output)) {
    return command.watch ? stream_text(document_of(rows), command.output)
                         : answer_text(document_of(rows), command.output);
  }
  const cli::Paint paint = shows_colour(command.colour, STDOUT_FILENO) ? cli::Paint::kTerminal : cli::Paint::kNone;
  const cli::Width width = command.node.empty() ? width_of(command.output) : cli::Width::kWide;
  std::string text = cli::top_table(sorted(rows, command.sort), paint, width, screen_width());
  if (command.node.empty()) return text;
  for (const cli::NodeRow& row : rows) {
    if (row.decision) text += "\n" + cli::explain(*row.decision, std::nullopt, paint, screen_width());
  }
  return text;
}

/// Replaces the last table on a terminal, and is appended elsewhere.
void show(const std::string& text, const cli::TopCommand& command) {
  const bool is_drawn = command.watch && !cli::is_document(command.output) && is_terminal(STDOUT_FILENO);
  if (is_drawn) clear_screen();
  write_stdout(text);
  if (command.watch && !is_drawn && !cli::is_document(command.output)) write_stdout("\n");
  std::fflush(stdout);
}

int exit_code_of(const Error& error, const cli::TopCommand& command) {
  return error.code == ErrorCode::kNotFound && !command.node.empty() ? cli::kExitNegative : cli::kExitFailure;
}

}  // namespace

int run_top(const cli::TopCommand& command) {
  catch_interrupts();
  runtime::Loop loop;
  auto remote = connect_remote(loop, command.api);
  if (!remote) {
    print_error(remote.error());
    return cli::kExitUsage;
  }
  ClusterView cluster(loop, std::move(remote->transport));
  NodeReader reader(loop, cluster, command);
  for (;;) {
    const auto rows = reader.take();
    if (interrupted()) return cli::kExitOk;
    if (rows) {
      show(text_of(*rows, command), command);
    } else if (!command.watch || rows.error().code == ErrorCode::kNotFound) {
      print_error(rows.error());
      return exit_code_of(rows.error(), command);
    } else {
      show(printable(rows.error().text()) + "\n", command);  // the server may answer next time
    }
    if (!command.watch) {
      const bool is_silent = !command.node.empty() && !rows->front().decision;
      return is_silent ? cli::kExitFailure : cli::kExitOk;
    }
    pause_for(loop, command.interval);
    if (interrupted()) return cli::kExitOk;
  }
}

}  // namespace spillway::apps
