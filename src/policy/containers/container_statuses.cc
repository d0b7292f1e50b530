#include "policy/containers/container_statuses.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace spillway::containers {
namespace {

using State = Instance::State;

constexpr std::int32_t kKilledExitCode = 137;  // 128 + SIGKILL
constexpr std::string_view kUnknownReason = "ContainerStatusUnknown";
constexpr std::size_t kLogLinesMax = 80;    // as upstream
constexpr std::size_t kLogBytesMax = 2048;  // as upstream

const std::vector<api::Container>& list_of(const api::Pod& pod, ContainerKind kind) {
  switch (kind) {
    case ContainerKind::kInit:
      return pod.spec.init_containers;
    case ContainerKind::kEphemeral:
      return pod.spec.ephemeral_containers;
    case ContainerKind::kRegular:
      break;
  }
  return pod.spec.containers;
}

template <typename Statuses>
auto find(Statuses& statuses, std::string_view name) {
  const auto found = std::ranges::find(statuses, name, &api::ContainerStatus::name);
  return found == statuses.end() ? nullptr : &*found;
}

api::ContainerState::Terminated lost(std::string message) {
  api::ContainerState::Terminated ended;
  ended.exit_code = kKilledExitCode;
  ended.reason = kUnknownReason;
  ended.message = std::move(message);
  return ended;
}

/// The mounts that the container's specification names.
api::Json mounts_of(const api::Container& container) {
  if (container.volume_mounts.empty()) return {};
  api::Json list = api::Json::array();
  for (const api::VolumeMount& mount : container.volume_mounts) {
    api::Json made = api::Json::object({{"mountPath", mount.mount_path}, {"name", mount.name}});
    if (mount.read_only) {
      made["readOnly"] = true;
      made["recursiveReadOnly"] = mount.recursive_read_only.empty() ? "Disabled" : mount.recursive_read_only;
    }
    list.if_array()->push_back(std::move(made));
  }
  return list;
}

/// The status of a container without an instance: the previous status, as far as it still applies.
api::ContainerStatus status_without(const api::Pod& pod, const api::Container& container,
                                    const api::ContainerStatus* old) {
  const bool has_init = !pod.spec.init_containers.empty();
  if (old != nullptr && old->state.terminated) return *old;
  api::ContainerStatus status;
  status.name = container.name;
  status.image = container.image;
  status.state.waiting = {has_init ? "PodInitializing" : "ContainerCreating", {}};
  status.volume_mounts = mounts_of(container);
  if (old == nullptr) return status;
  status.restart_count = old->restart_count;
  status.last_state = old->last_state;
  if (!old->state.running || status.last_state.terminated) return status;
  status.last_state.terminated =
      lost("The container could not be located when the pod was deleted.  The container used to be Running");
  if (!pod.metadata.deletion_timestamp) ++status.restart_count;
  return status;
}

api::ContainerStatus status_with(const InstanceReport& report, const api::ContainerStatus* old) {
  api::ContainerStatus status;
  status.name = report.instance.name;
  status.image = report.image;
  status.image_id = report.image_id;
  status.container_id = report.container_id;
  status.restart_count = report.restart_count;
  if (old != nullptr) status.volume_mounts = old->volume_mounts;
  switch (report.instance.state) {
    case State::kRunning:
      status.state.running = {report.started_at};
      break;
    case State::kExited: {
      api::ContainerState::Terminated& ended = status.state.terminated.emplace();
      ended.exit_code = report.instance.exit_code;
      ended.signal = report.signal;
      ended.reason = report.instance.reason;
      ended.message = report.message;
      ended.started_at = report.started_at;
      ended.finished_at = report.finished_at;
      ended.container_id = report.container_id;
      break;
    }
    case State::kUnknown:
      if (old != nullptr && old->state.running) {
        status.state.terminated = lost("The container could not be located when the pod was terminated");
        status.restart_count = old->restart_count + 1;
        break;
      }
      [[fallthrough]];
    case State::kCreated:
    case State::kInTransition:
      status.state.waiting.emplace();
  }
  return status;
}

void apply_failure(const api::Pod& pod, const api::Container& container, ContainerKind kind, const Instance* newest,
                   const StartFailure& failure, api::ContainerStatus& status) {
  const bool done =
      kind == ContainerKind::kInit && newest != nullptr && newest->state == State::kExited && newest->exit_code == 0;
  if (done || !is_start_due(pod, container, newest)) return;
  if (status.state.terminated) status.last_state = status.state;
  status.state = {};
  status.state.waiting = {failure.reason, failure.message};
}

/// The part of a container's output that one record of its log holds. A record is "TIME STREAM TAGS TEXT"; the first of
/// the tags is F where a line of the output ends, and P where the line continues in the next record or the output
/// ended.
std::string output_of(std::string_view record) {
  for (int field = 0; field < 2; ++field) {
    const std::size_t blank = record.find(' ');
    if (blank == std::string_view::npos) return "\n";
    record.remove_prefix(blank + 1);
  }
  const std::size_t blank = record.find(' ');
  if (blank == std::string_view::npos) return "\n";
  const std::string_view tags = record.substr(0, blank);
  const bool is_part = tags.substr(0, tags.find(':')) == "P";
  return std::string(record.substr(blank + 1)) + (is_part ? "" : "\n");
}

std::string end_of_log(std::string_view log) {
  std::deque<std::string> lines;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    lines.push_back(output_of(log.substr(0, end)));
    if (lines.size() > kLogLinesMax) lines.pop_front();
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text.size() > kLogBytesMax ? text.substr(text.size() - kLogBytesMax) : text;
}

}  // namespace

std::vector<api::ContainerStatus> container_statuses(const api::Pod& pod, ContainerKind kind,
                                                     const std::vector<InstanceReport>& reports,
                                                     const std::vector<api::ContainerStatus>& previous,
                                                     const StartFailures& failures) {
  std::vector<api::ContainerStatus> statuses;
  for (const api::Container& container : list_of(pod, kind)) {
    const api::ContainerStatus* old = find(previous, container.name);
    std::vector<const InstanceReport*> own;
    for (const InstanceReport& each : reports) {
      if (each.instance.name == container.name) own.push_back(&each);
    }
    api::ContainerStatus status = own.empty() ? status_without(pod, container, old) : status_with(*own.front(), old);
    if (own.size() > 1) status.last_state = status_with(*own[1], old).state;
    if (const auto failure = failures.find(container.name); failure != failures.end())
      apply_failure(pod, container, kind, own.empty() ? nullptr : &own.front()->instance, failure->second, status);
    statuses.push_back(std::move(status));
  }
  if (kind != ContainerKind::kInit) std::ranges::sort(statuses, {}, &api::ContainerStatus::name);
  return statuses;
}

std::string termination_message(const MessageSources& sources) {
  std::string text;
  if (sources.file) {
    const std::string& file = *sources.file;
    text = file.size() > kMessageFileMax ? file.substr(file.size() - kMessageFileMax) : file;
  }
  if (text.empty() && sources.from_logs && sources.exit_code != 0 && sources.reason != "ContainerCannotRun")
    text = end_of_log(sources.log);
  if (sources.runtime.empty()) return text;
  return text.empty() ? sources.runtime : sources.runtime + ": " + text;
}

}  // namespace spillway::containers
