// The subcommands. Every function returns an exit code (cli/flags/command_line.h) after printing its errors.
#pragma once

#include "cli/flags/command_line.h"

namespace spillway::apps {

int run_up(const cli::LogArgs& log, const cli::UpCommand& command);
int run_apiserver(const cli::LogArgs& log, const cli::ApiserverCommand& command);
int run_agent(const cli::LogArgs& log, const cli::AgentCommand& command);
/// `agent --companion`.
int run_companion(const cli::LogArgs& log, const cli::AgentCommand& command);
int run_controller(const cli::LogArgs& log, const cli::ControllerCommand& command);
int run_scheduler(const cli::LogArgs& log, const cli::SchedulerCommand& command);
int run_dns(const cli::LogArgs& log, const cli::DnsCommand& command);
int run_proxy(const cli::LogArgs& log, const cli::ProxyCommand& command);
/// Nodes without machines.
int run_hollow(const cli::LogArgs& log, const cli::HollowCommand& command);
int run_lint(const cli::LintCommand& command);
/// Exit codes: 0 nothing is in the way, 1 something is, 4 warnings only.
int run_doctor(const cli::DoctorCommand& command);
int run_demo(const cli::DemoCommand& command);
int run_top(const cli::TopCommand& command);
int run_watch(const cli::WatchCommand& command);
int run_zones(const cli::ZonesCommand& command);
int run_dashboard(const cli::LogArgs& log, const cli::DashboardCommand& command);
int run_hold(const cli::HoldCommand& command);
/// Explains decisions. kExitNegative: no decision about the object is known.
int run_explain(const cli::ExplainCommand& command);
int run_record(const cli::RecordCommand& command);
int run_replay(const cli::ReplayCommand& command);
/// Runs scenarios under several settings and prints what each costs.
int run_advise(const cli::AdviseCommand& command);
int run_simulate(const cli::SimulateCommand& command);
/// `store backup | restore | check | defrag`.
int run_store(const cli::StoreCommand& command);
int run_swarm(const cli::SwarmCommand& command);
/// Allocates and touches memory at a rate, holds it, and ends by itself.
int run_images(const cli::ImagesCommand& command);
int run_end_pods(const cli::EndPodsCommand& command);
int run_stress(const cli::StressCommand& command);

}  // namespace spillway::apps
