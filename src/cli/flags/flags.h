// Flags and groups of flags that several commands have, and how their text is read. Thread: main.
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "cli/flags/command_line.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace spillway::cli {

/// Takes the text of a flag; its error becomes the mistake that is reported.
using Take = std::function<Outcome(const std::string&)>;

/// `type` and `shown_default` are for the help; an empty default is not shown.
CLI::Option* add_taken(CLI::App& app, const std::string& flag, const Take& take, const std::string& help,
                       const std::string& type, const std::string& shown_default);

/// Adds a flag with a parser of our own: text → Result<T>.
template <typename T, typename Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& flag, T& into, Parse parse, const std::string& help,
                        const std::string& type, const std::string& shown_default) {
  return add_taken(
      app, flag,
      [&into, parse](const std::string& text) -> Outcome {
        SPILLWAY_TRY(parsed, parse(text));
        into = std::move(parsed);
        return {};
      },
      help, type, shown_default);
}

// kInvalid: the expected form, and the text that was given.
Result<Duration> parse_positive_duration(const std::string& text);
Result<Duration> parse_duration_from_zero(const std::string& text);
Result<std::optional<Duration>> parse_optional_duration(const std::string& text);
Result<Bytes> parse_bytes(const std::string& text);
Result<std::optional<Bytes>> parse_optional_bytes(const std::string& text);
Result<std::string> parse_address(const std::string& text);
Result<std::uint16_t> parse_port(const std::string& text);
/// "ADDRESS:PORT", "[ADDRESS]:PORT"; "0" and "": none.
Result<std::string> parse_pages_address(const std::string& text);
/// "on" or "off".
Result<bool> parse_switch(const std::string& text);

CLI::Option* add_duration(CLI::App& app, const std::string& flag, Duration& into, const std::string& help);
/// --kubeconfig, --context, --cluster, --user of a process that serves a cluster.
void add_api(CLI::App& app, ClusterArgs& args);
/// Flags of the DNS server that both of its commands have. `prefix`: of the flags' names behind "--", "" or "dns-".
/// `shown_listen`: the default of the place where it listens, for the help.
void add_dns(CLI::App& app, DnsArgs& args, const std::string& prefix, const std::string& shown_listen);
void add_log(CLI::App& app, LogArgs& args);
void add_serving(CLI::App& app, ServingArgs& args);
/// --etcd-servers, and how to reach them. check_etcd() after they are parsed.
void add_etcd(CLI::App& app, EtcdArgs& args);
/// As above, without --etcd-servers.
void add_etcd_access(CLI::App& app, EtcdArgs& args);
/// Throws CLI::ValidationError.
void check_etcd(const EtcdArgs& args);
/// The flag exists, and every use of it is refused: why.
void refuse_etcd_overrides(CLI::App& app, const std::string& why);
void add_node(CLI::App& app, NodeArgs& args);
/// Flags of a node that hollow nodes have as well: labels, taints, the number of pods, hard thresholds.
void add_hollow_node(CLI::App& app, HollowCommand& command);

/// A flag of upstream's and why it changes nothing here. Both texts are constants.
struct StockFlag {
  const char* flag;
  const char* why;
};

/// Each is taken, with or without a value, is not in the help, and is noted in `given`.
void add_without_effect(CLI::App& app, std::span<const StockFlag> flags, std::vector<FlagWithoutEffect>& given);
/// Flags of a kubelet that `spillway agent` has no words of its own for: they set a member of the KubeletConfiguration,
/// or are taken with a warning, so that its command line is taken as it is.
void add_kubelet_flags(CLI::App& app, AgentCommand& command);
/// Flags of kube-controller-manager that change little or nothing here, so that its command line is taken as it is.
void add_manager_flags(CLI::App& app, ControllerCommand& command);
void add_process_serving(CLI::App& app, ProcessServingArgs& args);
/// Flags of kube-scheduler for authentication, authorization, profiling, rates and gates, which change nothing here.
void add_stock_scheduler_flags(CLI::App& app, SchedulerCommand& command);
void add_controller_target(CLI::App& app, ControllerTargetArgs& args);
/// As above, for a command that finds a kubeconfig by itself.
void add_client_api(CLI::App& app, ClusterArgs& args);
void add_controller(CLI::App& app, ControllerArgs& args);
void add_leader_election(CLI::App& app, LeaderElectionArgs& args);
/// --recording-max-size; `what`: the recorded thing, for the help.
void add_recording_size(CLI::App& app, Bytes& size, const std::string& what);
void add_output(CLI::App& app, OutputFormat& output);
/// As above, for a command whose table has a wide form.
void add_table_output(CLI::App& app, OutputFormat& output);
void add_colour(CLI::App& app, Colour& colour);

}  // namespace spillway::cli
