#include "sim/hollow/hollow_fleet.h"

#include "sim/sim_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace spillway::sim {
namespace {

constexpr std::size_t kJournalEntriesMax = 100;
constexpr Duration kRegisteredCheck = milliseconds(250);
/// While memory grows, a fleet checks more seldom than a simulation if a machine is full: a pod may use that much more
/// for a moment.
constexpr Duration kMemoryCheck = milliseconds(250);

/// "100.64.3." of node 3.
std::string network_of(std::size_t number) {
  return fmt::format("100.{}.{}.", 64 + number / 256, number % 256);
}

bool says_ready(const api::Node& node) {
  const api::NodeCondition* const ready = api::find_condition(node.status.conditions, "Ready");
  return ready != nullptr && ready->status == "True";
}

/// The part of the pod's wishes that changes what its containers use. Containers must run.
void use_as_wished(SimHost& host, const std::string& uid, const HollowPodWishes& wishes) {
  if (wishes.memory) host.use_memory(uid, *wishes.memory, wishes.memory_rate);
  if (wishes.disk) host.use_disk(uid, *wishes.disk, wishes.disk_rate);
  if (wishes.processes) host.fork_processes(uid, *wishes.processes, 0);
  if (wishes.ending) host.set_ending(uid, *wishes.ending);
}

}  // namespace

struct HollowFleet::Node {
  MachineSpec machine;
  std::size_t number;  // index of its address
  SimJournal journal{{}, kJournalEntriesMax};
  std::unique_ptr<SimMachine> parts;  // null: down, or not begun
  HollowLink* link = nullptr;         // belongs to `parts`
  std::uint64_t starts = 0;
  HollowNodeWishes wishes;
  std::vector<std::string> problems;  // mistakes in its annotations
  std::optional<agent::EvictionOptions> eviction;
  std::optional<Cut> cut;
  std::optional<Link> worse;  // by the timeline, in place of the annotation's
  Duration clock_ahead{};
  bool registered = false;  // once
  bool ready = false;
};

HollowFleet::HollowFleet(VirtualTime& time, HollowOptions options)
    : time_(time),
      options_(std::move(options)),
      rng_(options_.seed),
      links_{.arrival = options_.arrival},
      control_(rng_.fork("control"),
               [this](const std::string& node, const api::StringMap& annotations) {
                 on_node(numbers_.at(node), annotations);
               }),
      control_link_(std::make_unique<HollowLink>(time_, links_, rng_.fork("link"), options_.connect({}))),
      control_driver_(time_, control_, *control_link_),
      timers_(time_) {
  for (std::size_t i = 0; i < options_.machines.size(); ++i) {
    MachineSpec& machine = options_.machines[i];
    machine.labels.insert_or_assign(std::string(kHollowLabel), "true");
    numbers_.emplace(machine.name, i);
    auto node = std::make_unique<Node>();
    node->machine = std::move(machine);
    node->number = options_.first_number + i;
    nodes_.push_back(std::move(node));
  }
  options_.machines.clear();
}

HollowFleet::~HollowFleet() {
  stop();
}

/// Each node has a slot of the rate, and begins at a random moment of it.
void HollowFleet::start(std::function<void()> done) {
  control_driver_.start();
  Rng jitter = rng_.fork("registrations");
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const double at_s = (static_cast<double>(i) + jitter.unit()) / options_.nodes_per_second;
    timers_.after(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(at_s)),
                  [this, i] { restart_node(i); });
  }
  await_registrations(std::move(done));
}

void HollowFleet::await_registrations(std::function<void()> done) {
  timers_.after(kRegisteredCheck, [this, done = std::move(done)]() mutable {
    bool all = true;
    for (const auto& node : nodes_) {
      if (!node->registered && node->parts) node->registered = node->parts->agent->registered();
      all = all && node->registered;
    }
    if (!all) return await_registrations(std::move(done));
    if (done) done();
  });
}

void HollowFleet::run_timeline(const std::vector<TimelineEvent>& timeline, const std::vector<MachineSpec>& names,
                               std::function<void(const TimelineEvent&, bool)> on_event) {
  actions_ = std::make_unique<MachineActions>(*this, names);
  for (const TimelineEvent& event : timeline) {
    for (std::int64_t i = 0; i < event.times; ++i) {
      const Duration at = event.at + event.every * i;
      timers_.after(at, [this, &event, on_event] {
        on_event(event, true);
        actions_->carry_out(event.action);
      });
      if (!event.lasts) continue;
      timers_.after(at + *event.lasts, [this, &event, on_event] {
        on_event(event, false);
        actions_->take_back(event.action);
      });
    }
  }
}

void HollowFleet::stop() {
  for (const auto& node : nodes_) {
    node->parts.reset();
    node->link = nullptr;
  }
}

