#include "apps/commands/node_ranges_watch.h"

#include "base/rng.h"

#include <utility>

namespace spillway::apps {

NodeRangesWatch::NodeRangesWatch(std::set<std::string> names, OnRanges on_ranges)
    : names_(std::move(names)),
      on_ranges_(std::move(on_ranges)),
      client_("spillway-up", Rng(1)),
      nodes_(client_, client::object_path("v1", "nodes", {})) {
  nodes_.cache().listen({[this](const auto& /*before*/, const auto& after, Now) {
    if (after) on_node(*after);
  }});
}

void NodeRangesWatch::on_node(const api::Node& node) {
  const std::string& name = node.metadata.name;
  if (!names_.contains(name) || node.spec.pod_cidrs.empty() || known_[name] == node.spec.pod_cidrs) return;
  known_[name] = node.spec.pod_cidrs;
  on_ranges_(name, node.spec.pod_cidrs);
}

}  // namespace spillway::apps
