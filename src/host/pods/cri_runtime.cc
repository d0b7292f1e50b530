#include "host/pods/cri_runtime.h"

#include "api/text/base64.h"
#include "base/file.h"
#include "host/cgroup/reserved_cgroup.h"
#include "host/pods/pod_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRemovalsMax = 10'000;
constexpr std::size_t kRotationsMax = 10'000;
constexpr Duration kExecSlack = minutes(2);
constexpr Duration kExecMax = minutes(60);  // limit of a command without a timeout

}  // namespace

CriRuntime::CriRuntime(runtime::Loop& loop, const NodeSlice& slice, std::unique_ptr<RuntimeCalls> calls,
                       agent::Host::Receiver& receiver, telemetry::Log log, CriRuntimeOptions options)
    : loop_(loop),
      slice_(slice),
      receiver_(receiver),
      log_(std::move(log)),
      options_(std::move(options)),
      observer_(loop, slice, log_, options_.state_dir, options_.pressure),
      checkpoints_(loop, options_.state_dir, log_),
      files_(loop, kRemovalsMax),
      relief_(loop),
      log_folders_(files_, log_, {.pods = options_.pod_logs_dir, .links = options_.log_links_dir}),
      log_files_(loop, options_.log_workers, kRotationsMax),
      volumes_(loop, VolumeThread::Namespace::kMachine),
      calls_(std::move(calls)),
      storage_(loop_, {.socket = options_.socket, .node_directory = options_.state_dir}, log_, [] {}),
      credential_plugins_(loop_, log_, options_.credential_plugin_dir, options_.credential_providers),
      image_collector_(loop_,
                       {.calls = *calls_,
                        .file_system = [this] { return image_file_system(); },
                        .is_wanted = [this](const ListedImage& image) { return is_wanted(image); },
                        .tell = [this](agent::GcEvent event) { emit(agent::NodeNotice{event.reason, event.message}); }},
                       log_, options_.image_gc) {
  if (options_.pulls_per_second > 0) {
    pull_tokens_.emplace(BucketKind::kContinuous, static_cast<float>(options_.pulls_per_second),
                         static_cast<int>(options_.pull_burst), loop_.now().mono);
  }
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
  runtime->relist();
  runtime->ask_status();
  runtime->ask_images();
  runtime->image_collector_.start();
  runtime->rotate_logs();
  return runtime;
}

CriRuntime::~CriRuntime() {
  for (auto& [uid, pod] : pods_) {
    if (pod.ending) loop_.cancel(pod.ending->timer);
    for (auto& [name, container] : pod.containers) unwatch(container);
  }
}

void CriRuntime::execute(agent::HostCommand command) {
  std::visit([this](auto&& each) { on_command(std::forward<decltype(each)>(each)); }, std::move(command));
}

void CriRuntime::listen(std::function<void()> before_event, std::function<void()> targets_changed) {
  before_event_ = std::move(before_event);
  targets_changed_ = std::move(targets_changed);
}

void CriRuntime::emit(agent::HostEvent event) {
  if (before_event_) before_event_();
  loop_.post([this, alive = std::weak_ptr(alive_), event = std::move(event)]() mutable {
    if (!alive.expired()) receiver_.on_host_event(std::move(event));
  });
}

void CriRuntime::tell(const std::string& uid, const std::string& container, agent::PodNotice::Weight weight,
                      std::string reason, std::string message) {
  emit(agent::PodNotice{uid, container, weight, std::move(reason), std::move(message)});
}

void CriRuntime::call(std::string_view method, api::Json request, Duration deadline, RuntimeCalls::Answer answer) {
  calls_->call(method, std::move(request), deadline == kRuntimeCallMax ? options_.request_timeout : deadline,
               [alive = std::weak_ptr(alive_), answer = std::move(answer)](Result<api::Json> result) mutable {
                 if (!alive.expired()) answer(std::move(result));
               });
}

