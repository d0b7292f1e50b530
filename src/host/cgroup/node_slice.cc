#include "host/cgroup/node_slice.h"

#include "base/bytes_text.h"
#include "host/cgroup/cgroup_kill.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/cgroup/memory_stat.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

constexpr std::string_view kLeaf = "spillway-agent";
constexpr Bytes kMemoryMin = mebibytes(16);
constexpr Duration kEmptySliceTimeout = seconds(10);
constexpr int kCreateTriesMax = 5;
constexpr std::string_view kHowToGetRights =
    "run it as root (sudo), or, on cgroup version 2, in a cgroup of your own: systemd-run --user --scope -p "
    "Delegate=yes "
    "spillway ...";

Outcome check_name(std::string_view what, const std::string& name) {
  const bool plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_';
  });
  if (name.empty() || name.size() > 200 || name.starts_with('.') || !plain)
    return invalid(what, "\"{}\" cannot name a cgroup; expected letters, digits, '-', '_' and '.'", name);
  return {};
}

Error explain(const Error& error) {
  if (error.code == ErrorCode::kForbidden)
    return Error{error.code, fmt::format("{}; cgroups cannot be written here: {}", error.message, kHowToGetRights),
                 error.at};
  return error;
}

/// The version 2 cgroup this process runs in, prepared to hold other cgroups: processes may only be in leaves, so this
/// process moves into one.
Result<CgroupDir> enter_own_leaf(const CgroupDir& root) {
  SPILLWAY_TRY(text, read_file("/proc/self/cgroup"));
  CgroupDir own;
  const CgroupDir* parent = &root;
  std::string path = parse_unified_path(text);
  const bool in_leaf =
      path.ends_with("/" + std::string(kLeaf));  // an earlier call has moved this process, or its parent, into the leaf
  if (in_leaf) path.resize(path.size() - kLeaf.size() - 1);
  if (path.empty() || path == "/" || path.contains("/.."))
    return make_error(ErrorCode::kForbidden, "no cgroup of its own");
  for (std::string_view rest = std::string_view(path).substr(1); !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    SPILLWAY_TRY(next, parent->open_child(std::string(name)));
    own = std::move(next);
    parent = &own;
  }
  if (!in_leaf) {
    SPILLWAY_TRY(leaf, own.create_child(std::string(kLeaf)));
    SPILLWAY_TRY_VOID(leaf.write(Controller::kMemory, "cgroup.procs", "0"));
  }
  const Outcome delegated = own.delegate_controllers();
  if (!delegated && delegated.error().code == ErrorCode::kConflict)
    return make_error(ErrorCode::kConflict, "{} holds other processes too: start spillway in a cgroup of its own: {}",
                      own.file_path(Controller::kMemory), kHowToGetRights);
  if (!delegated) return delegated.error();
  return own;
}

constexpr Duration kDeathMax = seconds(10);
constexpr std::chrono::milliseconds kDeathCheckInterval(100);

/// Processes that got SIGTERM: those that were in the cgroup both before and after their pidfd was opened.
std::vector<UniqueFd> terminate_all(const CgroupDir& cgroup) {
  std::vector<UniqueFd> terminated;
  const auto before = tree_pids(cgroup);
  if (!before) return terminated;
  std::vector<std::pair<pid_t, UniqueFd>> held;
  for (const pid_t pid : *before) {
    auto fd = open_pidfd(pid);
    if (fd) held.emplace_back(pid, *std::move(fd));
  }
  const auto after = tree_pids(cgroup);
  if (!after) return terminated;
  for (auto& [pid, fd] : held) {
    if (std::ranges::binary_search(*after, pid) && send_signal(fd.get(), SIGTERM)) terminated.push_back(std::move(fd));
  }
  return terminated;
}

/// Waits until all processes have ended, at most for `grace`.
void wait_for_all(std::vector<UniqueFd> processes, Duration grace) {
  for (Duration waited{}; !processes.empty() && waited < grace;) {
    std::vector<pollfd> polled;
    for (const UniqueFd& each : processes) polled.push_back({each.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), static_cast<int>(kDeathCheckInterval.count())) <= 0) {
      waited += kDeathCheckInterval;
      continue;
    }
    std::erase_if(processes, [&](const UniqueFd& each) {
      return std::ranges::any_of(polled,
                                 [&](const pollfd& found) { return found.fd == each.get() && found.revents != 0; });
    });
  }
}

