// `spillway controller`: waits until no other process does its work, is elected, runs the controllers while it leads,
// and stands by after it has lost the lease until it is elected again.
#include "apps/commands/commands.h"
#include "apps/controller/controller_pages.h"
#include "apps/controller/controllers_part.h"
#include "apps/controller/election_part.h"
#include "apps/controller/process_server.h"
#include "apps/node/node_options.h"
#include "apps/process/engine_metrics.h"
#include "apps/process/engine_part.h"
#include "apps/process/process.h"
#include "apps/process/recording.h"
#include "apps/process/terminal.h"
#include "apps/view/controller_client.h"
#include "apps/view/remote.h"
#include "cli/config/manager_config.h"
#include "client/leader_election.h"
#include "client/shadow_engine.h"
#include "controllers/controller_set.h"
#include "runtime/entropy.h"
#include "yaml/yaml_document.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace spillway::apps {

namespace {

constexpr std::string_view kStockLease = "kube-controller-manager";

/// Controllers of kube-controller-manager that do not exist here: naming them changes nothing.
constexpr std::array<std::string_view, 12> kOtherControllers{"bootstrap-signer-controller",
                                                             "bootstrapsigner",
                                                             "cloud-node-lifecycle-controller",
                                                             "disruption-controller",
                                                             "garbage-collector-controller",
                                                             "namespace-controller",
                                                             "node-ipam-controller",
                                                             "node-route-controller",
                                                             "resourcequota-controller",
                                                             "service-lb-controller",
                                                             "token-cleaner-controller",
                                                             "tokencleaner"};

Result<controllers::ControllerSet::Enabled> parse_controllers(const std::string& text) {
  controllers::ControllerSet::Enabled enabled{false,
                                              false,
                                              false,
                                              false,
                                              false,
                                              false,
                                              false,
                                              {.job = false, .cron_job = false, .ttl_after_finished = false},
                                              false,
                                              false,
                                              false,
                                              false,
                                              {.endpoints = false, .endpoint_slices = false, .slice_mirroring = false},
                                              false};
  // The names of controllers, including those before 1.28.
  const std::array known = {std::pair("nodelifecycle", &enabled.node_lifecycle),
                            std::pair("podgc", &enabled.pod_gc),
                            std::pair("nodeipam", &enabled.node_ipam),
                            std::pair("node-ipam-controller", &enabled.node_ipam),
                            std::pair("replicaset", &enabled.replica_set),
                            std::pair("daemonset", &enabled.daemon_set),
                            std::pair("deployment", &enabled.deployment),
                            std::pair("statefulset", &enabled.stateful_set),
                            std::pair("statefulset-controller", &enabled.stateful_set),
                            std::pair("horizontalpodautoscaling", &enabled.horizontal_autoscaler),
                            std::pair("horizontal-pod-autoscaler-controller", &enabled.horizontal_autoscaler),
                            std::pair("cronjob", &enabled.batch.cron_job),
                            std::pair("cronjob-controller", &enabled.batch.cron_job),
                            std::pair("endpoint", &enabled.endpoints.endpoints),
                            std::pair("endpoints-controller", &enabled.endpoints.endpoints),
                            std::pair("endpointslice", &enabled.endpoints.endpoint_slices),
                            std::pair("endpointslice-controller", &enabled.endpoints.endpoint_slices),
                            std::pair("endpointslicemirroring", &enabled.endpoints.slice_mirroring),
                            std::pair("endpointslice-mirroring-controller", &enabled.endpoints.slice_mirroring),
                            std::pair("job", &enabled.batch.job),
                            std::pair("job-controller", &enabled.batch.job),
                            std::pair("ttl-after-finished", &enabled.batch.ttl_after_finished),
                            std::pair("ttl-after-finished-controller", &enabled.batch.ttl_after_finished),
                            std::pair("node-lifecycle-controller", &enabled.node_lifecycle),
                            std::pair("taint-eviction-controller", &enabled.taint_eviction),
                            std::pair("pod-garbage-collector-controller", &enabled.pod_gc),
                            std::pair("replicaset-controller", &enabled.replica_set),
                            std::pair("replicationcontroller", &enabled.replication),
                            std::pair("replicationcontroller-controller", &enabled.replication),
                            std::pair("daemonset-controller", &enabled.daemon_set),
                            std::pair("deployment-controller", &enabled.deployment),
                            std::pair("persistentvolume-binder", &enabled.volume_binder),
                            std::pair("persistentvolume-binder-controller", &enabled.volume_binder),
                            std::pair("pvc-protection", &enabled.volume_protection),
                            std::pair("pv-protection", &enabled.volume_protection),
                            std::pair("persistentvolumeclaim-protection-controller", &enabled.volume_protection),
                            std::pair("persistentvolume-protection-controller", &enabled.volume_protection)};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (std::ranges::find(words, "*") != words.end()) {
    for (const auto& [name, on] : known) *on = true;
  }
  for (std::string word : words) {
    if (word == "*") continue;
    const bool is_excluded = word.starts_with('-');
    if (is_excluded) word.erase(0, 1);
    const auto found = std::ranges::find_if(known, [&](const auto& each) { return word == each.first; });
    if (found == known.end() && std::ranges::find(kOtherControllers, word) != kOtherControllers.end()) continue;
    if (found == known.end()) return invalid("--controllers", "there is no \"{}\"", word);
    *found->second = !is_excluded;
  }
  return enabled;
}

class ControllerProcess {
 public:
  ControllerProcess(const cli::LogArgs& log, const cli::ControllerCommand& command)
      : command_(command), process_(log), rng_(runtime::entropy()) {}

