#include "apps/node/node_config.h"

#include "agent/companion/kubelet_settings.h"
#include "agent/config/config_refusals.h"
#include "agent/config/registration_config.h"
#include "agent/node/allocatable.h"
#include "agent/node/node_object.h"
#include "api/text/names.h"
#include "apps/node/credential_providers.h"
#include "apps/process/drop_in.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "base/file.h"
#include "host/cgroup/node_slice.h"
#include "host/observation/machine_info.h"
#include "yaml/yaml_document.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::apps {

namespace {

/// The flag that sets a configuration key: without a file, errors name the flag.
std::string flag_of(std::string_view key) {
  std::string flag = "--";
  for (const char c : key.substr(0, key.find('['))) {
    if (c >= 'A' && c <= 'Z') flag += '-';
    flag += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return flag;
}

/// Thresholds that are wrong by themselves: of the flags first, then of everything together.
Outcome check_meaning(const NodeConfig& config, const api::Json& flags) {
  if (const api::Json* hard = flags.find("evictionHard")) {
    const api::Json alone = api::Json::object({{"evictionHard", *hard}});
    if (const auto options = agent::options_of(agent::effective_config(alone, std::nullopt)); !options)
      return Error{ErrorCode::kInvalid, options.error().text(), flag_of("evictionHard")};
  }
  const std::vector<Error> refusals = agent::refusals_of(agent::effective_config(config.value, std::nullopt));
  return refusals.empty() ? Outcome() : Outcome(refusals.front());
}

/// Reserved cpu and memory of a node that is this machine, or has so much of its memory.
Outcome check_reservations(const agent::AgentOptions& options, std::optional<Bytes> memory) {
  const Bytes machine{::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE)};
  const api::ResourceList capacity{{"cpu", api::Quantity::of_units(::sysconf(_SC_NPROCESSORS_ONLN))},
                                   {"memory", api::Quantity::of_bytes(memory.value_or(machine))}};
  const auto reserved = agent::node_reservation(capacity, options, {});
  return reserved ? Outcome() : Outcome(reserved.error());
}

/// Parses a file into at least one document, perhaps an empty one.
Result<std::vector<yaml::Document>> yaml_documents(const std::string& file) {
  std::ifstream input(file == "-" ? "/dev/stdin" : file, std::ios::binary);
  const std::string name = file == "-" ? "standard input" : file;
  if (!input) return Error{ErrorCode::kNotFound, "cannot be opened", name};
  SPILLWAY_TRY(text, yaml::read_text(input, name));
  SPILLWAY_TRY(documents, yaml::parse_documents(name, text, yaml::RepeatedKeys::kLastCounts));
  if (documents.empty()) documents.emplace_back();
  return std::move(documents);
}

agent::ConfigDocument config_document(const std::string& file, yaml::Document parsed) {
  const auto find = [origins =
                         std::make_shared<const yaml::Origins>(std::move(parsed.origins))](std::string_view path) {
    const yaml::Origin* origin = origins->find(path);
    return origin == nullptr ? std::nullopt : std::optional(agent::ScalarOrigin{origin->line, origin->text});
  };
  agent::ConfigDocument made{.file = file, .value = std::move(parsed.value), .origins = find};
  for (yaml::RepeatedKey& each : parsed.repeated)
    made.repeated.push_back({each.line, each.first_line, std::move(each.key)});
  return made;
}

Outcome check_node_values(const cli::NodeArgs& args, const std::vector<std::string>& names,
                          const std::vector<std::string>& ips) {
  for (const std::string& name : names) {
    const std::vector<std::string> problems = api::dns1123_subdomain_errors(name);
    if (!problems.empty()) return invalid("--node-name", "\"{}\": {}", name, problems.front());
  }
  if (args.memory) SPILLWAY_TRY_VOID(host::check_node_memory(*args.memory));
  std::error_code error;
  if (!args.state_dir.empty() && std::filesystem::exists(args.state_dir, error) &&
      !std::filesystem::is_directory(args.state_dir, error)) {
    return invalid("--state-dir", "expected a directory, got \"{}\"", args.state_dir);
  }
  SPILLWAY_TRY_VOID(read_credential_providers(args));
  SPILLWAY_TRY(config, read_node_config(args.config));
  const api::Json effective = agent::effective_config(config.value, args.memory);
  if (const auto socket = agent::runtime_socket(effective); !socket) {
    return invalid("--container-runtime-endpoint", "{}", socket.error().message);
  }
  SPILLWAY_TRY_VOID(agent::image_socket(effective));
  SPILLWAY_TRY(options, agent::options_of(effective));
  SPILLWAY_TRY_VOID(check_reservations(options, args.memory));
  if (ips.empty()) return {};
  options.node_ips = ips;
  const agent::MachineInfo machine{.hostname = names.front(),
                                   .internal_ip = host::machine_address(),
                                   .addresses = host::machine_addresses(),
                                   .container_runtime_version = {}};
  const Outcome addresses = agent::check_addresses(options, machine);
  return addresses ? Outcome() : Outcome(invalid("--node-ip", "{}", addresses.error().message));
}

bool is_switched_on(const api::Json& effective, std::string_view key) {
  const api::Json* found = effective.find(key);
  return found != nullptr && found->if_bool().value_or(false);
}

struct KernelDefault {
  std::string_view name;
  std::string_view wanted;
};

/// The values that a kubelet writes at its start, or with protectKernelDefaults demands.
constexpr auto kKernelDefaults = std::to_array<KernelDefault>({{"vm/overcommit_memory", "1"},
                                                               {"vm/panic_on_oom", "0"},
                                                               {"kernel/panic", "10"},
                                                               {"kernel/panic_on_oops", "1"},
                                                               {"kernel/keys/root_maxkeys", "1000000"},
                                                               {"kernel/keys/root_maxbytes", "25000000"}});

std::string dotted(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '/', '.');
  return text;
}