Outcome end_node(const CgroupDir& instance, const std::string& name, Duration grace) {
  const auto node = instance.open_child(name);
  if (!node) return node.error().code == ErrorCode::kNotFound ? Outcome() : Outcome(node.error());
  if (const Outcome locked = node->lock(); !locked)
    return make_error(ErrorCode::kConflict, "{} is run by another process, and left as it is", node->path());
  if (!node->is_child_of(instance)) return {};  // another process has removed the cgroup; the name belongs to a new one
  if (!node->open_child(std::string(kSupervisorsFolder))) return {};
  if (const auto pods = node->open_child("kubepods")) wait_for_all(terminate_all(*pods), grace);
  return destroy_tree(instance, name, kDeathMax);
}

Result<Bytes> memory_of_machine() {
  SPILLWAY_TRY(text, read_file("/proc/meminfo"));
  SPILLWAY_TRY(machine, parse_meminfo(text));
  if (!machine.total_bytes) return invalid("/proc/meminfo", "MemTotal missing");
  return Bytes{static_cast<std::int64_t>(*machine.total_bytes)};
}

/// " (did you mean 256Mi?)" for 256; empty unless that would be a node of this machine.
std::string meant_mebibytes(Bytes memory, Bytes machine) {
  const std::int64_t number = memory.count();
  if (number < kMemoryMin.count() / mebibytes(1).count() || number > machine.count() / mebibytes(1).count()) return {};
  return fmt::format(" (did you mean {}Mi?)", number);
}

Outcome check_fits(Bytes memory, Bytes machine) {
  if (memory < kMemoryMin) {
    return invalid("--node-memory", "a node needs at least {}, got {}{}",
                   bytes_text(static_cast<double>(kMemoryMin.count())), bytes_text(static_cast<double>(memory.count())),
                   meant_mebibytes(memory, machine));
  }
  if (memory <= machine) return {};
  return invalid("--node-memory", "a node cannot have {} on a machine with {}",
                 bytes_text(static_cast<double>(memory.count())), bytes_text(static_cast<double>(machine.count())));
}

}  // namespace

Outcome check_node_memory(Bytes memory) {
  SPILLWAY_TRY(machine, memory_of_machine());
  return check_fits(memory, machine);
}

Result<CgroupDir> find_writable_root(const CgroupMounts& mounts) {
  SPILLWAY_TRY(root, CgroupDir::open_root(mounts));
  Outcome usable = root.delegate_controllers();
  if (usable) usable = root.check_writable();
  if (usable) return root;
  if (mounts.version == CgroupVersion::kV2) {
    Result<CgroupDir> own = enter_own_leaf(root);
    if (own) return own;
    if (own.error().code != ErrorCode::kForbidden) return explain(own.error());
  }
  return explain(usable.error());
}

const CgroupDir& NodeSlice::parent_of(api::QosClass qos) const {
  switch (qos) {
    case api::QosClass::kGuaranteed:
      return kubepods_;
    case api::QosClass::kBurstable:
      return burstable_;
    case api::QosClass::kBestEffort:
      return best_effort_;
  }
  return best_effort_;
}

Outcome NodeSlice::build_tree() {
  if (!is_host()) SPILLWAY_TRY_VOID(apply_limits(slice_, {.memory = options_.memory, .pids = options_.pids_max}));
  SPILLWAY_TRY_VOID(slice_.delegate_controllers());
  SPILLWAY_TRY(kubepods, slice_.create_child("kubepods"));
  // All pods together get no more memory than the node has, as the kubelet enforces node allocatable.
  SPILLWAY_TRY_VOID(apply_limits(kubepods, {.memory = memory_}));
  SPILLWAY_TRY_VOID(kubepods.delegate_controllers());
  SPILLWAY_TRY(burstable, kubepods.create_child("burstable"));
  SPILLWAY_TRY(best_effort, kubepods.create_child("besteffort"));
  SPILLWAY_TRY_VOID(burstable.delegate_controllers());
  SPILLWAY_TRY_VOID(best_effort.delegate_controllers());
  SPILLWAY_TRY_VOID(apply_limits(best_effort, {.cpu_shares = cpu_shares_of(0)}));
  kubepods_ = std::move(kubepods);
  burstable_ = std::move(burstable);
  best_effort_ = std::move(best_effort);
  return {};
}