  int run(controllers::ControllerSet::Options options) {
    options_ = std::move(options);
    if (!command_.recording_dir.empty()) {
      recording_ = open_recording(process_, command_.recording_dir, command_.recording_max);
      options_.recording = recording_.get();
    }
    // Makes no connection yet: reports a bad kubeconfig at once.
    auto server = connect_remote(process_.loop(), command_.api);
    if (!server) {
      print_error(server.error());
      return cli::kExitUsage;
    }
    auto pages = std::make_unique<ControllerPages>(process_.loop());
    pages_ = pages.get();
    auto serving = ProcessServer::create(process_, command_.serving, std::move(pages), std::move(server->transport),
                                         server->authority_pem);
    if (!serving) {
      print_error(serving.error());
      return cli::kExitFailure;
    }
    server_ = &process_.add(*std::move(serving));
    server_->serve_recording(recording_.get());
    server_->set_configuration(cli::manager_configuration(command_));
    const bool same_lease = command_.leader_election.enabled && command_.leader_election.resource_name == kStockLease &&
                            command_.leader_election.resource_namespace == client::LeaseGuard::Options{}.ns;
    if (command_.shadow) {
      act(0);
    } else if (command_.beside_stock || same_lease) {
      elect();
    } else {
      guard();
    }
    return process_.run();
  }

 private:
  std::unique_ptr<client::Transport> connect() {
    auto server = connect_remote(process_.loop(), command_.api);
    if (!server) {
      process_.fail(server.error());
      return nullptr;
    }
    return std::make_unique<CountedTransport>(std::move(server->transport), process_.metrics(), server->host);
  }

  void guard() {
    auto transport = connect();
    if (!transport) return;
    client::LeaseGuard::Listener listener{
        [this](Now) { process_.loop().post([this] { elect(); }); },
        [this](const std::string& holder, Now) {
          process_.fail(make_error(ErrorCode::kConflict,
                                   "kube-controller-manager ({}) holds its lease: switch its controllers off and say "
                                   "--beside-stock-controllers, or watch with --shadow",
                                   holder));
        }};
    process_.log().info("checking for running kube-controller-manager", {{"lease", kStockLease}});
    process_.add(std::make_unique<EnginePart>(
        process_.loop(),
        std::make_unique<client::LeaseGuard>(client::LeaseGuard::Options{}, rng_.fork("guard"), std::move(listener)),
        std::move(transport)));
  }

