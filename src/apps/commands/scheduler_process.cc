// `spillway scheduler`: places pods while it holds the lease, stands by while another scheduler does.
#include "apps/commands/commands.h"
#include "apps/controller/election_part.h"
#include "apps/controller/scheduler_part.h"
#include "apps/controller/scheduler_setup.h"
#include "apps/process/engine_metrics.h"
#include "apps/process/process.h"
#include "apps/view/remote.h"
#include "cli/config/scheduler_config.h"
#include "client/leader_election.h"
#include "runtime/entropy.h"

#include <functional>
#include <utility>

namespace spillway::apps {

namespace {

client::LeaderElection::Options election_options(const cli::LeaderElectionArgs& args) {
  return {args.resource_namespace, args.resource_name, {}, args.lease_duration,
          args.renew_deadline,     args.retry_period,  {}};
}

class SchedulerProcess {
 public:
  SchedulerProcess(const cli::LogArgs& log, const cli::ClusterArgs& api, const cli::LeaderElectionArgs& election,
                   SchedulerSetup setup)
      : process_(log), api_(api), election_args_(election), setup_(std::move(setup)), rng_(runtime::entropy()) {}

  int run() {
    // Nothing is connected by this: it tells a bad kubeconfig at once.
    if (const auto server = connect_remote(process_.loop(), api_); !server) {
      print_error(server.error());
      return cli::kExitUsage;
    }
    election_args_.enabled ? elect() : act(0);
    return process_.run();
  }

 private:
  std::unique_ptr<client::Transport> connect() {
    auto server = connect_remote(process_.loop(), api_);
    if (!server) {
      process_.fail(server.error());
      return nullptr;
    }
    return std::make_unique<CountedTransport>(std::move(server->transport), process_.metrics(), server->host);
  }

  void elect() {
    auto transport = connect();
    if (!transport) return;
    election_ = &process_.add(std::make_unique<ElectionPart>(
        process_, election_options(election_args_), rng_.fork("election"), std::move(transport),
        ElectionPart::Callbacks{.begin = [this](std::uint64_t term) { act(term); },
                                .end = [this](const std::string& /*why*/) { stand_by(); },
                                .stand_by = [](const std::string& /*leader*/) {}}));
  }

  void act(std::uint64_t term) {
    auto transport = connect();
    if (!transport) return;
    SchedulerFence fence;
    std::function<bool(Now)> may_act;
    if (election_ != nullptr) {
      fence = [this, term](auto engine) { return election_->fenced(std::move(engine), term); };
      may_act = [this, term](Now now) { return election_->may_act(term, now); };
    }
    MadeScheduler made = make_scheduler(setup_, rng_.fork("scheduler"), process_.log(), process_.metrics(), fence);
    acting_ = &process_.add(
        std::make_unique<SchedulerPart>(process_.loop(), std::move(made), std::move(transport), std::move(may_act)));
  }

  void stand_by() {
    if (acting_ != nullptr) process_.end(*std::exchange(acting_, nullptr));
  }

  Process process_;
  cli::ClusterArgs api_;
  cli::LeaderElectionArgs election_args_;
  SchedulerSetup setup_;
  Rng rng_;
  const ElectionPart* election_ = nullptr;  // null: nobody else is asked
  const Part* acting_ = nullptr;            // while it leads
};

}  // namespace

int run_scheduler(const cli::LogArgs& log, const cli::SchedulerCommand& command) {
  const auto refuse = [](const Error& error) {
    print_error(error);
    return cli::kExitUsage;
  };
  auto config = read_scheduler_file(command.config);
  if (!config) return refuse(config.error());
  const cli::LeaderElectionArgs& election = command.config.empty() ? command.leader_election : config->leader_election;
  client::LeaderElection::Options checked = election_options(election);
  checked.identity = "any";
  if (const Outcome fits = client::LeaderElection::check(checked); !fits) return refuse(fits.error());
  cli::ClusterArgs api = command.api;
  if (api.kubeconfig.empty()) api.kubeconfig = config->kubeconfig;
  if (const auto named = named_kubeconfigs(api); !named) return refuse(named.error());
  auto setup = make_scheduler_setup(*config, command.conditions_literally, command.preemption);
  if (!setup) return refuse(setup.error());
  return SchedulerProcess(log, api, election, *std::move(setup)).run();
}

}  // namespace spillway::apps