void HollowFleet::delete_nodes(std::function<void(const HollowControl::Deleted&)> done) {
  stop();
  std::vector<std::string> names;
  for (const auto& node : nodes_) {
    control_.forget(node->machine.name);
    if (node->starts > 0) names.push_back(node->machine.name);
  }
  control([this, names = std::move(names), done = std::move(done)] { control_.remove(names, done); });
}

/// A step of the control engine; a step inside of another one follows it.
void HollowFleet::control(const std::function<void()>& step) {
  control_driver_.step([step](Now) { step(); });
}

HollowCounts HollowFleet::counts() const {
  HollowCounts counts{.nodes = nodes_.size(), .pods = pods_.size(), .requests = links_.requests};
  for (const auto& node : nodes_) {
    if (node->starts == 0) continue;
    ++counts.started;
    counts.registered += node->registered ? 1U : 0U;
    counts.ready += node->ready && node->parts && !node->cut ? 1U : 0U;
    counts.silent += node->cut ? 1U : 0U;
    counts.down += node->parts ? 0U : 1U;
  }
  for (const auto& [key, pod] : pods_) counts.pods_running += pod->status.phase == "Running" ? 1U : 0U;
  return counts;
}

SimHost* HollowFleet::machine(std::size_t node) {
  return nodes_[node]->parts ? nodes_[node]->parts->host.get() : nullptr;
}

SimHost* HollowFleet::machine_named(const std::string& node) {
  const auto found = numbers_.find(node);
  return found == numbers_.end() ? nullptr : machine(found->second);
}

void HollowFleet::for_each_pod(const std::function<bool(const api::Pod&)>& visit) const {
  for (const auto& [key, pod] : pods_) {
    if (!visit(*pod)) return;
  }
}

void HollowFleet::partition_node(std::size_t node, Cut cut) {
  Node& one = *nodes_[node];
  one.cut = one.cut && *one.cut != cut ? Cut::kBoth : cut;
  if (one.link != nullptr) one.link->cut(cut);
}

void HollowFleet::heal_node(std::size_t node) {
  Node& one = *nodes_[node];
  one.cut.reset();
  if (one.link != nullptr) one.link->heal();
}

void HollowFleet::crash_node(std::size_t node) {
  Node& one = *nodes_[node];
  one.link = nullptr;
  one.parts.reset();
}

void HollowFleet::restart_node(std::size_t node) {
  if (!nodes_[node]->parts) begin(node, nullptr);
}

void HollowFleet::restart_agent(std::size_t node, const agent::EvictionOptions& eviction) {
  Node& one = *nodes_[node];
  one.eviction = eviction;
  if (!one.parts) return;
  std::unique_ptr<SimHost> machine = std::move(one.parts->host);
  crash_node(node);
  begin(node, std::move(machine));
}

void HollowFleet::jump_clock_of(std::size_t node, Duration by) {
  nodes_[node]->clock_ahead += by;
  set_clock_of(*nodes_[node]);
}

void HollowFleet::set_clock_of(Node& node) {
  if (!node.parts) return;
  node.parts->host->set_clock(node.clock_ahead);
  node.parts->driver->set_clock(node.clock_ahead);
}

void HollowFleet::set_link_of(std::size_t node, const Link& link) {
  nodes_[node]->worse = link;
  if (nodes_[node]->link != nullptr) nodes_[node]->link->set_link(link);
}

void HollowFleet::restore_link_of(std::size_t node) {
  Node& one = *nodes_[node];
  one.worse.reset();
  if (one.link != nullptr) one.link->set_link({.latency = one.wishes.link_delay});
}

agent::AgentOptions HollowFleet::options_of(const Node& node) const {
  agent::AgentOptions options = options_.agent;
  if (node.eviction) options = with_evictions(std::move(options), *node.eviction);
  options.daemon_port = 0;
  agent::ObserveOptions& observe = options.eviction.observe;
  observe.interval_max = options_.observe_interval_max;
  // The memory of a machine at rest is read at that interval, however little of it is left.
  const double interval_s = std::chrono::duration<double>(options_.observe_interval_max).count();
  const auto floor = static_cast<std::int64_t>(static_cast<double>(node.machine.memory.count()) / interval_s / 64);
  observe.fall_floor_per_second = std::min(observe.fall_floor_per_second, Bytes{std::max<std::int64_t>(floor, 1)});
  return options;
}