Result<NodeSlice> NodeSlice::create(CgroupDir root, NodeSliceOptions options) {
  SPILLWAY_TRY_VOID(check_name("instance", options.instance));
  SPILLWAY_TRY_VOID(check_name("node", options.node));
  if (options.root == NodeRoot::kHost && (options.memory || options.pids_max))
    return invalid("node-memory", "the whole host has no limit of its own; leave it out or make the node a slice");
  if (options.root == NodeRoot::kSlice && (!options.memory || *options.memory < kMemoryMin))
    return invalid("node-memory", "a node that is a cgroup needs at least {} bytes of memory", kMemoryMin.count());
  SPILLWAY_TRY(machine_memory, memory_of_machine());
  if (options.memory) SPILLWAY_TRY_VOID(check_fits(*options.memory, machine_memory));

  NodeSlice slice;
  slice.options_ = std::move(options);
  slice.memory_ = slice.is_host() ? machine_memory : *slice.options_.memory;
  slice.root_ = std::move(root);
  if (slice.is_host()) {
    SPILLWAY_TRY(whole, slice.root_.hierarchy_root());
    slice.machine_ = std::move(whole);
  }
  const std::string folder = fmt::format("{}/{}", kNodesFolder, slice.options_.instance);
  for (int tries = 0;; ++tries) {
    Result<CgroupDir> instance = slice.root_.create_path(folder);
    // Another process may remove the empty folder above right after we made it.
    if (!instance && instance.error().code == ErrorCode::kNotFound && tries < kCreateTriesMax) continue;
    if (!instance) return explain(instance.error());
    const Outcome delegated = instance->delegate_controllers();
    if (!delegated) return explain(delegated.error());
    Result<CgroupDir> node = instance->create_child(slice.options_.node);
    if (!node) return explain(node.error());
    const Outcome locked = node->lock(slice.options_.lock_patience);
    if (!locked)
      return make_error(ErrorCode::kConflict, "node \"{}\" of instance \"{}\" is run by another process: {}",
                        slice.options_.node, slice.options_.instance, locked.error().text());
    slice.instance_ = *std::move(instance);
    slice.slice_ = *std::move(node);
    // Another process may have removed the cgroup between creation and lock.
    if (slice.slice_.is_child_of(slice.instance_)) break;
    if (tries == kCreateTriesMax)
      return make_error(ErrorCode::kConflict, "cgroup {} keeps disappearing", slice.slice_.path());
  }
  if (slice.options_.leftovers == Leftovers::kEnd) {
    SPILLWAY_TRY(leftovers, slice.slice_.children());
    SPILLWAY_TRY_VOID(kill_all(slice.slice_));
    for (const std::string& name : leftovers) SPILLWAY_TRY_VOID(destroy_tree(slice.slice_, name, kEmptySliceTimeout));
  }
  const Outcome built = slice.build_tree();
  if (!built) return explain(built.error());
  return slice;
}

Result<NodeSlice> NodeSlice::attach(CgroupDir root, KubeletTree tree) {
  SPILLWAY_TRY(text, read_file("/proc/meminfo"));
  SPILLWAY_TRY(machine, parse_meminfo(text));
  if (!machine.total_bytes) return invalid("/proc/meminfo", "MemTotal missing");
  NodeSlice slice;
  slice.options_.root = tree.memory ? NodeRoot::kSlice : NodeRoot::kHost;
  slice.options_.node = std::move(tree.node);
  slice.options_.memory = tree.memory;
  slice.memory_ = tree.memory.value_or(Bytes{static_cast<std::int64_t>(*machine.total_bytes)});
  SPILLWAY_TRY(kubepods, root.open_path(tree.kubepods));
  slice.kubepods_ = std::move(kubepods);
  SPILLWAY_TRY(whole, root.hierarchy_root());
  slice.machine_ = std::move(whole);
  if (tree.cgroup_root.find_first_not_of('/') == std::string::npos) {
    SPILLWAY_TRY(same, root.hierarchy_root());
    slice.slice_ = std::move(same);
  } else {
    SPILLWAY_TRY(below, root.open_path(tree.cgroup_root));
    slice.slice_ = std::move(below);
  }
  slice.root_ = std::move(root);
  return slice;
}

