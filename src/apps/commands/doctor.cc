// `spillway doctor`: checks this machine and the connection to a cluster, and prints each finding with its remedy.
#include "agent/companion/kubelet_settings.h"
#include "agent/config/config_lint.h"
#include "api/text/ip_address.h"
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/node/node_config.h"
#include "apps/node/node_options.h"
#include "apps/node/node_tree.h"
#include "apps/node/runtime_facts.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "apps/server/data_dir.h"
#include "apps/view/cluster_view.h"
#include "apps/view/remote.h"
#include "base/file.h"
#include "cli/text/value_text.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/node_slice.h"
#include "host/netfilter/rule_loader.h"
#include "host/network/bridge_network.h"
#include "host/observation/machine_info.h"
#include "policy/checkup/machine_checkup.h"
#include "runtime/clock.h"
#include "wire/net/socket.h"
#include "wire/tls/certificate_authority.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace spillway::apps {
namespace {

constexpr std::size_t kCertificatesMax = 100;

bool has_psi() {
  return read_file("/proc/pressure/memory").has_value();
}

/// The sum of the third column of /proc/swaps, which is in KiB.
std::optional<Bytes> swap_of(const std::string& table) {
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);  // the headings
  std::int64_t kibibytes = 0;
  while (std::getline(lines, line)) {
    std::istringstream columns(line);
    std::string file;
    std::string type;
    std::int64_t size = 0;
    if (!(columns >> file >> type >> size)) return std::nullopt;
    kibibytes += size;
  }
  return Bytes{kibibytes * 1024};
}

