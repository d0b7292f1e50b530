#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <array>
#include <memory>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

constexpr std::string_view kExplained =
    "pod/NAME, node/NAME, deployment/NAME, replicaset/NAME, daemonset/NAME or "
    "statefulset/NAME";

/// The resource that this is a name of, of those whose pods are replaced; empty: none.
std::string_view workload_resource(std::string_view kind) {
  struct Names {
    std::string_view resource;
    std::string_view brief;
  };

  constexpr std::array<Names, 3> kNames = {{{"replicasets", "rs"}, {"daemonsets", "ds"}, {"statefulsets", "sts"}}};
  if (kind.ends_with(".apps")) kind.remove_suffix(5);
  for (const auto& [resource, brief] : kNames) {
    if (kind == resource || kind == brief || kind == resource.substr(0, resource.size() - 1)) return resource;
  }
  return {};
}

/// "pod/NAME", "po/NAMESPACE/NAME", "node/NAME", "deployment/NAME", "rs/NAME".
Outcome parse_explained(const std::string& text, ExplainCommand& command) {
  const std::size_t slash = text.find('/');
  const std::string kind = text.substr(0, slash);
  std::string name = slash == std::string::npos ? "" : text.substr(slash + 1);
  const bool is_pod = kind == "pod" || kind == "pods" || kind == "po";
  const bool is_node = kind == "node" || kind == "nodes" || kind == "no";
  const bool is_deployment = kind == "deployment" || kind == "deployments" || kind == "deploy" ||
                             kind == "deployment.apps" || kind == "deployments.apps";
  const std::string_view resource = workload_resource(kind);
  if ((!is_pod && !is_node && !is_deployment && resource.empty()) || name.empty()) {
    return make_error(ErrorCode::kInvalid, "\"{}\" cannot be explained; expected {}", text, kExplained);
  }
  if (const std::size_t second = name.find('/'); !is_node && second != std::string::npos) {
    command.name_space = name.substr(0, second);
    name = name.substr(second + 1);
  }
  if (name.empty() || name.find('/') != std::string::npos) {
    return make_error(ErrorCode::kInvalid, "\"{}\" names nothing; expected {}", text, kExplained);
  }
  using enum ExplainCommand::About;
  command.about = is_pod ? kPod : is_node ? kNode : is_deployment ? kDeployment : kWorkload;
  command.resource = resource;
  command.name = std::move(name);
  return {};
}

}  // namespace

void define_explain(Commands& commands) {
  const auto explain = std::make_shared<ExplainCommand>();
  CLI::App& app = commands.add(
      "explain",
      "Say why a pod was evicted, why nothing is, who would be next, and what rollouts and replacements wait for");
  app.footer(
      "Exit codes: 0 answered, 1 could not be asked, 2 wrong command line, 3 nothing is known about it.\n"
      "When the agent of a node is gone, its journal still answers: --journal STATE_DIR/NODE/journal.jsonl");
  bool& is_last = explain->last;
  CLI::Option* last = app.add_flag("--last", is_last, "The last decision of all nodes, or of the journal");
  app.add_option("-n,--namespace", explain->name_space, "Namespace of the pod or workload")
      ->default_str("that of the context, or default");
  CLI::Option* what = app.add_option_function<std::string>(
      "what",
      [explain](const std::string& text) {
        if (const Outcome parsed = parse_explained(text, *explain); !parsed) {
          throw CLI::ValidationError("explain", parsed.error().text());
        }
      },
      std::string(kExplained));
  what->type_name("pod/NAME|node/NAME|KIND/NAME")->excludes(last);
  add_controller_target(app, explain->target);
  app.add_option("--journal", explain->journal, "Read this journal of an agent instead of asking the cluster");
  app.add_option("--node", explain->node, "Ask only this node");
  add_output(app, explain->output);
  add_colour(app, explain->colour);
  app.callback([&commands, explain, what, last] {
    if (what->count() == 0 && last->count() == 0) {
      throw CLI::ValidationError("explain", "say what to explain: pod/NAME, node/NAME or --last");
    }
    commands.choose([explain]() -> Command { return *explain; });
  });
}

}  // namespace spillway::cli