void HollowFleet::begin(std::size_t index, std::unique_ptr<SimHost> machine) {
  Node& node = *nodes_[index];
  const std::string name = node.machine.name;
  if (++node.starts > 1)
    std::erase_if(pods_, [&name](const auto& entry) { return entry.second->spec.node_name == name; });
  const Rng rng = rng_.fork(fmt::format("{} {}", name, node.starts));
  auto link = std::make_unique<HollowLink>(time_, links_, rng.fork("link"), options_.connect(name));
  node.link = link.get();
  const std::string network = network_of(node.number);
  const auto adjust = [&network](agent::MachineInfo& info) {
    info.runs_images = true;
    info.shared_namespaces = {.ipc = false, .net = false};
    info.internal_ip = network + "1";
    info.os_image = "Hollow";
    info.container_runtime_version = "hollow://1";
    info.app_armor_error.clear();
  };
  node.parts = boot(time_, rng,
                    {.machine = node.machine,
                     .agent = options_of(node),
                     .sinks = {.log = options_.log, .journal = &node.journal},
                     .history = node.journal.entries(),
                     .transport = std::move(link),
                     .host = std::move(machine),
                     .adjust = adjust});
  SimMachine& parts = *node.parts;
  parts.host->check_memory_every(kMemoryCheck);
  parts.host->set_pod_network(network);
  parts.host->slow_disk(node.wishes.disk_delay);
  parts.host->keep_images(node.wishes.images, false);
  node.link->set_link(node.worse.value_or(Link{.latency = node.wishes.link_delay}));
  if (node.cut) node.link->cut(*node.cut);
  set_clock_of(node);
  parts.agent->listen(
      {.on_node =
           [this, index](const std::shared_ptr<const api::Node>& object) {
             nodes_[index]->ready = object && says_ready(*object);
             if (object) on_node(index, object->metadata.annotations);
           },
       .on_pod = [this, &node](const auto& before, const auto& after) { on_pod(node, before, after); }});
  parts.driver->after_step([this, &node, &parts] {
    for (agent::HostCommand& command : parts.agent->take_host_commands()) execute(node, std::move(command));
  });
  parts.driver->start();
}

void HollowFleet::execute(Node& node, agent::HostCommand command) {
  SimHost& host = *node.parts->host;
  const auto* const start = std::get_if<agent::StartContainer>(&command);
  if (start == nullptr) return host.execute(std::move(command));
  const std::string uid = start->uid;
  const std::string container = start->name;
  const std::shared_ptr<const api::Pod> pod = start->definition;
  host.execute(std::move(command));
  if (!pod) return;
  const HollowPodWishes wishes = read_pod_annotations(pod->metadata.annotations).wishes;
  use_as_wished(host, uid, wishes);
  if (wishes.runs_for) host.exit_after(uid, container, *wishes.runs_for, wishes.exit_code);
}

/// The same annotations may come from the agent, and from the reading of a node that cannot hear.
void HollowFleet::on_node(std::size_t index, const api::StringMap& annotations) {
  Node& node = *nodes_[index];
  ReadAnnotations<HollowNodeWishes> read = read_node_annotations(annotations);
  if (node.problems != read.problems) report("node", node.machine.name, read.problems);
  node.problems = std::move(read.problems);
  const HollowNodeWishes before = std::exchange(node.wishes, read.wishes);
  if (before == node.wishes) return;
  // Deferred, because the agent may end here and is inside a step.
  timers_.after(Duration::zero(), [this, index, before] { act_on(index, before); });
}

void HollowFleet::act_on(std::size_t index, const HollowNodeWishes& before) {
  Node& node = *nodes_[index];
  if (node.starts == 0) return;
  const HollowNodeWishes& wishes = node.wishes;
  if (node.parts) {
    node.parts->host->slow_disk(wishes.disk_delay);
    if (before.images != wishes.images) node.parts->host->keep_images(wishes.images, false);
    if (!node.worse) node.link->set_link({.latency = wishes.link_delay});
  }
  if (before.state == wishes.state) return;
  wishes.state == HollowState::kUp ? control_.forget(node.machine.name) : control_.observe(node.machine.name);
  if (before.state == HollowState::kSilent) heal_node(index);
  if (wishes.state == HollowState::kSilent) partition_node(index, Cut::kBoth);
  if (wishes.state == HollowState::kCrashed) crash_node(index);
  if (before.state == HollowState::kCrashed) restart_node(index);
}

void HollowFleet::on_pod(Node& node, const std::shared_ptr<const api::Pod>& before,
                         const std::shared_ptr<const api::Pod>& after) {
  if (!after) {
    pods_.erase(before->key());
    return;
  }
  pods_.insert_or_assign(after->key(), after);
  if (before && before->metadata.annotations == after->metadata.annotations) return;
  const ReadAnnotations<HollowPodWishes> read = read_pod_annotations(after->metadata.annotations);
  const ReadAnnotations<HollowPodWishes> old =
      before ? read_pod_annotations(before->metadata.annotations) : ReadAnnotations<HollowPodWishes>();
  if (read.problems != old.problems) report("pod", after->key().text(), read.problems);
  if (before && node.parts && read.wishes != old.wishes)
    use_as_wished(*node.parts->host, after->metadata.uid, read.wishes);
}

void HollowFleet::report(std::string_view kind, const std::string& name,
                         const std::vector<std::string>& problems) const {
  for (const std::string& each : problems)
    options_.log.warning("annotation without effect", {{"kind", kind}, {"name", name}, {"problem", each}});
}

}  // namespace spillway::sim