Outcome check_kernel_defaults() {
  for (const KernelDefault& each : kKernelDefaults) {
    SPILLWAY_TRY(text, read_file(fmt::format("/proc/sys/{}", each.name)));
    const std::string found = text.substr(0, text.find_last_not_of(" \n") + 1);
    if (found == each.wanted) continue;
    return Error{ErrorCode::kForbidden,
                 fmt::format("protectKernelDefaults is true, and {} is {}: set it to {} (sysctl -w {}={})",
                             dotted(each.name), found, each.wanted, dotted(each.name), each.wanted),
                 "protectKernelDefaults"};
  }
  return {};
}

}  // namespace

bool NodeConfig::usable() const {
  return std::ranges::none_of(
      findings, [](const agent::ConfigFinding& each) { return each.kind == agent::ConfigFinding::Kind::kError; });
}

Result<agent::ConfigDocument> read_config_document(const std::string& file) {
  SPILLWAY_TRY(documents, yaml_documents(file));
  if (documents.size() > 1) return invalid(file, "expected one document, got {}", documents.size());
  return config_document(file, std::move(documents.front()));
}

Result<std::vector<agent::ConfigDocument>> read_config_documents(const std::string& file) {
  SPILLWAY_TRY(documents, yaml_documents(file));
  const auto is_other = [](const yaml::Document& each) {
    const std::string_view kind = each.value.string_at({"kind"});
    return each.value.is_null() || (!kind.empty() && kind != "KubeletConfiguration");
  };
  if (std::ranges::any_of(documents, std::not_fn(is_other))) std::erase_if(documents, is_other);
  std::vector<agent::ConfigDocument> made;
  for (yaml::Document& each : documents) made.push_back(config_document(file, std::move(each)));
  return made;
}

Result<NodeConfig> read_node_config(const cli::NodeConfigArgs& args) {
  SPILLWAY_TRY(files, configuration_files(args.file, args.directory));
  NodeConfig config{.value = api::Json::object(), .findings = {}};
  for (const std::string& file : files) {
    SPILLWAY_TRY(document, read_config_document(file));
    agent::CheckedConfig checked = agent::check_config(document);
    for (agent::ConfigFinding& finding : checked.findings) {
      if (args.strict && finding.kind == agent::ConfigFinding::Kind::kTolerated)
        finding.kind = agent::ConfigFinding::Kind::kError;
    }
    config.value = agent::merge_config(std::move(config.value), checked.value);
    std::ranges::move(checked.findings, std::back_inserter(config.findings));
  }
  config.value = agent::apply_flags(std::move(config.value), args.flags);
  return config;
}

bool check_node_config(const cli::NodeArgs& args) {
  const auto config = read_node_config(args.config);
  if (!config) {
    print_error(config.error());
    return false;
  }
  for (const agent::ConfigFinding& finding : config->findings) {
    const bool error = finding.kind == agent::ConfigFinding::Kind::kError;
    print_err("spillway: {}{}\n", error ? "" : "warning: ", finding.text());
  }
  if (!config->usable()) return false;
  Outcome meaning = check_meaning(*config, args.config.flags);
  if (meaning) meaning = agent::check_node_labels({args.labels.begin(), args.labels.end()});
  if (!meaning) print_error(meaning.error());
  return meaning.has_value();
}

bool check_nodes(const cli::NodeArgs& args, const std::vector<std::string>& names,
                 const std::vector<std::string>& ips) {
  if (!check_node_config(args)) return false;
  const Outcome checked = check_node_values(args, names, ips);
  if (!checked) print_error(checked.error());
  return checked.has_value();
}

int print_node_config(const cli::NodeArgs& args) {
  if (!check_node_config(args)) return cli::kExitUsage;
  const auto config = read_node_config(args.config);
  if (!config) return cli::kExitUsage;
  print_out("# --process-isolation={}\n", args.process_isolation);  // a KubeletConfiguration has no word for it
  write_stdout(yaml::to_text(agent::effective_config(config->value, args.memory)));
  return cli::kExitOk;
}

std::string swaps_in(std::string_view proc_swaps) {
  std::string names;
  bool is_heading = true;
  while (!proc_swaps.empty()) {
    const std::size_t end = std::min(proc_swaps.find('\n'), proc_swaps.size());
    const std::string_view line = proc_swaps.substr(0, end);
    proc_swaps.remove_prefix(std::min(end + 1, proc_swaps.size()));
    if (std::exchange(is_heading, false) || line.empty()) continue;
    if (!names.empty()) names += ", ";
    names += line.substr(0, line.find_first_of(" \t"));
  }
  return names;
}

Outcome check_machine(const api::Json& effective, int cgroup_version) {
  if (is_switched_on(effective, "failCgroupV1") && cgroup_version == 1) {
    return Error{ErrorCode::kForbidden,
                 "failCgroupV1 is true, and this machine has cgroup version 1: boot it with version 2, or leave the "
                 "member out",
                 "failCgroupV1"};
  }
  if (is_switched_on(effective, "failSwapOn")) {
    const Result<std::string> text = read_file("/proc/swaps");
    const std::string names = text ? swaps_in(*text) : std::string();
    if (!names.empty()) {
      return Error{ErrorCode::kForbidden,
                   fmt::format("failSwapOn is true, and swap is on ({}): turn it off (swapoff -a), or set failSwapOn "
                               "to false",
                               names),
                   "failSwapOn"};
    }
  }
  if (is_switched_on(effective, "protectKernelDefaults")) return check_kernel_defaults();
  return {};
}

}  // namespace spillway::apps