std::optional<bool> clock_is_in_step() {
  timex state{};
  const int status = ::adjtimex(&state);
  if (status < 0) return std::nullopt;
  return status != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

checkup::Port observe_port(std::uint16_t number, std::string what) {
  const auto socket = wire::listen_on("127.0.0.1", number);
  return {number, std::move(what), socket ? std::string() : socket.error().text()};
}

std::vector<checkup::Certificate> observe_certificates(const std::string& data_dir) {
  std::vector<checkup::Certificate> found;
  std::error_code gone;
  for (std::filesystem::recursive_directory_iterator at(data_dir + "/pki", gone), end; !gone && at != end;
       at.increment(gone)) {
    if (at->path().extension() != ".crt" || found.size() == kCertificatesMax) continue;
    const auto pem = read_file(at->path().string());
    const auto until = pem ? wire::end_of_certificate_pem(*pem) : Result<WallTime>(pem.error());
    found.push_back({at->path().string(), until ? std::optional(*until) : std::nullopt});
  }
  std::ranges::sort(found, {}, &checkup::Certificate::file);
  return found;
}

/// The file system of a directory, or of the nearest one above it that is there. `config`: the node's; empty: defaults.
std::optional<checkup::Disk> observe_disk(const api::Json& config, std::filesystem::path path) {
  std::error_code gone;
  while (!std::filesystem::exists(path, gone) && path.has_relative_path()) path = path.parent_path();
  struct statvfs fs{};
  if (::statvfs(path.c_str(), &fs) != 0) return std::nullopt;
  const auto bytes = [&](fsblkcnt_t blocks) {
    return Bytes{static_cast<std::int64_t>(blocks) * static_cast<std::int64_t>(fs.f_frsize)};
  };
  checkup::Disk disk{.path = path, .available = bytes(fs.f_bavail), .capacity = bytes(fs.f_blocks), .thresholds = {}};
  const api::Json effective = agent::effective_config(config, std::nullopt);
  const auto thresholds = eviction::parse_thresholds({.hard = agent::threshold_config_of(effective).hard});
  if (!thresholds) return disk;  // reported with the configuration
  for (const eviction::Threshold& each : *thresholds) {
    if (each.signal != eviction::Signal::kNodeFsAvailable && each.signal != eviction::Signal::kImageFsAvailable)
      continue;
    if (const auto amount = eviction::amount_of(each.value, disk.capacity.count())) {
      disk.thresholds.push_back(
          {fmt::format("{}<{}", to_string(each.signal),
                       effective.string_at({"evictionHard", std::string(to_string(each.signal))})),
           Bytes{amount->value()}});
    }
  }
  return disk;
}

std::vector<checkup::ConfigProblem> problems_of(const agent::ConfigDocument& document, const std::string& file) {
  struct sysinfo machine{};
  Bytes memory;
  if (::sysinfo(&machine) == 0) memory = Bytes{static_cast<std::int64_t>(machine.totalram) * machine.mem_unit};
  std::vector<checkup::ConfigProblem> problems;
  for (const agent::LintFinding& each : agent::lint_config(document, {.memory = memory, .disk = {}}).findings) {
    problems.push_back({each.line > 0 ? fmt::format("{}:{}", file, each.line) : file,
                        each.key.empty() ? each.what : fmt::format("{}: {}", each.key, each.what),
                        each.severity != agent::LintSeverity::kWarning});
  }
  return problems;
}

std::optional<checkup::Cluster> observe_cluster(const cli::ClusterArgs& args) {
  const auto config = find_kubeconfig(args);
  if (!config) {
    if (args.kubeconfig.empty()) return std::nullopt;
    return checkup::Cluster{.server = args.kubeconfig, .problem = config.error().text()};
  }
  catch_interrupts();
  runtime::Loop loop;
  auto remote = connect_remote(loop, *config);
  if (!remote) return checkup::Cluster{.server = "kubeconfig", .problem = remote.error().text()};
  checkup::Cluster cluster{.server = remote->host};
  ClusterView view(loop, std::move(remote->transport));
  const auto version = view.get("/version");
  if (!version) {
    cluster.problem = version.error().text();
    return cluster;
  }
  cluster.version = version->string_at({"gitVersion"});
  cluster.lists_nodes = view.get("/api/v1/nodes?limit=1").has_value();
  return cluster;
}

/// Empty: nothing is wrong.
std::string problem_of(const Outcome& checked) {
  return checked ? std::string() : checked.error().text();
}

checkup::Network check_network() {
  const char* const path = std::getenv("PATH");
  checkup::Network network{
      .pods = problem_of(host::check_bridge_network(host::plugin_directories({}), path == nullptr ? "" : path)),
      .services = problem_of(host::check_netfilter())};
  const auto address = api::parse_ip(host::machine_address());
  if (!network.services.empty()) {
    network.names = "pods do not reach a DNS server without a proxy";
  } else if (!address || address->is_loopback()) {
    network.names = "this machine has no address but loopback";
  }
  return network;
}

std::optional<checkup::ContainerRuntime> observe_runtime(const api::Json& configuration) {
  const auto socket = agent::runtime_socket(configuration);
  if (!socket) return checkup::ContainerRuntime{.problem = socket.error().text()};
  if (socket->empty()) return std::nullopt;
  checkup::ContainerRuntime found{.socket = *socket};
  const auto facts = driver_facts(configuration, *socket);
  if (!facts) {
    found.problem = facts.error().text();
    return found;
  }
  const auto driver = cgroups::choose_driver(*facts);
  found.problem = driver ? facts->problem : driver.error().text();
  if (driver && facts->runtime) found.driver = to_string(*driver);
  return found;
}

Result<checkup::MachineFacts> observe_machine(const cli::DoctorCommand& command) {
  checkup::MachineFacts facts{
      .is_root = ::geteuid() == 0, .has_psi = has_psi(), .clock_is_in_step = clock_is_in_step()};
  agent::ConfigDocument document;
  if (!command.config.empty()) {
    SPILLWAY_TRY(read, read_config_document(command.config));
    document = std::move(read);
    facts.config = problems_of(document, command.config);
  }
  facts.images = read_runtime_facts({}, std::string(document.value.string_at({"containerRuntimeEndpoint"})));
  facts.disk = observe_disk(document.value, node_state_dir({}, resolve_data_dir(command.data_dir), ""));
  if (const auto mounts = host::read_cgroup_mounts()) {
    facts.cgroup_version = mounts->version == host::CgroupVersion::kV2 ? 2 : 1;
    if (const auto root = host::find_writable_root(*mounts); !root) facts.cgroup_problem = root.error().text();
  }
  if (const auto swaps = read_file("/proc/swaps")) facts.swap = swap_of(*swaps);
  facts.network = check_network();
  facts.ports = {observe_port(command.port, "the API server"), observe_port(command.node_port, "a node's agent")};
  facts.certificates = observe_certificates(resolve_data_dir(command.data_dir));
  facts.runtime = observe_runtime(document.value);
  facts.cluster = observe_cluster(command.api);
  return facts;
}

std::string_view paint_of(checkup::Level level) {
  switch (level) {
    case checkup::Level::kFine:
      return "\x1b[32m";
    case checkup::Level::kWarning:
      return "\x1b[33m";
    case checkup::Level::kProblem:
      return "\x1b[31m";
  }
  return "";
}

void print_table(const std::vector<checkup::Finding>& findings, bool colour) {
  std::size_t width = 0;
  for (const checkup::Finding& each : findings) width = std::max(width, each.subject.size());
  const std::string indent(width + 11, ' ');
  for (const checkup::Finding& each : findings) {
    const std::string what = cli::wrapped(each.what, indent, screen_width());
    print_out("{}{:<9}{}{:<{}}  {}", colour ? paint_of(each.level) : "", checkup::to_string(each.level),
              colour ? "\x1b[0m" : "", each.subject, width, what.substr(indent.size()));
    if (!each.fix.empty()) print_out("{}→ {}\n", indent, each.fix);
  }
  const auto counted = [&findings](checkup::Level level, std::string_view noun) {
    const auto count = std::ranges::count(findings, level, &checkup::Finding::level);
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  print_out("\n{} checks: {} ok, {}, {}.\n", findings.size(),
            std::ranges::count(findings, checkup::Level::kFine, &checkup::Finding::level),
            counted(checkup::Level::kWarning, "warning"), counted(checkup::Level::kProblem, "problem"));
}

api::Json document_of(const std::vector<checkup::Finding>& findings) {
  api::Json list = api::Json::array();
  for (const checkup::Finding& each : findings) {
    api::Json entry = api::Json::object(
        {{"level", std::string(checkup::to_string(each.level))}, {"subject", each.subject}, {"what", each.what}});
    if (!each.fix.empty()) entry["mend"] = each.fix;
    list.if_array()->push_back(std::move(entry));
  }
  return api::Json::object({{"findings", std::move(list)}});
}

}  // namespace

int run_doctor(const cli::DoctorCommand& command) {
  const auto facts = observe_machine(command);
  if (!facts) {
    print_error(facts.error());
    return cli::kExitUsage;
  }
  const std::vector<checkup::Finding> findings = checkup::examine(*facts, runtime::RealClock::read().wall);
  if (cli::is_document(command.output)) {
    print_answer(document_of(findings), command.output);
  } else {
    print_table(findings, shows_colour(command.colour, STDOUT_FILENO));
  }
  switch (checkup::worst_of(findings)) {
    case checkup::Level::kFine:
      return cli::kExitOk;
    case checkup::Level::kWarning:
      return cli::kExitWarnings;
    case checkup::Level::kProblem:
      return cli::kExitNegative;
  }
  return cli::kExitNegative;
}

}  // namespace spillway::apps
