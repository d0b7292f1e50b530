#include "apps/node/node_part.h"

#include <utility>

namespace spillway::apps {

namespace {

constexpr Duration kShutdownGrace = seconds(2);

}  // namespace

Result<std::unique_ptr<NodePart>> NodePart::create(const NodeSite& site, const NodePartOptions& options,
                                                   std::unique_ptr<client::Transport> transport, LeaseRoom lease) {
  SPILLWAY_TRY(node, start_node(site, options, std::move(transport), std::move(lease)));
  return std::unique_ptr<NodePart>(
      new NodePart(site, std::move(node), options.keeps_pods));  // NOLINT: private constructor
}

void NodePart::prepare_stop() {
  if (pods_run_on()) return;
  reporting_ = true;
  node_->driver->step(
      [this](Now now) { node_->agent->report_stop([this](Now) { site_.loop.post([this] { on_reported(); }); }, now); });
}

void NodePart::on_reported() {
  reporting_ = false;
  if (when_reported_) std::exchange(when_reported_, nullptr)();
}

/// Pods that must end gracefully are ended first; a second signal ends the process at once.
void NodePart::stop(runtime::Loop::Task done) {
  const auto finish = std::make_shared<runtime::Loop::Task>(std::move(done));
  const auto stop_soon = [this, finish](Now) {
    site_.loop.post([this, finish] {
      if (!reporting_) return stop_now(std::move(*finish));
      when_reported_ = [this, finish] { stop_now(std::move(*finish)); };
    });
  };
  node_->driver->step([this, stop_soon](Now now) {
    if (!node_->agent->shut_down(stop_soon, now)) stop_soon(now);
  });
}

void NodePart::stop_now(runtime::Loop::Task done) {
  node_->runtime->listen({}, {});
  node_->manifests.reset();
  node_->manifest_url.reset();
  node_->plugins.reset();
  node_->pod_resources.reset();
  node_->driver->stop();
  node_->reaction.reset();
  if (node_->server) node_->server->set_endpoint(nullptr);
  if (node_->read_only) node_->read_only->set_endpoint(nullptr);
  // std::function requires a copyable callable
  const auto finish = std::make_shared<runtime::Loop::Task>(std::move(done));
  if (!node_->lease) return end_pods(finish);
  node_->lease->stop([this, finish] {
    node_->lease.reset();
    end_pods(finish);
  });
}

void NodePart::end_pods(const std::shared_ptr<runtime::Loop::Task>& done) {
  const auto pods = static_cast<std::uint64_t>(node_->runtime->pods().size());
  if (keeps_pods_ && node_->runtime->keep_pods()) {
    site_.process.log().info("pods keep running without their agent, until it is started again",
                             {{"node", node_->name}, {"pods", pods}});
    site_.loop.post([this, done] {
      node_->endpoint.reset();
      node_->runtime.reset();
      end_server(done);
    });
    return;
  }
  if (pods > 0) site_.process.log().info("pods are ended", {{"node", node_->name}, {"pods", pods}});
  node_->runtime->shutdown(kShutdownGrace, [this, done] {
    site_.loop.post([this, done] {
      node_->endpoint.reset();
      node_->runtime.reset();
      if (const Outcome removed = node_->slice->remove(); !removed) {
        site_.process.log().warning("cgroup was not removed",
                                    {{"node", node_->name}, {"error", removed.error().text()}});
      }
      end_server(done);
    });
  });
}

void NodePart::end_server(const std::shared_ptr<runtime::Loop::Task>& done) {
  const auto end_secured = [this, done] {
    if (!node_->server) return (*done)();
    node_->server->stop([done] { (*done)(); });
  };
  if (!node_->read_only) return end_secured();
  node_->read_only->stop(end_secured);
}

}  // namespace spillway::apps
