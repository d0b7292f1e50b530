#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <string>

namespace spillway::cli {
namespace {

constexpr const char* kCallersByKubeconfig =
    "callers are authenticated and authorized with the kubeconfig's API server";
constexpr const char* kNoProfiles = "no profiles of the process are served";
constexpr const char* kUnlimited = "at most 64 bindings are in flight; there is no rate limit";

/// Flags of kube-scheduler 1.32 that are accepted, and reported as without effect.
constexpr StockFlag kStockFlags[] = {{"--authentication-kubeconfig", kCallersByKubeconfig},
                                     {"--authentication-skip-lookup", kCallersByKubeconfig},
                                     {"--authentication-tolerate-lookup-failure", kCallersByKubeconfig},
                                     {"--authorization-kubeconfig", kCallersByKubeconfig},
                                     {"--client-ca-file", kCallersByKubeconfig},
                                     {"--contention-profiling", kNoProfiles},
                                     {"--feature-gates", "there are no gates"},
                                     {"--kube-api-burst", kUnlimited},
                                     {"--kube-api-qps", kUnlimited},
                                     {"--profiling", kNoProfiles},
                                     {"--requestheader-client-ca-file", kCallersByKubeconfig}};

}  // namespace

void add_stock_scheduler_flags(CLI::App& app, SchedulerCommand& command) {
  add_without_effect(app, kStockFlags, command.without_effect);
}

}  // namespace spillway::cli
