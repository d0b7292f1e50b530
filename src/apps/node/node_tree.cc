#include "apps/node/node_tree.h"

#include "agent/companion/kubelet_settings.h"
#include "apps/node/node_options.h"
#include "host/cri/cri_calls.h"
#include "host/observation/machine_info.h"
#include "host/supervisor/supervisor_program.h"

#include <utility>

namespace spillway::apps {

namespace {

using cgroups::CgroupDriver;

/// Pods outlive this process if a container runtime holds them, or if their supervisors can.
host::Leftovers leftovers_of(const NodeSite& site, const NodePartOptions& options, const std::string& socket) {
  if (!socket.empty()) return host::Leftovers::kKeep;
  const Outcome possible = host::check_supervision();
  if (possible) return host::Leftovers::kKeep;
  site.process.log().warning("pods end with their agent", {{"node", options.name}, {"error", possible.error().text()}});
  return host::Leftovers::kEnd;
}

Result<CgroupDriver> driver_of(const NodeSite& site, const api::Json& configuration, const std::string& socket) {
  SPILLWAY_TRY(facts, driver_facts(configuration, socket));
  if (socket.empty()) {
    if (facts.configured == CgroupDriver::kSystemd)
      site.process.log().warning(
          "cgroupDriver systemd has no effect without a container runtime: pods that are processes "
          "have cgroups of this program");
    return CgroupDriver::kCgroupfs;
  }
  if (!facts.runtime)
    site.process.log().warning(
        "the container runtime does not report its cgroup driver",
        {{"configured", facts.configured ? to_string(*facts.configured) : "none"}, {"error", facts.problem}});
  return cgroups::choose_driver(facts);
}

Result<NodeTree> make_slices(const NodeSite& site, const NodePartOptions& options, const api::Json& configuration,
                             host::CgroupMounts mounts) {
  if (options.args.memory)
    return invalid("--node-memory",
                   "with cgroupDriver: systemd a node is the whole machine; leave --node-memory out, or use cgroupfs");
  SPILLWAY_TRY(root, host::CgroupDir::open_root(mounts));
  auto bus = std::make_unique<host::SystemdBus>();
  SPILLWAY_TRY_VOID(bus->connect());
  const cgroups::CgroupName kubepods =
      cgroups::kubepods_name(CgroupDriver::kSystemd, configuration.string_at({"cgroupRoot"}));
  for (const api::QosClass qos : {api::QosClass::kGuaranteed, api::QosClass::kBurstable, api::QosClass::kBestEffort}) {
    SPILLWAY_TRY(unit, cgroups::slice_unit(cgroups::class_name(kubepods, qos)));
    SPILLWAY_TRY_VOID(host::start_slice(*bus, unit, {}, mounts.version));
  }
  NodeTree tree;
  SPILLWAY_TRY(slice, host::NodeSlice::open_slices(std::move(root), options.name, kubepods, lock_patience()));
  tree.slice = std::make_unique<host::NodeSlice>(std::move(slice));
  tree.slices = std::make_unique<host::SliceUnits>(site.loop, mounts.version, std::move(bus));
  return tree;
}

}  // namespace

Result<cgroups::DriverFacts> driver_facts(const api::Json& configuration, const std::string& socket) {
  cgroups::DriverFacts facts{.socket = socket};
  const std::string_view text = configuration.string_at({"cgroupDriver"});
  facts.configured = cgroups::parse_cgroup_driver(text);
  if (!text.empty() && !facts.configured)
    return invalid("cgroupDriver", "unknown cgroup driver \"{}\"; expected cgroupfs or systemd", text);
  if (socket.empty()) return facts;
  const auto driver = host::ask_cgroup_driver(socket);
  if (driver) {
    facts.runtime = *driver;
  } else {
    facts.problem = driver.error().text();
  }
  return facts;
}

Result<NodeTree> make_node_tree(const NodeSite& site, const NodePartOptions& options) {
  SPILLWAY_TRY(wishes, make_node_setup(options.args, options.name, options.args.memory.value_or(Bytes{})));
  host::ExtraControllers extra;
  if (wishes.agent.managers.pins()) extra.push_back(host::Controller::kCpuset);
  if (!options.args.memory && host::has_huge_pages()) extra.push_back(host::Controller::kHugetlb);
  SPILLWAY_TRY(mounts, host::read_cgroup_mounts(extra));
  SPILLWAY_TRY(socket, agent::runtime_socket(wishes.configuration));
  SPILLWAY_TRY(driver, driver_of(site, wishes.configuration, socket));
  if (driver == CgroupDriver::kSystemd) return make_slices(site, options, wishes.configuration, std::move(mounts));
  if (wishes.configuration.string_at({"cgroupRoot"}).find_first_not_of('/') != std::string_view::npos)
    site.process.log().warning("cgroupRoot has no effect with the cgroup driver cgroupfs", {{"node", options.name}});
  SPILLWAY_TRY(root, host::find_writable_root(mounts));
  host::NodeSliceOptions wanted{.root = options.args.memory ? host::NodeRoot::kSlice : host::NodeRoot::kHost,
                                .instance = options.instance,
                                .node = options.name,
                                .memory = options.args.memory,
                                .pids_max = options.args.pids_max,
                                .leftovers = leftovers_of(site, options, socket),
                                .lock_patience = lock_patience()};
  SPILLWAY_TRY(slice, host::NodeSlice::create(std::move(root), std::move(wanted)));
  NodeTree tree;
  tree.slice = std::make_unique<host::NodeSlice>(std::move(slice));
  return tree;
}

}  // namespace spillway::apps