CriRuntime::Pod* CriRuntime::find(const std::string& uid) {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

const CriRuntime::Pod* CriRuntime::find_pod(const api::PodKey& key) const {
  const Pod* found = nullptr;
  for (const auto& [uid, pod] : pods_) {
    // A pod that was made anew lives beside the remains of its namesake.
    if (pod.command.pod == key && (found == nullptr || found->stopping)) found = &pod;
  }
  return found;
}

void CriRuntime::change_target(Pod& pod) {
  pod.target.reset();
  if (targets_changed_) targets_changed_();
}

std::shared_ptr<const ReactionTarget> CriRuntime::find_target(const std::string& uid) {
  Pod* pod = find(uid);
  if (pod == nullptr || pod->broken || pod->removing || !pod->cgroup) return nullptr;
  if (!pod->target) {
    std::vector<std::shared_ptr<ContainerHandle>> handles;
    for (const auto& [name, container] : pod->containers)
      if (container.running && container.handle) handles.push_back(container.handle);
    pod->target =
        std::make_shared<const ReactionTarget>(slice_.parent_of(pod->command.qos), pod->cgroup, std::move(handles));
  }
  return pod->target;
}

Result<std::string> CriRuntime::find_log(const api::PodKey& key, const std::string& container,
                                         std::int32_t attempt) const {
  const Pod* pod = find_pod(key);
  if (pod == nullptr) return make_error(ErrorCode::kNotFound, "pod \"{}\" does not exist", key.text());
  if (container.contains('/') || container.starts_with('.'))
    return invalid("container", "\"{}\" cannot name a container", container);
  const fs::path file = log_in(pod->logs, container, attempt);
  std::error_code error;
  if (fs::exists(file, error)) return file.string();
  return make_error(ErrorCode::kNotFound, "container \"{}\" in pod \"{}\": the log of attempt {} is gone", container,
                    key.name, attempt);
}

bool CriRuntime::is_log_live(const std::string& path) const {
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod.containers) {
      if (container.running && path == log_in(pod.logs, name, container.attempt)) return true;
    }
  }
  return false;
}

std::optional<std::int32_t> CriRuntime::attempt_of(const std::string& container_id) const {
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod.containers)
      if (container.id == container_id) return container.attempt;
    for (const auto& [instance, id] : pod.ended)
      if (id == container_id) return instance.second;
  }
  return std::nullopt;
}

std::vector<api::PodKey> CriRuntime::pods() const {
  std::vector<api::PodKey> keys;
  keys.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) keys.push_back(pod.command.pod);
  return keys;
}

void CriRuntime::on_command(const agent::LimitGroup& command) {
  CgroupLimits limits{
      .memory = command.limits.memory, .pids = command.limits.pids_max, .huge_pages = command.limits.huge_pages};
  if (command.group == agent::LimitedGroup::kPods) limits.swap = swap_above_containers(options_.resources);
  if (command.limits.cpu_milli) limits.cpu_shares = cpu_shares_of(*command.limits.cpu_milli);
  if (command.group == agent::LimitedGroup::kPods) return limit_all_pods(command.group, limits);
  const Result<CgroupDir> root = slice_.measured().hierarchy_root();
  emit(agent::GroupLimited{command.group,
                           root ? limit_reserved(*root, command.cgroup, std::move(limits)) : Outcome(root.error())});
}

/// Containers that are started from now on; those that run keep what they have.
void CriRuntime::on_command(const agent::ShareCpus& command) {
  shared_cpus_ = command.cpus;
}

void CriRuntime::on_command(const agent::SaveCheckpoint& command) {
  checkpoints_.save(command.file, command.text);
}

void CriRuntime::on_command(agent::SetUpVolumes command) {
  agent::VolumesSetUp answer{command.uid, command.id, {}};
  const auto fail_all = [&](const std::string& why) {
    for (const agent::VolumeSetup& each : command.volumes) answer.failures.push_back({each.name, why});
    emit(std::move(answer));
  };
  Pod* pod = find(command.uid);
  if (pod == nullptr) return fail_all(fmt::format("pod {} is unknown", command.uid));
  if (pod->broken) return fail_all(pod->broken->text());
  if (!pod->volumes || pod->stopping) return fail_all("the pod is being stopped");
  for (const agent::VolumeSetup& each : command.volumes) {
    const auto* empty = std::get_if<agent::EmptyDirectory>(&each.content);
    if (empty != nullptr && !empty->in_memory) pod->disk_volumes.insert(each.name);
  }
  const bool queued = volumes_.set_up(pod->volumes, command, loop_.now().wall,
                                      [this, alive = std::weak_ptr(alive_)](agent::VolumesSetUp done) {
                                        if (!alive.expired()) emit(std::move(done));
                                      });
  if (!queued) fail_all("too many volumes are being made");
}

