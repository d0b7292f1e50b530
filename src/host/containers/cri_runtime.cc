#include "host/containers/cri_runtime.h"

#include "base/file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRemovalsMax = 10'000;

Error served_elsewhere() {
  return make_error(ErrorCode::kInternalError, "the container runtime serves its streams itself");
}

}  // namespace

CriRuntime::CriRuntime(runtime::Loop& loop, const NodeSlice& slice, std::unique_ptr<RuntimeCalls> calls,
                       agent::Host::Receiver& receiver, telemetry::Log log, CriRuntimeOptions options)
    : events_(loop, receiver),
      log_(std::move(log)),
      options_(std::move(options)),
      observer_(loop, slice, log_, options_.state_dir, options_.pressure),
      calls_(std::move(calls)),
      timed_calls_(*calls_, options_.request_timeout),
      owner_(options_.owner),
      host_{.loop = loop,
            .slice = slice,
            .calls = timed_calls_,
            .events = events_,
            .log = log_,
            .options = options_,
            .owner = owner_},
      pods_(slice, events_, options_.runtime_name),
      status_feed_(loop, timed_calls_, events_, records_),
      checkpoints_(loop, options_.state_dir, log_),
      files_(loop, kRemovalsMax),
      relief_(loop),
      log_folders_(files_, log_, {.pods = options_.pod_logs_dir, .links = options_.log_links_dir}),
      remains_(pods_, timed_calls_, events_, files_, log_folders_, owner_, log_, options_.state_dir),
      log_rotation_(
          loop, pods_, timed_calls_, log_,
          {.limits = options_.logs, .interval = options_.log_check_interval, .threads = options_.log_workers}),
      streams_(pods_, timed_calls_),
      commands_(host_, pods_),
      container_checkpoints_(timed_calls_, options_.request_timeout),
      volumes_(loop, VolumeThread::Namespace::kMachine),
      volume_commands_(loop, events_, volumes_),
      prober_(
          loop, [this](agent::HostEvent event) { events_.emit(std::move(event)); }, options_.secure_streams),
      health_(loop, [this](agent::HostEvent event) { events_.emit(std::move(event)); }),
      storage_(host_, pods_, observer_),
      image_collector_(
          loop,
          {.calls = *calls_,
           .file_system = [this] { return storage_.image_file_system(); },
           .is_wanted = [this](const ListedImage& image) { return pods_.wants_image(image); },
           .record_event =
               [this](agent::GcEvent event) { events_.emit(agent::NodeNotice{event.reason, event.message}); }},
          log_, options_.image_gc),
      reclaim_(host_, pods_, storage_, remains_, image_collector_, files_),
      cgroups_(host_, pods_,
               {.on_slice_started = [this](const std::string& uid) { sandboxes_.on_slice(uid); },
                .on_slice_stopped = [this] { pod_ends_.report_shut_down(); }}),
      resizes_(host_, pods_, cgroups_),
      sandboxes_(
          host_, pods_,
          {.status = status_feed_, .cgroups = cgroups_, .container_ends = container_ends_, .pod_ends = pod_ends_}),
      maker_(host_, pods_, cgroups_, sandboxes_, log_folders_),
      container_ends_(host_, pods_, records_, sandboxes_, pod_ends_),
      pod_ends_(host_, pods_,
                {.container_ends = container_ends_,
                 .cgroups = cgroups_,
                 .storage = storage_,
                 .volumes = volumes_,
                 .files = files_,
                 .log_folders = log_folders_}),
      images_(host_, pods_),
      start_means_{.host = host_,
                   .pods = pods_,
                   .sandboxes = sandboxes_,
                   .images = images_,
                   .volumes = volumes_,
                   .cgroups = cgroups_,
                   .ends = container_ends_,
                   .log_folders = log_folders_},
      takeover_(host_, pods_,
                {.cgroups = cgroups_,
                 .container_ends = container_ends_,
                 .status = status_feed_,
                 .log_folders = log_folders_}),
      listing_(host_, pods_,
               {.records = records_,
                .takeover = takeover_,
                .sandboxes = sandboxes_,
                .container_ends = container_ends_,
                .status = status_feed_}) {
  pods_.removals().connect(log_, [this](agent::HostCommand command) { execute(std::move(command)); });
}

Result<std::unique_ptr<CriRuntime>> CriRuntime::create(runtime::Loop& loop, const NodeSlice& slice,
                                                       std::unique_ptr<RuntimeCalls> calls,
                                                       agent::Host::Receiver& receiver, telemetry::Log log,
                                                       CriRuntimeOptions options) {
  std::error_code error;
  const fs::path state = fs::absolute(options.state_dir, error);
  if (error || options.state_dir.empty()) return invalid("state directory", "\"{}\" is no path", options.state_dir);
  options.state_dir = state.string();
  fs::create_directories(state / "pods", error);
  if (error) return errno_error((state / "pods").string(), error.value());
  if (!options.pod_logs_dir.empty()) SPILLWAY_TRY_VOID(make_directories(options.pod_logs_dir));
  std::unique_ptr<CriRuntime> runtime(  // NOLINT: private constructor
      new CriRuntime(loop, slice, std::move(calls), receiver, std::move(log), std::move(options)));
  runtime->observer_.report_own_cgroup();
  runtime->listing_.start();
  runtime->status_feed_.start();
  runtime->image_collector_.start();
  runtime->log_rotation_.start();
  return runtime;
}

CriRuntime::~CriRuntime() = default;

void CriRuntime::execute(agent::HostCommand command) {
  if (pods_.removals().hold_back(command)) return;
  std::visit([this](auto&& each) { on_command(std::forward<decltype(each)>(each)); }, std::move(command));
}

void CriRuntime::checkpoint(const CheckpointWish& wish, CheckpointTaken answer) {
  const CriContainer* container = pods_.find_container(wish.uid, wish.container);
  if (container == nullptr || !container->running)
    return answer(make_error(ErrorCode::kNotFound, "container {} not found", wish.container));
  container_checkpoints_.take(container->id, wish, std::move(answer));
}

/// The runtime's own seccomp filter and profile of a container cannot be put on from here.
Result<ContainerAccess> CriRuntime::enter(const api::PodKey& /*pod*/, const std::string& /*uid*/,
                                          const std::string& /*container*/, std::vector<std::string> /*argv*/) {
  return served_elsewhere();
}

Result<std::shared_ptr<ContainerConsole>> CriRuntime::console(const api::PodKey& /*pod*/, const std::string& /*uid*/,
                                                              const std::string& /*container*/) const {
  return served_elsewhere();
}

Result<PortSession::Dial> CriRuntime::dial(const api::PodKey& /*pod*/, const std::string& /*uid*/) {
  return served_elsewhere();
}

void CriRuntime::on_command(const agent::SetUpVolumes& command) {
  CriPod* pod = pods_.find(command.uid);
  if (pod == nullptr) return volume_commands_.refuse(command, fmt::format("pod {} is unknown", command.uid));
  if (pod->broken) return volume_commands_.refuse(command, pod->broken->text());
  if (!pod->volumes || pod->stopping) return volume_commands_.refuse(command, "the pod is being stopped");
  volume_commands_.set_up(command, pod->volumes, pod->disk_volumes);
}

bool CriRuntime::keep_pods() {
  pods_.close();
  for (auto& [uid, pod] : pods_.all())
    if (pod.volumes) pod.volumes->keep();
  return true;
}

}  // namespace spillway::host
