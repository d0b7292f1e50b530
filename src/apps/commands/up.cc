// `spillway up`: everything in one process.
#include "api/text/identities.h"
#include "apps/commands/commands.h"
#include "apps/commands/missing_nodes.h"
#include "apps/controller/controller_pages.h"
#include "apps/controller/controllers_part.h"
#include "apps/node/node_config.h"
#include "apps/node/node_options.h"
#include "apps/node/node_part.h"
#include "apps/process/engine_metrics.h"
#include "apps/process/engine_part.h"
#include "apps/process/host_name.h"
#include "apps/process/process.h"
#include "apps/server/api_server_part.h"
#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "runtime/entropy.h"

#include <string>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

class Up {
 public:
  Up(const cli::LogArgs& log, const cli::UpCommand& command) : command_(command), process_(log) {}

  int run() {
    auto server = ApiServerPart::create(
        process_, command_.serving, [this] { start_engines(); },
        [this](std::string_view path) { return pages_.answer(path); }, apiserver::ApiServer::Controllers::kOwn);
    if (!server) {
      print_error(server.error());
      return server.error().code == ErrorCode::kInvalid ? cli::kExitUsage : cli::kExitFailure;
    }
    server_ = &process_.add(*std::move(server));
    return process_.run();
  }

 private:
  void start_engines() {
    const Rng rng(runtime::entropy());
    auto set = std::make_unique<controllers::ControllerSet>(*make_controller_options(command_.controller),
                                                            rng.fork("controller"), process_.log(), process_.metrics());
    controllers::ControllerSet& controllers = *set;
    process_.add(std::make_unique<ControllersPart>(
        process_.loop(), controllers,
        std::make_unique<TimedControllers>(std::move(set), process_.loop(), process_.metrics()),
        server_->connect("system:kube-controller-manager"), pages_, command_.controller));
    process_.add(std::make_unique<EnginePart>(
        process_.loop(),
        std::make_unique<controllers::Scheduler>(make_scheduler_options(command_.controller.compat == "v1.7"),
                                                 rng.fork("scheduler"), process_.log()),
        server_->connect("system:kube-scheduler")));
    const std::string base = command_.node_name.empty() ? host_name() : command_.node_name;
    std::vector<std::string> names;
    for (std::int32_t i = 1; i <= command_.nodes; ++i) {
      names.push_back(command_.nodes == 1 ? base : fmt::format("{}-{}", base, i));
    }
    look_for_missing_nodes(names);
    for (const std::string& name : names) {
      if (!start_node(name)) return;
    }
  }

  void look_for_missing_nodes(const std::vector<std::string>& names) {
    process_.add(std::make_unique<EnginePart>(
        process_.loop(),
        std::make_unique<MissingNodes>(MissingNodes::Options{.before = nodes_below(node_state_dir(
                                                                 command_.node.state_dir, server_->data_dir(), "")),
                                                             .now = {names.begin(), names.end()},
                                                             .remove = command_.remove_missing_nodes},
                                       process_.log()),
        server_->connect("system:kube-controller-manager")));
  }

  bool start_node(const std::string& name) {
    NodePartOptions options{
        .args = command_.node,
        .name = name,
        .instance = instance_of(server_->data_dir()),
        .state_dir = node_state_dir(command_.node.state_dir, server_->data_dir(), name),
        .client_authority_pem = std::nullopt,
        .port = 0,
        .ips = {},
        .hidden = {server_->data_dir(), command_.serving.write_kubeconfig, command_.serving.token_auth_file}};
    auto node = NodePart::create(process_, options, server_->connect(std::string(api::kNodeUserPrefix) + name));
    if (!node) {
      process_.fail(node.error());
      return false;
    }
    server_->local_nodes().add((*node)->name(), (*node)->endpoint());
    process_.add(*std::move(node));
    return true;
  }

  const cli::UpCommand& command_;
  Process process_;
  ControllerPages pages_{process_.loop()};
  ApiServerPart* server_ = nullptr;
};

}  // namespace

int run_up(const cli::LogArgs& log, const cli::UpCommand& command) {
  if (!check_node_config(command.node)) return cli::kExitUsage;
  if (const auto options = make_controller_options(command.controller); !options) {
    print_error(options.error());
    return cli::kExitUsage;
  }
  warn_of_flags_without_effect(cli::flags_without_effect(command.controller));
  return Up(log, command).run();
}

}  // namespace spillway::apps