/// A runtime that answers ends the command by itself after its timeout.
void CriRuntime::on_command(const agent::RunInContainer& command) {
  Pod* pod = find(command.uid);
  const auto container =
      pod == nullptr ? std::map<std::string, Container>::iterator{} : pod->containers.find(command.container);
  if (pod == nullptr || container == pod->containers.end() || !container->second.running)
    return emit(agent::RanInContainer{
        command.id, make_error(ErrorCode::kNotFound, "container \"{}\" does not run", command.container), {}});
  api::Json request = api::Json::object({{"container_id", container->second.id}, {"cmd", api::Json::array()}});
  for (const std::string& each : command.argv) request["cmd"].if_array()->emplace_back(each);
  const auto timeout = std::chrono::ceil<std::chrono::seconds>(command.timeout).count();
  if (timeout > 0) request["timeout"] = std::int64_t{timeout};
  const Duration deadline = timeout > 0 ? command.timeout + kExecSlack : kExecMax;
  call("ExecSync", std::move(request), deadline, [this, id = command.id](Result<api::Json> ran) {
    agent::RanInContainer answer{.id = id, .exit_code = 0, .output = {}};
    if (ran) {
      answer.exit_code = static_cast<std::int32_t>(number_in(*ran, {"exit_code"}));
      for (const std::string_view stream : {"stdout", "stderr"})
        answer.output += api::decode_base64(ran->string_at({stream})).value_or("");
      if (answer.output.size() > agent::kCommandOutputMax) answer.output.resize(agent::kCommandOutputMax);
    } else {
      answer.timed_out = ran.error().code == ErrorCode::kTimeout;
      answer.exit_code = Error{ran.error().code, rpc_text(ran.error()), {}};
    }
    emit(std::move(answer));
  });
}

void CriRuntime::limit_all_pods(agent::LimitedGroup group, const CgroupLimits& limits) {
  Outcome limited = apply_limits(slice_.kubepods(), limits);
  const auto unit = slice_.class_unit(api::QosClass::kGuaranteed);
  if (!limited || options_.slices == nullptr || !unit) return emit(agent::GroupLimited{group, std::move(limited)});
  options_.slices->limit(unit->name, limits, [this, alive = std::weak_ptr(alive_), group](Outcome told) {
    if (!alive.expired()) emit(agent::GroupLimited{group, std::move(told)});
  });
}

void CriRuntime::update_class_limits() {
  std::vector<const agent::CreatePod*> commands;
  for (const auto& [uid, pod] : pods_) commands.push_back(&pod.command);
  for (const api::QosClass qos : {api::QosClass::kGuaranteed, api::QosClass::kBurstable, api::QosClass::kBestEffort})
    limit_class(qos, class_limits(qos, commands, options_.resources));
}

/// Weights and protected memory favour pods, and bound none: the next pod writes them again.
void CriRuntime::limit_class(api::QosClass qos, const CgroupLimits& limits) {
  CgroupLimits& last = class_limits_[qos];
  if (last == limits) return;
  const Outcome written = apply_limits(slice_.parent_of(qos), limits);
  if (written) last = limits;
  const auto unit = slice_.class_unit(qos);
  if (options_.slices == nullptr || !unit) return;
  options_.slices->limit(unit->name, limits, [log = log_, name = unit->name](const Outcome& told) {
    if (!told) log.warning("class of pods not weighed", {{"slice", name}, {"error", told.error().text()}});
  });
}

bool CriRuntime::leave_pods() {
  shutting_down_ = true;
  for (auto& [uid, pod] : pods_)
    if (pod.volumes) pod.volumes->keep();
  return true;
}

void CriRuntime::shutdown(Duration grace, std::function<void()> done) {
  shutting_down_ = true;
  on_shut_down_ = std::move(done);
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pods_) uids.push_back(uid);
  for (const std::string& uid : uids) {
    if (std::exchange(find(uid)->removing, true) && !find(uid)->ending) continue;
    end_pod(uid, grace);
  }
  report_shut_down();
}

void CriRuntime::report_shut_down() {
  if (pods_.empty() && slices_stopping_ == 0 && on_shut_down_) loop_.post(std::exchange(on_shut_down_, {}));
}

}  // namespace spillway::host
