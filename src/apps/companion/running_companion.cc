#include "apps/companion/running_companion.h"

#include "agent/contract/stats_age.h"
#include "agent/serving/summary_page.h"
#include "apps/process/recording.h"
#include "base/rng.h"
#include "client/shadow_engine.h"
#include "host/disk/fs_probe.h"
#include "host/kernel/resident_memory.h"
#include "host/observation/machine_info.h"
#include "policy/eviction/memory_estimate.h"
#include "runtime/entropy.h"

#include <utility>

namespace spillway::apps {
namespace {

bool is_shadow(const CompanionPartOptions& options) {
  return options.args.shadow;
}

/// The total that a percentage of allocatableMemory.available refers to: the limit of all pods together, else all
/// memory.
Bytes pods_limit(const host::NodeSlice& slice) {
  const bool v1 = slice.kubepods().version() == host::CgroupVersion::kV1;
  const auto text = slice.kubepods().read(host::Controller::kMemory, v1 ? "memory.limit_in_bytes" : "memory.max");
  const auto limit = text ? host::parse_number(*text) : std::nullopt;
  if (!limit || *limit > static_cast<std::uint64_t>(slice.memory().count())) return slice.memory();
  return Bytes{static_cast<std::int64_t>(*limit)};
}

/// The totals that thresholds in percent refer to.
Result<eviction::Capacities> capacities_of(const CompanionPartOptions& options, const host::NodeSlice& slice,
                                           const agent::MachineInfo& machine) {
  eviction::Capacities capacities{{eviction::Signal::kMemoryAvailable, slice.memory().count()},
                                  {eviction::Signal::kAllocatableMemoryAvailable, pods_limit(slice).count()},
                                  {eviction::Signal::kPidAvailable, machine.pids_max}};
  if (agent::disks_of(options.own_config) != agent::Disks::kWatched) return capacities;
  const Result<api::FsStats> node_fs = host::read_fs(options.args.root_dir);
  if (!node_fs) {
    return invalid("--root-dir", "{}; nodefs is the file system of the kubelet's directory", node_fs.error().text());
  }
  capacities[eviction::Signal::kNodeFsAvailable] = static_cast<std::int64_t>(*node_fs->capacity_bytes);
  capacities[eviction::Signal::kNodeFsInodesFree] = static_cast<std::int64_t>(*node_fs->inodes);
  return capacities;
}

api::Json state_of(Process& process, const agent::Companion& companion, const host::ForeignRuntime& runtime) {
  api::Json state = companion.state();
  if (const auto summary = companion.last_summary()) {
    api::Json& ages = state["statsAgeSeconds"] = api::Json::object();
    for (const agent::StatsAge& each : agent::ages_of(*summary, process.loop().now().wall)) {
      ages[each.part] = each.seconds;
    }
  }
  if (const std::string problem = runtime.storage_problem(); !problem.empty()) state["storageProblem"] = problem;
  return state;
}

std::map<std::string, CompanionPages::Page> pages_of(Process& process, const agent::Companion& companion,
                                                     host::ForeignRuntime& runtime) {
  const std::string json = "application/json";
  const std::string text = "text/plain; version=0.0.4; charset=utf-8";
  const auto page = CompanionPages::text;
  return {{"/metrics", page(text, [&process] { return process.metrics().text(); })},
          {"/healthz", page("text/plain; charset=utf-8", [] { return std::string("ok"); })},
          {"/stats/summary",
           [&runtime](const api::Target& target) { return agent::summary_page(runtime.observe_now(), target); }},
          {"/debug/spillway", page(json, [&process, &companion,
                                          &runtime] { return api::to_text(state_of(process, companion, runtime)); })},
          {"/debug/spillway/decisions",
           page(json, [&process, &companion] { return api::to_text(companion.decisions(process.loop().now())); })}};
}

}  // namespace

std::string thresholds_text(const eviction::ThresholdConfig& config) {
  std::string text;
  const auto parsed = eviction::parse_thresholds(config);
  if (!parsed) return text;
  for (const eviction::Threshold& threshold : *parsed) {
    text += (text.empty() ? "" : ",") + eviction::text_of(threshold);
  }
  return text;
}

Result<std::unique_ptr<RunningCompanion>> RunningCompanion::create(Process& process,
                                                                   const CompanionPartOptions& options,
                                                                   client::Transport& api,
                                                                   const agent::KubeletSettings* settings) {
  SPILLWAY_TRY(eviction, agent::companion_eviction(options.own_config, settings));
  eviction.memory_watch = options.memory_watch;
  Parts parts;
  SPILLWAY_TRY_VOID(attach(process, options, settings, parts));
  SPILLWAY_TRY(machine, host::read_machine_info(*parts.slice, options.state_dir));
  machine.hostname = options.name;
  SPILLWAY_TRY(capacities, capacities_of(options, *parts.slice, machine));
  parts.capacities = std::move(capacities);
  if (!is_shadow(options)) {
    SPILLWAY_TRY_VOID(agent::check_clearance(eviction.thresholds, *settings, parts.capacities));
  }
  if (const auto estimator = eviction.memory_watch.estimator; estimator != eviction::MemoryEstimator::kWorkingSet) {
    process.log().warning("memory.available is defined differently by the kubelet: its thresholds may be met first",
                          {{"estimator", to_string(estimator)}, {"kubelets_estimator", "workingset"}});
  }
  const std::string thresholds = thresholds_text(eviction.thresholds);
  SPILLWAY_TRY_VOID(make_engine(process, options, api, std::move(eviction), std::move(machine), parts));
  if (!options.args.pages_address.empty()) {
    SPILLWAY_TRY(served, CompanionPages::create(process.loop(), process.log(), options.args.pages_address,
                                                pages_of(process, *parts.companion, *parts.runtime)));
    parts.pages = std::move(served);
  }
  process.log().info("companion running", {{"node", options.name},
                                           {"mode", is_shadow(options) ? "shadow" : "acting"},
                                           {"thresholds", thresholds},
                                           {"cgroup_driver", to_string(parts.runtime->driver())},
                                           {"kubepods", parts.slice->kubepods().path()},
                                           {"memory_bytes", parts.slice->memory().count()},
                                           {"pages_port", parts.pages ? parts.pages->port() : 0}});
  parts.driver->start();
  return std::unique_ptr<RunningCompanion>(new RunningCompanion(process, std::move(parts)));  // NOLINT: private
}

Outcome RunningCompanion::attach(Process& process, const CompanionPartOptions& options,
                                 const agent::KubeletSettings* settings, Parts& parts) {
  parts.events = std::make_unique<HostEvents>();
  SPILLWAY_TRY(mounts, host::read_cgroup_mounts());
  SPILLWAY_TRY(root, host::CgroupDir::open_root(mounts));
  parts.root = std::make_unique<host::CgroupDir>(std::move(root));
  SPILLWAY_TRY(socket, agent::runtime_socket(options.own_config));
  const std::string cgroup_root = settings == nullptr ? std::string() : settings->cgroup_root;
  SPILLWAY_TRY(found, host::detect_driver(*parts.root, cgroup_root,
                                          settings == nullptr ? agent::CgroupDriver::kSystemd : settings->driver));
  SPILLWAY_TRY(whole, parts.root->hierarchy_root());
  const std::string kubepods = agent::kubepods_cgroup(found, cgroup_root);
  SPILLWAY_TRY(slice, host::NodeSlice::attach(std::move(whole), {.node = options.name,
                                                                 .cgroup_root = kubepods.substr(0, kubepods.rfind('/')),
                                                                 .kubepods = kubepods,
                                                                 .memory = options.memory}));
  parts.slice = std::make_unique<host::NodeSlice>(std::move(slice));
  parts.runtime = std::make_unique<host::ForeignRuntime>(
      process.loop(), *parts.root, *parts.slice, *parts.events, process.log(),
      host::ForeignRuntime::Options{
          .driver = found,
          .cgroup_root = cgroup_root,
          .node_directory = options.args.root_dir,
          .log_directory = (settings == nullptr ? agent::KubeletSettings{} : *settings).log_directory,
          .runtime_socket = std::move(socket),
          .signals = is_shadow(options) ? host::Signals::kDryRun : host::Signals::kSent});
  return {};
}

Outcome RunningCompanion::make_engine(Process& process, const CompanionPartOptions& options, client::Transport& api,
                                      agent::EvictionOptions eviction, agent::MachineInfo machine, Parts& parts) {
  SPILLWAY_TRY(file, host::JournalFile::open(options.state_dir + "/journal.jsonl", process.log()));
  parts.journal = std::move(file);
  if (process.tracer() != nullptr)
    parts.trace = std::make_unique<agent::EvictionTrace>(*parts.journal, *process.tracer());
  parts.recording = open_recording(process, options.state_dir, options.recording_max);
  SPILLWAY_TRY(history, parts.journal->read());
  host::set_blind_zones(*parts.slice, eviction);
  if (!is_shadow(options)) {
    SPILLWAY_TRY(reaction, host::MemoryReaction::create(
                               process.loop(), *parts.slice,
                               {.receiver = *parts.events,
                                .find_target = [runtime = parts.runtime.get()](
                                                   const std::string& uid) { return runtime->find_target(uid); },
                                .journal = parts.journal.get(),
                                .memory_watch = eviction.memory_watch},
                               process.log()));
    parts.reaction = std::move(reaction);
    parts.runtime->listen([reaction = parts.reaction.get()] { reaction->report(); },
                          [reaction = parts.reaction.get()] { reaction->refresh_targets(); });
    if (host::protect_process() == host::MemoryLock::kNotAllowed)
      process.log().info("memory not locked: no right to (CAP_IPC_LOCK)");
  }
  agent::Journal* const journal = parts.trace ? static_cast<agent::Journal*>(parts.trace.get()) : parts.journal.get();
  const auto consequence = is_shadow(options) ? agent::Consequence::kShadow : agent::Consequence::kActs;
  SPILLWAY_TRY(
      companion,
      agent::Companion::create(
          {.node_name = options.name,
           .eviction = std::move(eviction),
           .consequence = consequence,
           .source = options.args.pods_from_kubelet ? agent::PodSource::kKubelet : agent::PodSource::kApiServer,
           .shadow_window = options.args.shadow_window,
           .disks = agent::disks_of(options.own_config)},
          std::move(machine), Rng(runtime::entropy()),
          {process.log(), &process.metrics(), journal, parts.reaction.get(), parts.recording.get()}, history));
  parts.companion = companion.get();
  parts.engine = std::move(companion);
  if (is_shadow(options)) {
    // The companion writes nothing in the shadow; the guard holds if that ever changes.
    client::ShadowEngine::Options guard;
    guard.on_write = [&process](const std::string& write, const std::string&) {
      process.log().error("a shadow wanted to write", {{"write", write}});
    };
    parts.engine = std::make_unique<client::ShadowEngine>(std::move(parts.engine), std::move(guard));
  }
  parts.driver = std::make_unique<runtime::EngineDriver>(process.loop(), *parts.engine, api);
  parts.driver->after_step([companion = parts.companion, runtime = parts.runtime.get()] {
    if (const auto places = companion->take_places()) runtime->set_pods(*places);
    for (agent::HostCommand& command : companion->take_host_commands()) runtime->execute(std::move(command));
  });
  parts.events->pass_to([companion = parts.companion, driver = parts.driver.get()](agent::HostEvent event) {
    driver->step([companion, event = std::move(event)](Now now) { companion->on_host_event(event, now); });
  });
  return {};
}

Outcome RunningCompanion::check_clearance(const agent::KubeletSettings& settings) const {
  return agent::check_clearance(parts_.companion->options().eviction.thresholds, settings, parts_.capacities);
}

void RunningCompanion::set_hold(std::optional<std::string> why) {
  parts_.driver->step(
      [this, why = std::move(why)](Now now) mutable { parts_.companion->set_hold(std::move(why), now); });
}

void RunningCompanion::set_pods(std::vector<api::Pod> pods) {
  parts_.driver->step(
      [this, pods = std::move(pods)](Now now) mutable { parts_.companion->set_pods(std::move(pods), now); });
}

void RunningCompanion::stop(runtime::Loop::Task done) {
  parts_.runtime->listen({}, {});
  parts_.driver->stop();
  parts_.reaction.reset();
  if (!parts_.pages) return done();
  parts_.pages->stop(std::move(done));
}

}  // namespace spillway::apps
