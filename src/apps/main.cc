// The only binary: parses the command line and runs one subcommand.
#include "apps/commands/command_files.h"
#include "apps/commands/commands.h"
#include "cli/flags/command_line.h"

#include <cstdio>
#include <variant>

namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

int run(const spillway::cli::CommandLine& line) {
  namespace cli = spillway::cli;
  namespace apps = spillway::apps;
  return std::visit(
      Overloaded{[&](const cli::UpCommand& up) { return apps::run_up(line.log, up); },
                 [&](const cli::ApiserverCommand& server) { return apps::run_apiserver(line.log, server); },
                 [&](const cli::AgentCommand& agent) { return apps::run_agent(line.log, agent); },
                 [&](const cli::ControllerCommand& set) { return apps::run_controller(line.log, set); },
                 [&](const cli::SchedulerCommand& scheduler) { return apps::run_scheduler(line.log, scheduler); },
                 [&](const cli::DnsCommand& dns) { return apps::run_dns(line.log, dns); },
                 [&](const cli::ProxyCommand& proxy) { return apps::run_proxy(line.log, proxy); },
                 [&](const cli::HollowCommand& hollow) { return apps::run_hollow(line.log, hollow); },
                 [&](const cli::DemoCommand& demo) { return apps::run_demo(demo); },
                 [&](const cli::EndPodsCommand& end_pods) { return apps::run_end_pods(end_pods); },
                 [&](const cli::StressCommand& stress) { return apps::run_stress(stress); },
                 [&](const cli::LintCommand& lint) { return apps::run_lint(lint); },
                 [&](const cli::ExplainCommand& explain) { return apps::run_explain(explain); },
                 [&](const cli::TopCommand& top) { return apps::run_top(top); },
                 [&](const cli::WatchCommand& watch) { return apps::run_watch(watch); },
                 [&](const cli::ZonesCommand& zones) { return apps::run_zones(zones); },
                 [&](const cli::HoldCommand& hold) { return apps::run_hold(hold); },
                 [&](const cli::DoctorCommand& doctor) { return apps::run_doctor(doctor); },
                 [&](const cli::DashboardCommand& dashboard) { return apps::run_dashboard(line.log, dashboard); },
                 [&](const cli::RecordCommand& record) { return apps::run_record(record); },
                 [&](const cli::ReplayCommand& replay) { return apps::run_replay(replay); },
                 [&](const cli::AdviseCommand& advise) { return apps::run_advise(advise); },
                 [&](const cli::SimulateCommand& simulate) { return apps::run_simulate(simulate); },
                 [&](const cli::ImagesCommand& images) { return apps::run_images(images); },
                 [&](const cli::StoreCommand& store) { return apps::run_store(store); },
                 [&](const cli::SwarmCommand& swarm) { return apps::run_swarm(swarm); }},
      line.command);
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = spillway::apps::parse_with_files(argc, argv);
  if (const auto* early_exit = std::get_if<spillway::cli::EarlyExit>(&parsed)) {
    std::fputs(early_exit->text.c_str(), early_exit->exit_code == 0 ? stdout : stderr);
    return early_exit->exit_code;
  }
  return run(std::get<spillway::cli::CommandLine>(parsed));
}
