#include "apps/commands/nodes_of_up.h"

#include "apps/process/host_name.h"
#include "policy/checkup/runtime_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace spillway::apps {
namespace {

using api::Json;

void add_names(const std::string& base, std::int32_t count, std::vector<std::string>& names) {
  for (std::int32_t i = 1; i <= count; ++i) names.push_back(count == 1 ? base : fmt::format("{}-{}", base, i));
}

std::vector<std::string> process_node_names(const cli::UpCommand& command) {
  std::vector<std::string> names;
  const std::string base = command.node_name.empty() ? host_name() : command.node_name;
  add_names(base + "-process", command.process_nodes, names);
  return names;
}

}  // namespace

std::vector<std::string> node_names(const cli::UpCommand& command) {
  std::vector<std::string> names;
  add_names(command.node_name.empty() ? host_name() : command.node_name, command.nodes, names);
  std::ranges::copy(process_node_names(command), std::back_inserter(names));
  return names;
}

bool is_process_node(const cli::UpCommand& command, const std::string& node) {
  const std::vector<std::string> names = process_node_names(command);
  return std::ranges::find(names, node) != names.end();
}

cli::NodeArgs process_node_args(cli::NodeArgs args) {
  args.config.flags["containerRuntimeEndpoint"] = nullptr;  // also in place of the configuration file's
  args.config.flags["registerWithTaints"] = Json::array(
      {Json::object({{"key", checkup::kRuntimeLabel}, {"value", checkup::kProcessRuntime}, {"effect", "NoSchedule"}})});
  return args;
}

controllers::Manifest process_runtime_class() {
  const Json toleration = Json::object({{"key", checkup::kRuntimeLabel},
                                        {"operator", "Equal"},
                                        {"value", checkup::kProcessRuntime},
                                        {"effect", "NoSchedule"}});
  return {.place = "--process-nodes",
          .object = Json::object(
              {{"apiVersion", "node.k8s.io/v1"},
               {"kind", "RuntimeClass"},
               {"metadata", Json::object({{"name", checkup::kProcessRuntime}})},
               {"handler", checkup::kProcessRuntime},
               {"scheduling",
                Json::object({{"nodeSelector", Json::object({{checkup::kRuntimeLabel, checkup::kProcessRuntime}})},
                              {"tolerations", Json::array({toleration})}})}})};
}

}  // namespace spillway::apps