  void elect() {
    const cli::LeaderElectionArgs& args = command_.leader_election;
    if (!args.enabled) return act(0);
    auto transport = connect();
    if (!transport) return;
    election_ = &process_.add(std::make_unique<ElectionPart>(
        process_,
        client::LeaderElection::Options{args.resource_namespace,
                                        args.resource_name,
                                        {},
                                        args.lease_duration,
                                        args.renew_deadline,
                                        args.retry_period,
                                        {{std::string(kUrlAnnotation), server_->url()},
                                         {std::string(kAuthorityAnnotation), server_->authority_pem()}}},
        rng_, std::move(transport),
        ElectionPart::Callbacks{.begin = [this](std::uint64_t term) { act(term); },
                                .end = [this](const std::string& why) { step_down(why); },
                                .standby =
                                    [this](const std::string& leader) {
                                      pages_->set_controllers(nullptr, "standing by: " + leader + " leads");
                                    }}));
  }

  /// Engines that acted were fenced in their last step at the latest, and are not used again.
  void step_down(const std::string& why) {
    if (acting_ != nullptr) process_.end(*std::exchange(acting_, nullptr));
    pages_->set_controllers(nullptr, why);
  }

  /// `term`: of the election, if there is one.
  void act(std::uint64_t term) {
    auto transport = connect();
    if (!transport) return;
    auto set = std::make_unique<controllers::ControllerSet>(options_, rng_.fork("controllers"), process_.log(),
                                                            process_.metrics());
    controllers::ControllerSet& controllers = *set;
    std::unique_ptr<client::ApiEngine> engine =
        std::make_unique<TimedControllers>(std::move(set), process_.loop(), process_.metrics());
    if (command_.shadow) {
      engine = std::make_unique<client::ShadowEngine>(std::move(engine), shadow_options());
    } else if (election_ != nullptr) {
      engine = election_->fenced(std::move(engine), term);
    }
    acting_ = &process_.add(std::make_unique<ControllersPart>(process_.loop(), controllers, std::move(engine),
                                                              std::move(transport), *pages_, command_.controller));
  }

  client::ShadowEngine::Options shadow_options() {
    client::ShadowEngine::Options options;
    options.on_write = [this](const std::string& write, const std::string& body) {
      process_.log().info("would write", {{"write", write}, {"body", body}});
    };
    options.on_difference = [this](const client::ShadowEngine::Difference& difference) {
      process_.log().warning("the cluster differs from the decisions of this process",
                             {{"write", difference.write},
                              {"body", difference.body},
                              {"wanted_s", std::chrono::duration<double>(difference.wanted).count()}});
    };
    return options;
  }

  const cli::ControllerCommand& command_;
  Process process_;
  Rng rng_;
  controllers::ControllerSet::Options options_;
  std::unique_ptr<host::RecordingRing> recording_;  // null: none
  ProcessServer* server_ = nullptr;
  ControllerPages* pages_ = nullptr;  // the server's
  const ElectionPart* election_ = nullptr;
  const Part* acting_ = nullptr;  // the controllers, while this process leads
};

}  // namespace

int run_controller(const cli::LogArgs& log, const cli::ControllerCommand& command) {
  warn_of_flags_without_effect(command.without_effect);
  warn_of_flags_without_effect(cli::flags_without_effect(command.controller));
  if (command.print_config) {
    write_stdout(yaml::to_text(cli::manager_configuration(command)));
    return cli::kExitOk;
  }
  if (const auto named = named_kubeconfigs(command.api); !named) {
    print_error(named.error());
    return cli::kExitUsage;
  }
  const auto refuse = [](const Error& error) {
    print_error(error);
    return cli::kExitUsage;
  };
  auto options = make_controller_options(command.controller);
  if (!options) return refuse(options.error());
  const auto enabled = parse_controllers(command.controllers);
  if (!enabled) return refuse(enabled.error());
  const bool taint_manager = options->enabled.taint_eviction;
  options->enabled = *enabled;
  options->enabled.taint_eviction = enabled->taint_eviction && taint_manager;
  options->write_rate = {static_cast<float>(command.kube_api_qps), command.kube_api_burst};
  const cli::LeaderElectionArgs& args = command.leader_election;
  if (const Outcome checked = client::LeaderElection::check({args.resource_namespace,
                                                             args.resource_name,
                                                             "any",
                                                             args.lease_duration,
                                                             args.renew_deadline,
                                                             args.retry_period,
                                                             {}});
      !checked) {
    return refuse(checked.error());
  }
  return ControllerProcess(log, command).run(*std::move(options));
}

}  // namespace spillway::apps
