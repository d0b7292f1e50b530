#include "apps/companion/companion_part.h"

#include "agent/companion/kubelet_settings.h"
#include "agent/contract/stats_age.h"
#include "agent/serving/summary_page.h"
#include "base/rng.h"
#include "client/shadow_engine.h"
#include "host/disk/fs_probe.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/resident_memory.h"
#include "host/observation/machine_info.h"
#include "policy/eviction/memory_estimate.h"

#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>
#include <utility>

namespace spillway::apps {

namespace {

Rng rng_for(Process& process, const std::string& name) {
  return Rng(fnv1a64(name, static_cast<std::uint64_t>(process.loop().now().wall.time_since_epoch().count())));
}

/// What a share of allocatableMemory.available is a share of: the limit of all pods together, or else all memory.
Bytes pods_limit(const host::NodeSlice& slice) {
  const bool v1 = slice.kubepods().version() == host::CgroupVersion::kV1;
  const auto text = slice.kubepods().read(host::Controller::kMemory, v1 ? "memory.limit_in_bytes" : "memory.max");
  const auto limit = text ? host::parse_number(*text) : std::nullopt;
  if (!limit || *limit > static_cast<std::uint64_t>(slice.memory().count())) return slice.memory();
  return Bytes{static_cast<std::int64_t>(*limit)};
}

/// It may well come later: a kubelet that restarts, or is not up yet.
bool is_passing(ErrorCode code) {
  return code == ErrorCode::kServiceUnavailable || code == ErrorCode::kTimeout || code == ErrorCode::kTooManyRequests;
}

std::string thresholds_text(const eviction::ThresholdConfig& config) {
  std::string text;
  const auto parsed = eviction::parse_thresholds(config);
  if (!parsed) return text;
  for (const eviction::Threshold& threshold : *parsed) {
    text += (text.empty() ? "" : ",") + eviction::text_of(threshold);
  }
  return text;
}

}  // namespace

CompanionPart::CompanionPart(Process& process, CompanionPartOptions options, std::unique_ptr<client::Transport> api,
                             std::unique_ptr<client::Transport> kubelet)
    : process_(process),
      options_(std::move(options)),
      api_(std::move(api)),
      kubelet_(std::move(kubelet)),
      feed_({.pods = options_.args.pods_from_kubelet}, rng_for(process, options_.name).fork("feed"),
            {[this](Result<agent::KubeletSettings> settings, Now) {
               process_.loop().post(
                   [this, settings = std::move(settings)]() mutable { on_settings(std::move(settings)); });
             },
             [this](Result<std::vector<api::Pod>> pods, Now) {
               process_.loop().post([this, pods = std::move(pods)]() mutable { on_pods(std::move(pods)); });
             }}) {}

CompanionPart::~CompanionPart() = default;

Result<std::unique_ptr<CompanionPart>> CompanionPart::create(Process& process, CompanionPartOptions options,
                                                             std::unique_ptr<client::Transport> api,
                                                             std::unique_ptr<client::Transport> kubelet) {
  std::error_code error;
  std::filesystem::create_directories(options.state_dir, error);
  if (error) return Error{ErrorCode::kInternalError, "cannot create: " + error.message(), options.state_dir};
  std::unique_ptr<CompanionPart> part(  // NOLINT: private constructor
      new CompanionPart(process, std::move(options), std::move(api), std::move(kubelet)));
  SPILLWAY_TRY_VOID(part->lock_state());
  part->feed_driver_ = std::make_unique<runtime::EngineDriver>(process.loop(), part->feed_, *part->kubelet_);
  part->feed_driver_->start();
  return part;
}

/// Two of them would evict twice.
Outcome CompanionPart::lock_state() {
  const std::string path = options_.state_dir + "/companion.lock";
  lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_) return host::errno_error(path, errno);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  return Error{ErrorCode::kConflict, "another companion works in this directory", options_.state_dir};
}

void CompanionPart::on_settings(Result<agent::KubeletSettings> settings) {
  if (!settings) {
    const Error& error = settings.error();
    if (companion_ != nullptr) return tell_problem("/configz", "the kubelet's configuration is not known", error);
    if (is_passing(error.code)) return tell_problem("/configz", "waiting for the kubelet", error);
    if (!is_shadow()) {
      process_.fail(Error{error.code,
                          agent::explain_refusal(error, "/configz") +
                              "; a companion that acts must know the kubelet's thresholds, one that only watches "
                              "(--shadow) need not",
                          options_.args.kubelet + "/configz"});
    } else {
      tell_problem("/configz", "the kubelet's thresholds are not known", error);
      if (const Outcome begun = begin(nullptr); !begun) process_.fail(begun.error());
    }
    return;
  }
  problems_told_.erase("/configz");
  if (companion_ == nullptr) {
    settings_ = *settings;
    if (const Outcome begun = begin(&*settings); !begun) process_.fail(begun.error());
    return;
  }
  if (is_shadow() || (settings_ && settings_->config == settings->config)) return;
  settings_ = *std::move(settings);
  const Outcome clear = agent::check_clearance(companion_->options().eviction.thresholds, *settings_, capacities_);
  process_.log().warning("the kubelet's configuration changed",
                         {{"thresholds", thresholds_text(settings_->thresholds)},
                          {"acting", clear ? "as before" : "held: " + clear.error().text()}});
  driver_->step([this, why = clear ? std::nullopt : std::optional(clear.error().text())](Now now) {
    companion_->set_hold(why, now);
  });
}

