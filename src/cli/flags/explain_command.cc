#include "base/edit_distance.h"
#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

constexpr std::string_view kExplained =
    "pod/NAME, node/NAME, deployment/NAME, replicaset/NAME, daemonset/NAME, statefulset/NAME, job/NAME, cronjob/NAME, "
    "horizontalpodautoscaler/NAME, service/NAME or pvc/NAME";

using About = ExplainCommand::About;

/// The names of a kind: "jobs", "job", and with the group behind it.
struct ExplainedKind {
  std::string_view plural;
  std::string_view brief;  // empty: none
  std::string_view group;
  About about;
};

constexpr auto kKinds =
    std::to_array<ExplainedKind>({{"pods", "po", "", About::kPod},
                                  {"nodes", "no", "", About::kNode},
                                  {"deployments", "deploy", "apps", About::kDeployment},
                                  {"replicasets", "rs", "apps", About::kWorkload},
                                  {"daemonsets", "ds", "apps", About::kWorkload},
                                  {"statefulsets", "sts", "apps", About::kWorkload},
                                  {"jobs", "", "batch", About::kWorkload},
                                  {"cronjobs", "cj", "batch", About::kWorkload},
                                  {"horizontalpodautoscalers", "hpa", "autoscaling", About::kWorkload},
                                  {"services", "svc", "", About::kWorkload},
                                  {"persistentvolumeclaims", "pvc", "", About::kWorkload}});

constexpr std::size_t kKindLengthMax = 64;  // the longest word that is compared with kinds

std::string_view singular_of(const ExplainedKind& kind) {
  return kind.plural.substr(0, kind.plural.size() - 1);
}

/// nullptr: that cannot be explained.
const ExplainedKind* find_kind(std::string word) {
  std::ranges::transform(word, word.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto is_called = [&word](const ExplainedKind& kind) {
    std::string_view bare = word;
    const std::size_t dot = bare.find('.');
    if (dot != std::string_view::npos) {
      if (kind.group.empty() || bare.substr(dot + 1) != kind.group) return false;
      bare = bare.substr(0, dot);
    }
    return bare == kind.plural || bare == singular_of(kind) || (!kind.brief.empty() && bare == kind.brief);
  };
  const auto found = std::ranges::find_if(kKinds, is_called);
  return found == kKinds.end() ? nullptr : &*found;
}

/// "; did you mean job/NAME?", or empty when nothing is close.
std::string near_kind(std::string_view word, std::string_view name) {
  if (word.empty() || word.size() > kKindLengthMax) return {};
  NearestWord nearest(word);
  for (const ExplainedKind& kind : kKinds) {
    for (const std::string_view known : {singular_of(kind), kind.plural, kind.brief}) {
      if (!known.empty()) nearest.offer(known, singular_of(kind));
    }
  }
  if (nearest.found().empty()) return {};
  return fmt::format("; did you mean {}/{}?", nearest.found(), name.empty() ? "NAME" : name);
}

/// "KIND NAME" as "KIND/NAME", and a name alone as that of a pod.
std::string joined(const std::vector<std::string>& words) {
  if (words.size() == 2) return words[0] + "/" + words[1];
  const std::string& word = words.front();
  return word.contains('/') || find_kind(word) != nullptr ? word : "pod/" + word;
}

/// "pod/NAME", "po/NAMESPACE/NAME", "node/NAME", "deployment/NAME", "rs/NAME".
Outcome parse_explained(const std::string& text, ExplainCommand& command) {
  const std::size_t slash = text.find('/');
  const std::string kind = text.substr(0, slash);
  std::string name = slash == std::string::npos ? "" : text.substr(slash + 1);
  const ExplainedKind* known = find_kind(kind);
  if (known == nullptr) {
    return make_error(ErrorCode::kInvalid, "\"{}\" cannot be explained{}; expected {}", text, near_kind(kind, name),
                      kExplained);
  }
  if (const std::size_t second = name.find('/'); known->about != About::kNode && second != std::string::npos) {
    command.name_space = name.substr(0, second);
    name = name.substr(second + 1);
  }
  if (name.empty() || name.find('/') != std::string::npos) {
    return make_error(ErrorCode::kInvalid, "\"{}\" names no object; expected {}", text, kExplained);
  }
  command.about = known->about;
  command.resource = known->about == About::kWorkload ? known->plural : std::string_view();
  command.name = std::move(name);
  return {};
}

}  // namespace

void define_explain(Commands& commands) {
  const auto explain = std::make_shared<ExplainCommand>();
  CLI::App& app = commands.add("explain",
                               "Explain why a pod was evicted, waits or fails, and what nodes, workloads, claims and "
                               "Services wait for. Without an object: list what needs a look");
  app.footer(
      "Exit codes: 0 answered, 1 the cluster did not answer, 2 wrong command line.\n"
      "3: there is no such object, and nothing is known about it.\n"
      "If the agent of a node is gone, its journal still answers: --journal STATE_DIR/NODE/journal.jsonl");
  bool& is_last = explain->last;
  CLI::Option* last = app.add_flag("--last", is_last, "Show the last decision of all nodes, or of the journal");
  app.add_option("-n,--namespace", explain->name_space, "Namespace of the pod or workload")
      ->type_name("NAME")
      ->default_str("that of the context, or default");
  CLI::Option* what = app.add_option_function<std::vector<std::string>>(
      "what",
      [explain](const std::vector<std::string>& words) {
        if (const Outcome parsed = parse_explained(joined(words), *explain); !parsed) {
          throw CLI::ValidationError("explain", parsed.error().text());
        }
      },
      std::string(kExplained) + ", also as KIND NAME; a name alone is that of a pod");
  what->type_name("KIND/NAME")->expected(0, 2)->excludes(last);
  add_controller_target(app, explain->target);
  app.add_option("--journal", explain->journal, "Read this journal of an agent instead of asking the cluster")
      ->type_name("FILE");
  app.add_option("--node", explain->node, "Query only this node")->type_name("NAME");
  app.add_option("--scheduler-config", explain->scheduler_config,
                 "KubeSchedulerConfiguration (YAML) whose profiles apply to waiting pods")
      ->check(CLI::ExistingFile)
      ->default_str("the default profile");
  add_output(app, explain->output);
  add_colour(app, explain->colour);
  app.callback([&commands, explain, what] {
    if (what->count() == 0 && (explain->last || explain->journal)) explain->about = About::kLast;
    commands.choose([explain]() -> Command { return *explain; });
  });
}

}  // namespace spillway::cli
