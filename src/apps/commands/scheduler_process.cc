// `spillway scheduler`: places pods while it holds the lease, stands by while another scheduler does. Its server shows
// health, metrics and waiting pods in either case.
#include "apps/commands/commands.h"
#include "apps/controller/election_part.h"
#include "apps/controller/process_server.h"
#include "apps/controller/scheduler_pages.h"
#include "apps/controller/scheduler_part.h"
#include "apps/controller/scheduler_setup.h"
#include "apps/node/node_options.h"
#include "apps/process/engine_metrics.h"
#include "apps/process/process.h"
#include "apps/view/remote.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "cli/config/scheduler_config.h"
#include "cli/config/scheduler_document.h"
#include "client/leader_election.h"
#include "runtime/entropy.h"
#include "yaml/yaml_document.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <string>
#include <string_view>
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

  /// `configuration`: the document that its server shows.
  int run(const cli::ProcessServingArgs& serving, api::Json configuration) {
    // Makes no connection yet: reports a bad kubeconfig at once.
    auto server = connect_remote(process_.loop(), api_);
    if (!server) {
      print_error(server.error());
      return cli::kExitUsage;
    }
    auto pages = std::make_unique<SchedulerPages>(process_.loop());
    pages_ = pages.get();
    auto listening =
        ProcessServer::create(process_, serving, std::move(pages), std::move(server->transport), server->authority_pem);
    if (!listening) {
      print_error(listening.error());
      return cli::kExitFailure;
    }
    process_.add(*std::move(listening)).set_configuration(std::move(configuration));
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
                                .end = [this](const std::string& why) { step_down(why); },
                                .standby =
                                    [this](const std::string& leader) {
                                      pages_->set_scheduler(nullptr, "standing by: " + leader + " leads");
                                    }}));
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
    setup_.options.stopwatch = [this] { return process_.loop().now().mono; };
    MadeScheduler made = make_scheduler(setup_, rng_.fork("scheduler"), process_.log(), process_.metrics(), fence);
    acting_ = &process_.add(std::make_unique<SchedulerPart>(process_.loop(), std::move(made), std::move(transport),
                                                            std::move(may_act), pages_));
  }

  void step_down(const std::string& why) {
    if (acting_ != nullptr) process_.end(*std::exchange(acting_, nullptr));
    pages_->set_scheduler(nullptr, why);
  }

  Process process_;
  cli::ClusterArgs api_;
  cli::LeaderElectionArgs election_args_;
  SchedulerSetup setup_;
  Rng rng_;
  SchedulerPages* pages_ = nullptr;         // the server's
  const ElectionPart* election_ = nullptr;  // null: no election
  const Part* acting_ = nullptr;            // while this process leads
};

/// A file is replaced. A device, a pipe or a link, such as /dev/stdout, is written into: to replace it would remove it.
Outcome write_out(const std::string& path, std::string_view text) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return replace_file(path, text);
  const UniqueFd out(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY));
  if (!out) return errno_error(path, errno);
  return write_all(out.get(), text, path);
}

}  // namespace

int run_scheduler(const cli::LogArgs& log, const cli::SchedulerCommand& command) {
  const auto refuse = [](const Error& error) {
    print_error(error);
    return cli::kExitUsage;
  };
  warn_of_flags_without_effect(command.without_effect);
  auto config = read_scheduler_file(command.config);
  if (!config) return refuse(config.error());
  if (command.config.empty()) config->leader_election = command.leader_election;
  client::LeaderElection::Options checked = election_options(config->leader_election);
  checked.identity = "any";
  if (const Outcome fits = client::LeaderElection::check(checked); !fits) return refuse(fits.error());
  cli::ClusterArgs api = command.api;
  if (!api.kubeconfig.empty()) config->kubeconfig = api.kubeconfig;
  api.kubeconfig = config->kubeconfig;
  auto setup = make_scheduler_setup(*config, command.conditions_literally, command.preemption);
  if (!setup) return refuse(setup.error());
  if (!command.write_config_to.empty()) {
    const api::Json document = cli::scheduler_document(*config, cli::InlineKeys::kWritten);
    const Outcome written = write_out(command.write_config_to, yaml::to_text(document));
    if (!written) print_error(written.error());
    return written ? cli::kExitOk : cli::kExitFailure;
  }
  if (const auto named = named_kubeconfigs(api); !named) return refuse(named.error());
  setup->options.unschedulable_retry = command.unschedulable_max;
  return SchedulerProcess(log, api, config->leader_election, *std::move(setup))
      .run(command.serving,
           api::Json::object({{"componentconfig", cli::scheduler_document(*config, cli::InlineKeys::kLeftOut)}}));
}

}  // namespace spillway::apps