/// Pages are asked for again and again: the same answer is told once.
void CompanionPart::tell_problem(const std::string& page, std::string_view what, const Error& error) {
  std::string why = agent::explain_refusal(error, page);
  std::string& told = problems_told_[page];
  if (told == why) return;
  process_.log().warning(what, {{"url", options_.args.kubelet + page}, {"error", why}});
  told = std::move(why);
}

void CompanionPart::on_pods(Result<std::vector<api::Pod>> pods) {
  if (companion_ == nullptr) return;
  if (!pods) {
    return tell_problem("/pods", "the kubelet's pods are not known", pods.error());
  }
  if (problems_told_.erase("/pods") > 0) process_.log().info("the kubelet's pods are known again");
  driver_->step([this, pods = *std::move(pods)](Now now) mutable { companion_->set_pods(std::move(pods), now); });
}

Outcome CompanionPart::begin(const agent::KubeletSettings* settings) {
  SPILLWAY_TRY(eviction, agent::companion_eviction(options_.own_config, settings));
  eviction.memory_watch = options_.memory_watch;
  SPILLWAY_TRY_VOID(attach(settings));
  SPILLWAY_TRY(machine, host::read_machine_info(*slice_, options_.state_dir));
  machine.hostname = options_.name;
  capacities_ = {{eviction::Signal::kMemoryAvailable, slice_->memory().count()},
                 {eviction::Signal::kAllocatableMemoryAvailable, pods_limit(*slice_).count()},
                 {eviction::Signal::kPidAvailable, machine.pids_max}};
  if (agent::disks_of(options_.own_config) == agent::Disks::kWatched) {
    const Result<api::FsStats> node_fs = host::read_fs(options_.args.root_dir);
    if (!node_fs) {
      return invalid("--root-dir", "{}; nodefs is the file system of the kubelet's directory", node_fs.error().text());
    }
    capacities_[eviction::Signal::kNodeFsAvailable] = static_cast<std::int64_t>(*node_fs->capacity_bytes);
    capacities_[eviction::Signal::kNodeFsInodesFree] = static_cast<std::int64_t>(*node_fs->inodes);
  }
  if (!is_shadow()) SPILLWAY_TRY_VOID(agent::check_clearance(eviction.thresholds, *settings, capacities_));
  if (const auto estimator = eviction.memory_watch.estimator; estimator != eviction::MemoryEstimator::kWorkingSet) {
    process_.log().warning("memory.available is not what it is for the kubelet: which threshold is met first is open",
                           {{"estimator", to_string(estimator)}, {"kubelets_estimator", "workingset"}});
  }
  const std::string thresholds = thresholds_text(eviction.thresholds);
  SPILLWAY_TRY_VOID(make_engine(std::move(eviction), std::move(machine)));
  if (!options_.args.pages_address.empty()) {
    SPILLWAY_TRY(served, CompanionPages::create(process_.loop(), process_.log(), options_.args.pages_address, pages()));
    pages_ = std::move(served);
  }
  process_.log().info("companion running", {{"node", options_.name},
                                            {"mode", is_shadow() ? "shadow" : "acting"},
                                            {"thresholds", thresholds},
                                            {"cgroup_driver", to_string(cgroup_driver_)},
                                            {"kubepods", slice_->kubepods().path()},
                                            {"memory_bytes", slice_->memory().count()},
                                            {"pages_port", pages_ ? pages_->port() : 0}});
  driver_->start();
  return {};
}

Outcome CompanionPart::attach(const agent::KubeletSettings* settings) {
  SPILLWAY_TRY(mounts, host::read_cgroup_mounts());
  SPILLWAY_TRY(root, host::CgroupDir::open_root(mounts));
  root_ = std::move(root);
  SPILLWAY_TRY(socket, agent::runtime_socket(options_.own_config));
  const std::string cgroup_root = settings == nullptr ? std::string() : settings->cgroup_root;
  SPILLWAY_TRY(found, host::detect_driver(root_, cgroup_root,
                                          settings == nullptr ? agent::CgroupDriver::kSystemd : settings->driver));
  cgroup_driver_ = found;
  SPILLWAY_TRY(whole, root_.hierarchy_root());
  const std::string kubepods = agent::kubepods_cgroup(found, cgroup_root);
  SPILLWAY_TRY(slice, host::NodeSlice::attach(std::move(whole), {.node = options_.name,
                                                                 .cgroup_root = kubepods.substr(0, kubepods.rfind('/')),
                                                                 .kubepods = kubepods,
                                                                 .memory = options_.memory}));
  slice_ = std::move(slice);
  agent::Host::Receiver& receiver = *this;
  runtime_ = std::make_unique<host::ForeignRuntime>(
      process_.loop(), root_, *slice_, receiver, process_.log(),
      host::ForeignRuntime::Options{
          .driver = found,
          .cgroup_root = cgroup_root,
          .node_directory = options_.args.root_dir,
          .log_directory = (settings == nullptr ? agent::KubeletSettings{} : *settings).log_directory,
          .runtime_socket = std::move(socket),
          .signals = is_shadow() ? host::Signals::kDryRun : host::Signals::kSent});
  return {};
}

