#include "host/process/process_runtime.h"

#include "base/file.h"
#include "host/pods/group_limits.h"
#include "host/pods/pod_limits.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPodRemovalsMax = 10'000;

}  // namespace

ProcessRuntime::ProcessRuntime(runtime::Loop& loop, const NodeSlice& slice, agent::Host::Receiver& receiver,
                               telemetry::Log log, ProcessRuntimeOptions options)
    : events_(loop, receiver),
      log_(std::move(log)),
      options_(std::move(options)),
      host_{.loop = loop, .slice = slice, .events = events_, .log = log_, .options = options_},
      observer_(loop, slice, log_, options_.state_dir, options_.pressure),
      pods_(slice, events_),
      orphans_(slice),
      checkpoints_(loop, options_.state_dir, log_),
      files_(loop, kPodRemovalsMax),
      relief_(loop),
      volumes_(loop),
      volume_commands_(loop, events_, volumes_),
      maker_(host_, pods_),
      supervisors_(host_),
      attachments_(host_, pods_, maker_, [this](const std::string& uid) { ends_.advance(uid); }),
      ends_(host_, pods_,
            {.observer = observer_,
             .volumes = volumes_,
             .files = files_,
             .supervisors = supervisors_,
             .attachments = attachments_,
             .maker = maker_}),
      containers_(host_, pods_,
                  {.volumes = volumes_, .files = files_, .supervisors = supervisors_, .maker = maker_, .ends = ends_}),
      takeover_(host_, pods_,
                {.volumes = volumes_,
                 .supervisors = supervisors_,
                 .attachments = attachments_,
                 .maker = maker_,
                 .containers = containers_}),
      streams_(host_, pods_),
      reclaim_(host_, pods_, receiver, observer_, files_),
      prober_(
          loop, [this](agent::HostEvent event) { events_.emit(std::move(event)); }, options_.secure_streams),
      health_(loop, [this](agent::HostEvent event) { events_.emit(std::move(event)); }) {
  pods_.removals().connect(log_, [this](agent::HostCommand command) { execute(std::move(command)); });
}

Result<std::unique_ptr<ProcessRuntime>> ProcessRuntime::create(runtime::Loop& loop, const NodeSlice& slice,
                                                               agent::Host::Receiver& receiver, telemetry::Log log,
                                                               ProcessRuntimeOptions options) {
  std::error_code error;
  const fs::path state = fs::absolute(options.state_dir, error);
  if (error || options.state_dir.empty()) return invalid("state directory", "\"{}\" is no path", options.state_dir);
  options.state_dir = state.string();
  options.hidden.push_back(options.state_dir);
  SPILLWAY_TRY_VOID(make_directories(state / "pods"));
  std::unique_ptr<ProcessRuntime> runtime(
      new ProcessRuntime(loop, slice, receiver, std::move(log), std::move(options)));  // NOLINT: private constructor
  SPILLWAY_TRY_VOID(runtime->open());
  return runtime;
}

Outcome ProcessRuntime::open() {
  observer_.report_own_cgroup();
  if (options_.isolation == ProcessRuntimeOptions::Isolation::kNamespaces) {
    SPILLWAY_TRY(isolator,
                 PodIsolator::create(options_.state_dir + "/pods", options_.hidden, host_.slice.kubepods().version()));
    maker_.confine_by(std::move(isolator));
  }
  if (options_.network) {
    SPILLWAY_TRY(networks, PodNetworks::create(host_.loop, log_, *options_.network));
    attachments_.use(std::move(networks));
  }
  if (options_.keeps_pods) SPILLWAY_TRY_VOID(supervisors_.open());
  SPILLWAY_TRY_VOID(options_.keeps_pods ? takeover_.begin() : takeover_.remove_all());
  keep_house();
  return {};
}

ProcessRuntime::~ProcessRuntime() = default;

void ProcessRuntime::execute(agent::HostCommand command) {
  if (pods_.removals().hold_back(command)) return;
  std::visit([this](auto&& each) { on_command(std::forward<decltype(each)>(each)); }, std::move(command));
}

/// A start that waits belongs to the pod that has the uid now.
void ProcessRuntime::on_command(agent::StartContainer command) {
  const ProcessPod* pod = pods_.find(command.uid);
  const auto held = std::make_shared<agent::StartContainer>(std::move(command));
  start_files_.when_saved(*held, alive_.guard([this, held, identity = pod == nullptr ? nullptr : pod->identity] {
    if (!pods_.is_made_anew(held->uid, identity)) containers_.start(std::move(*held));
  }));
}

void ProcessRuntime::on_command(const agent::SetUpVolumes& command) {
  ProcessPod* pod = pods_.find(command.uid);
  if (pod == nullptr) return volume_commands_.refuse(command, fmt::format("pod {} is unknown", command.uid));
  if (const Outcome made = maker_.ensure_made(*pod); !made)
    return volume_commands_.refuse(command, made.error().text());
  if (!pod->volumes) return volume_commands_.refuse(command, "the pod is being stopped");
  volume_commands_.set_up(command, pod->volumes, pod->disk_volumes);
}

void ProcessRuntime::on_command(const agent::ResizePod& command) {
  checkpoints_.when_saved([this, command] {
    const Outcome resized = maker_.resize(command);
    events_.emit(agent::PodResized{command.id, command.uid, resized ? std::string() : resized.error().text()});
  });
}

void ProcessRuntime::on_command(const agent::LimitGroup& command) {
  if (command.group != agent::LimitedGroup::kPods) return events_.emit(limit_reserved_group(host_.slice, command));
  events_.emit(agent::GroupLimited{command.group, apply_limits(host_.slice.kubepods(), group_limits(command))});
}

void ProcessRuntime::on_command(const agent::Observe& command) {
  Result<api::Summary> seen = command.depth == agent::ObserveDepth::kWhole
                                  ? observe_now()
                                  : observer_.observe_node_memory_alone(host_.loop.now());
  // Pods, their logs and what they write are below one state directory: one file system, whatever it is.
  events_.emit(agent::Observed{command.id, std::move(seen), command.depth, eviction::StorageLayout{}});
}

Result<api::Summary> ProcessRuntime::observe_now() {
  const std::vector<PodView> seen = pods_.views();
  return observer_.observe(seen, host_.loop.now());
}

void ProcessRuntime::keep_house() {
  host_.loop.at(host_.loop.now().mono + options_.housekeeping, alive_.guard([this] {
    const auto is_known = [this](std::string_view uid) { return pods_.all().contains(std::string(uid)); };
    for (const std::string& path : orphans_.clear(is_known))
      log_.warning("orphaned pod cgroup removed", {{"cgroup", path}});
    supervisors_.clear_strays(pods_);
    keep_house();
  }));
}

bool ProcessRuntime::keep_pods() {
  const bool idle = std::ranges::all_of(
      pods_.all(), [](const auto& pod) { return pod.second.containers.empty() && !pod.second.holder; });
  if (!supervisors_.is_open() || idle) return false;
  pods_.close();
  for (auto& [uid, pod] : pods_.all())
    if (pod.volumes) pod.volumes->keep();
  return true;
}

}  // namespace spillway::host
