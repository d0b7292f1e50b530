#include "apps/node/node_part.h"

#include <utility>

namespace spillway::apps {

namespace {

constexpr Duration kShutdownGrace = seconds(2);

}  // namespace

Result<std::unique_ptr<NodePart>> NodePart::create(Process& process, const NodePartOptions& options,
                                                   std::unique_ptr<client::Transport> transport) {
  SPILLWAY_TRY(node, start_node(process, options, std::move(transport)));
  return std::unique_ptr<NodePart>(new NodePart(process, std::move(node)));  // NOLINT: private constructor
}

/// If pods are to be ended gracefully, that comes first; a second signal ends the process at once.
void NodePart::stop(runtime::Loop::Task done) {
  const auto finish = std::make_shared<runtime::Loop::Task>(std::move(done));
  const auto stop_soon = [this, finish](Now) {
    process_.loop().post([this, finish] { stop_now(std::move(*finish)); });
  };
  node_->driver->step([this, stop_soon](Now now) {
    if (!node_->agent->shut_down(stop_soon, now)) stop_soon(now);
  });
}

void NodePart::stop_now(runtime::Loop::Task done) {
  node_->runtime->listen({}, {});
  node_->manifests.reset();
  node_->plugins.reset();
  node_->driver->stop();
  node_->reaction.reset();
  if (node_->server) node_->server->set_endpoint(nullptr);
  // std::function wants something it can copy.
  const auto finish = std::make_shared<runtime::Loop::Task>(std::move(done));
  node_->runtime->shutdown(kShutdownGrace, [this, finish] {
    process_.loop().post([this, finish] {
      node_->endpoint.reset();
      node_->runtime.reset();
      if (const Outcome removed = node_->slice->remove(); !removed) {
        process_.log().warning("cgroup was not removed", {{"node", node_->name}, {"error", removed.error().text()}});
      }
      if (!node_->server) return (*finish)();
      node_->server->stop([finish] { (*finish)(); });
    });
  });
}

}  // namespace spillway::apps