Result<NodeSlice> NodeSlice::open_slices(CgroupDir root, const std::string& node, cgroups::CgroupName kubepods,
                                         const LockPatience& patience) {
  NodeSlice slice;
  slice.options_ = {.root = NodeRoot::kHost, .node = node, .leftovers = Leftovers::kKeep, .lock_patience = patience};
  slice.driver_ = cgroups::CgroupDriver::kSystemd;
  slice.kubepods_name_ = std::move(kubepods);
  SPILLWAY_TRY(machine_memory, memory_of_machine());
  slice.memory_ = machine_memory;
  SPILLWAY_TRY(whole, root.hierarchy_root());
  slice.machine_ = std::move(whole);
  SPILLWAY_TRY(same, root.hierarchy_root());
  slice.slice_ = std::move(same);
  ignored(root.delegate_controllers(), "systemd enables the controllers that its units need");
  const auto open = [&](api::QosClass qos, CgroupDir& into) -> Outcome {
    SPILLWAY_TRY(path, cgroups::systemd_path(cgroups::class_name(slice.kubepods_name_, qos)));
    // systemd makes the cgroup in the hierarchies that it accounts in. The others of version 1 are made here.
    SPILLWAY_TRY(made, root.create_path(path));
    ignored(made.delegate_controllers(), "systemd enables the controllers that its units need");
    into = std::move(made);
    return {};
  };
  SPILLWAY_TRY_VOID(open(api::QosClass::kGuaranteed, slice.kubepods_));
  const Outcome locked = slice.kubepods_.lock(patience);
  if (!locked)
    return make_error(ErrorCode::kConflict, "the pods of this machine are run by another process: {}",
                      locked.error().text());
  SPILLWAY_TRY_VOID(open(api::QosClass::kBurstable, slice.burstable_));
  SPILLWAY_TRY_VOID(open(api::QosClass::kBestEffort, slice.best_effort_));
  slice.root_ = std::move(root);
  return slice;
}

Result<std::string> NodeSlice::pod_child(api::QosClass qos, const std::string& uid) const {
  if (driver_ == cgroups::CgroupDriver::kCgroupfs) return "pod" + uid;
  SPILLWAY_TRY(unit, pod_unit(qos, uid));
  return unit.name;
}

std::optional<std::string> NodeSlice::uid_of_child(api::QosClass qos, std::string_view child) const {
  return cgroups::uid_of_child(driver_, cgroups::class_name(kubepods_name_, qos), child);
}

Result<cgroups::SliceUnit> NodeSlice::class_unit(api::QosClass qos) const {
  return cgroups::slice_unit(cgroups::class_name(kubepods_name_, qos));
}

Result<cgroups::SliceUnit> NodeSlice::pod_unit(api::QosClass qos, const std::string& uid) const {
  SPILLWAY_TRY(name, cgroups::pod_name(kubepods_name_, qos, uid));
  return cgroups::slice_unit(name);
}

Outcome NodeSlice::remove() {
  if (!slice_ || !instance_) return {};
  SPILLWAY_TRY_VOID(destroy_tree(instance_, options_.node, kEmptySliceTimeout));
  const Result<CgroupDir> folder = root_.open_child(std::string(kNodesFolder));
  if (folder) ignored(folder->remove_child(options_.instance), "other nodes of the instance live on");
  ignored(root_.remove_child(std::string(kNodesFolder)), "other instances live on");
  slice_ = CgroupDir();
  return {};
}

Outcome end_left_nodes(const CgroupDir& root, const std::string& instance, Duration grace) {
  const auto folder = root.open_child(std::string(kNodesFolder));
  const auto nodes = folder ? folder->open_child(instance) : Result<CgroupDir>(folder.error());
  if (!nodes) return nodes.error().code == ErrorCode::kNotFound ? Outcome() : Outcome(nodes.error());
  SPILLWAY_TRY(names, nodes->children());
  Outcome worst;
  for (const std::string& name : names) {
    if (Outcome ended = end_node(*nodes, name, grace); !ended) worst = std::move(ended);
  }
  if (!worst) return worst;
  ignored(folder->remove_child(instance), "another program may have created it again");
  ignored(root.remove_child(std::string(kNodesFolder)), "other instances live on");
  return {};
}

}  // namespace spillway::host