Outcome CompanionPart::make_engine(agent::EvictionOptions eviction, agent::MachineInfo machine) {
  SPILLWAY_TRY(journal, host::JournalFile::open(options_.state_dir + "/journal.jsonl", process_.log()));
  journal_ = std::move(journal);
  SPILLWAY_TRY(history, journal_->read());
  host::set_blind_zones(*slice_, eviction);
  if (!is_shadow()) {
    SPILLWAY_TRY(reaction, host::MemoryReaction::create(
                               process_.loop(), *slice_,
                               {.receiver = *this,
                                .find_target = [this](const std::string& uid) { return runtime_->find_target(uid); },
                                .journal = journal_.get(),
                                .memory_watch = eviction.memory_watch},
                               process_.log()));
    reaction_ = std::move(reaction);
    runtime_->listen([this] { reaction_->report(); }, [this] { reaction_->refresh_targets(); });
    if (host::protect_process() == host::MemoryLock::kNotAllowed)
      process_.log().info("memory not locked: no right to (CAP_IPC_LOCK)");
  }
  const auto consequence = is_shadow() ? agent::Consequence::kShadow : agent::Consequence::kActs;
  SPILLWAY_TRY(companion, agent::Companion::create(
                              {.node_name = options_.name,
                               .eviction = std::move(eviction),
                               .consequence = consequence,
                               .source = options_.args.pods_from_kubelet ? agent::PodSource::kKubelet
                                                                         : agent::PodSource::kApiServer,
                               .shadow_window = options_.args.shadow_window,
                               .disks = agent::disks_of(options_.own_config)},
                              std::move(machine), rng_for(process_, options_.name),
                              {process_.log(), &process_.metrics(), journal_.get(), reaction_.get()}, history));
  companion_ = companion.get();
  engine_ = std::move(companion);
  if (is_shadow()) {
    // It writes nothing by itself; this holds should that ever change.
    client::ShadowEngine::Options guard;
    guard.on_write = [this](const std::string& write, const std::string&) {
      process_.log().error("a shadow wanted to write", {{"write", write}});
    };
    engine_ = std::make_unique<client::ShadowEngine>(std::move(engine_), std::move(guard));
  }
  driver_ = std::make_unique<runtime::EngineDriver>(process_.loop(), *engine_, *api_);
  driver_->after_step([this] {
    if (const auto places = companion_->take_places()) runtime_->set_pods(*places);
    for (agent::HostCommand& command : companion_->take_host_commands()) runtime_->execute(std::move(command));
  });
  return {};
}

std::map<std::string, CompanionPages::Page> CompanionPart::pages() {
  const std::string json = "application/json";
  const std::string text = "text/plain; version=0.0.4; charset=utf-8";
  const auto page = CompanionPages::text;
  return {{"/metrics", page(text, [this] { return process_.metrics().text(); })},
          {"/healthz", page("text/plain; charset=utf-8", [] { return std::string("ok"); })},
          {"/stats/summary",
           [this](const api::Target& target) { return agent::summary_page(runtime_->observe_now(), target); }},
          {"/debug/spillway", page(json, [this] { return api::to_text(state()); })},
          {"/debug/spillway/decisions",
           page(json, [this] { return api::to_text(companion_->decisions(process_.loop().now())); })}};
}

api::Json CompanionPart::state() const {
  api::Json state = companion_->state();
  if (const auto summary = companion_->last_summary()) {
    api::Json& ages = state["statsAgeSeconds"] = api::Json::object();
    for (const agent::StatsAge& each : agent::ages_of(*summary, process_.loop().now().wall)) {
      ages[each.part] = each.seconds;
    }
  }
  if (const std::string problem = runtime_->storage_problem(); !problem.empty()) state["storageProblem"] = problem;
  return state;
}

void CompanionPart::on_host_event(agent::HostEvent event) {
  driver_->step([this, event = std::move(event)](Now now) { companion_->on_host_event(event, now); });
}

void CompanionPart::stop(runtime::Loop::Task done) {
  feed_driver_->stop();
  if (runtime_) runtime_->listen({}, {});
  if (driver_) driver_->stop();
  reaction_.reset();
  if (!pages_) return done();
  pages_->stop(std::move(done));
}

}  // namespace spillway::apps
