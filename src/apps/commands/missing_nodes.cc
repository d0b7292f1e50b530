#include "apps/commands/missing_nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

namespace spillway::apps {

namespace {

std::string node_name_in(const api::Json& node) {
  return std::string(node.string_at({"metadata", "name"}));
}

}  // namespace

std::vector<std::string> missing_nodes(const std::set<std::string>& registered, const std::set<std::string>& before,
                                       const std::set<std::string>& now) {
  std::vector<std::string> missing;
  std::ranges::copy_if(registered, std::back_inserter(missing),
                       [&](const std::string& name) { return before.contains(name) && !now.contains(name); });
  return missing;
}

MissingNodes::MissingNodes(Options options, telemetry::Log log)
    : options_(std::move(options)), log_(std::move(log)), client_("spillway-up", Rng(1)) {}

void MissingNodes::start(Now now) {
  client_.start(now);
  client_.get(client::object_path("v1", "nodes", {}), [this](const Result<api::Json>& outcome, Now) {
    if (outcome) on_nodes(*outcome);
  });
}

void MissingNodes::on_nodes(const api::Json& list) {
  const api::Json* items = list.find("items");
  if (items == nullptr || items->if_array() == nullptr) return;
  std::set<std::string> registered;
  for (const api::Json& node : *items->if_array()) registered.insert(node_name_in(node));
  const std::vector<std::string> missing = missing_nodes(registered, options_.before, options_.now);
  if (missing.empty()) return;
  if (!options_.remove) {
    const std::string names = fmt::format("{}", fmt::join(missing, " "));
    log_.warning(
        "Nodes of an earlier start do not run any more: they and their pods stay in the API until they are deleted",
        {{"nodes", names}, {"delete_with", "kubectl delete node " + names + ", or --remove-missing-nodes"}});
    return;
  }
  for (const api::Json& node : *items->if_array()) {
    if (std::ranges::find(missing, node_name_in(node)) != missing.end()) remove(node);
  }
}

void MissingNodes::remove(const api::Json& node) {
  const api::Json options = api::Json::object(
      {{"apiVersion", "v1"},
       {"kind", "DeleteOptions"},
       {"preconditions", api::Json::object({{"uid", std::string(node.string_at({"metadata", "uid"}))}})}});
  client_.remove(client::object_path("v1", "nodes", {}, node_name_in(node)), options,
                 [this, name = node_name_in(node)](const Result<api::Json>& outcome, Now) {
                   if (outcome) return log_.info("the Node of an earlier start was deleted", {{"node", name}});
                   log_.warning("node was not deleted", {{"node", name}, {"error", outcome.error().text()}});
                 });
}

std::set<std::string> nodes_below(const std::string& directory) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_directory(error)) names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace spillway::apps
