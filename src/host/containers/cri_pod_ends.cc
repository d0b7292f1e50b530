#include "host/containers/cri_pod_ends.h"

#include "host/cgroup/cgroup_kill.h"
#include "host/containers/cri_container_ends.h"
#include "host/containers/cri_run.h"
#include "host/containers/cri_sandboxes.h"
#include "host/pods/pod_runtime.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::host {

enum class PodRemovalStep : std::uint8_t {
  kStopSandbox,    // the pod's sandboxes, one after the other; kForget if there is none left
  kRemoveSandbox,  // with what is in it; back to kStopSandbox
  kForget,         // the rest of the pod
};

namespace {

namespace fs = std::filesystem;
using api::Json;

/// Time for the runtime to report the exit of containers whose processes have gone.
constexpr Duration kLastWords = seconds(1);
constexpr Duration kRemoveRetry = seconds(10);
constexpr Duration kRemoveMaxAtEnd = seconds(10);       // one call, while the node shuts down
constexpr Duration kDirectoryRemovalMax = seconds(10);  // at the end: so long their file systems may hang

constexpr auto kStepsOfPodRemoval = [] {
  using enum PodRemovalStep;
  return std::array{kStopSandbox, kRemoveSandbox, kForget};
}();

}  // namespace

/// The removal of one ended pod from the runtime, then from this node.
class CriPodRemoval final : public CriRun<CriPodRemoval, PodRemovalStep> {
 public:
  CriPodRemoval(CriPodEnds& ends, const CriPod& pod)
      : CriRun(kStepsOfPodRemoval),
        ends_(ends),
        uid_(pod.command.uid),
        left_(pod.old_sandboxes.begin(), pod.old_sandboxes.end()) {
    if (!pod.sandbox.empty()) left_.push_back(pod.sandbox);
  }

 private:
  Next run(PodRemovalStep step) override {
    switch (step) {
      case PodRemovalStep::kStopSandbox:
        return stop_sandbox();
      case PodRemovalStep::kRemoveSandbox:
        return remove_sandbox();
      case PodRemovalStep::kForget:
        break;
    }
    ends_.forget(uid_);
    return Next::kEnd;
  }

  Next stop_sandbox() {
    if (ends_.pods_.find(uid_) == nullptr) return Next::kEnd;
    if (left_.empty()) {
      steps_.go_to(PodRemovalStep::kForget);
      return Next::kStep;
    }
    deadline_ = ends_.pods_.is_closing() ? kRemoveMaxAtEnd : Duration(kRuntimeCallMax);
    ends_.host_.calls.call("StopPodSandbox", sandbox_request(left_.back()), deadline_,
                           then(&CriPodRemoval::on_stopped));
    return Next::kWait;
  }

  Next on_stopped(const Result<Json>& stopped) {
    return stopped || is_gone(stopped.error()) ? Next::kStep : retry(stopped.error());
  }

  Next remove_sandbox() {
    ends_.host_.calls.call("RemovePodSandbox", sandbox_request(left_.back()), deadline_,
                           then(&CriPodRemoval::on_removed));
    return Next::kWait;
  }

  Next on_removed(const Result<Json>& removed) {
    if (!removed && !is_gone(removed.error())) return retry(removed.error());
    left_.pop_back();
    steps_.go_to(PodRemovalStep::kStopSandbox);
    return Next::kStep;
  }

  /// Repeats the removal of a sandbox later; while the node shuts down it is left to the next start.
  Next retry(const Error& error) {
    ends_.host_.log.warning("sandbox not removed", {{"pod_uid", uid_}, {"error", error.text()}});
    if (ends_.pods_.is_closing()) {
      steps_.go_to(PodRemovalStep::kForget);
      return Next::kStep;
    }
    steps_.go_to(PodRemovalStep::kStopSandbox);
    ends_.host_.loop.at(ends_.host_.loop.now().mono + kRemoveRetry,
                        ends_.alive_.guard([self = shared_from_this()] { self->advance(); }));
    return Next::kWait;
  }

  static bool is_gone(const Error& error) { return error.code == ErrorCode::kNotFound; }

  CriPodEnds& ends_;
  std::string uid_;
  std::vector<std::string> left_;  // sandboxes that are not removed yet
  Duration deadline_{};            // for the calls about one sandbox
};

CriPodEnds::~CriPodEnds() {
  for (auto& [uid, ending] : endings_) host_.loop.cancel(ending.timer);
}

void CriPodEnds::stop(const agent::StopPod& command) {
  CriPod* pod = pods_.find(command.uid);
  const bool removal_began = pod != nullptr && pod->removing && !endings_.contains(command.uid);
  if (pod == nullptr || removal_began) return host_.events.emit(agent::PodStopped{command.uid});
  pod->frees_storage = pod->frees_storage || command.storage_freed;
  end(command.uid, command.grace);
}

void CriPodEnds::remove(const agent::RemovePod& command) {
  CriPod* pod = pods_.find(command.uid);
  if (pod == nullptr || std::exchange(pod->removing, true)) return;
  pods_.removals().begin(command.uid);
  if (endings_.contains(command.uid)) return;
  if (!pod->stopping || !pod->containers.empty()) return end(command.uid, Duration::zero());
  start_removal(command.uid);
}

void CriPodEnds::shut_down(Duration grace, std::function<void()> done) {
  pods_.close();
  on_shut_down_ = std::move(done);
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pods_.all()) uids.push_back(uid);
  for (const std::string& uid : uids) {
    pods_.removals().begin(uid);
    if (std::exchange(pods_.find(uid)->removing, true) && !endings_.contains(uid)) continue;
    end(uid, grace);
  }
  report_shut_down();
}

void CriPodEnds::end(const std::string& uid, Duration grace) {
  CriPod& pod = *pods_.find(uid);
  pod.stopping = true;
  means_.container_ends.report(pod);
  const Instant due = host_.loop.now().mono + grace + (grace == Duration{} ? Duration{} : kRuntimeSlack);
  if (endings_.contains(uid)) {
    host_.loop.cancel(endings_.at(uid).timer);
    if (endings_.at(uid).due <= due) return pursue(uid);
    endings_.at(uid).due = due;
  } else {
    endings_[uid] = Ending{.due = due};
  }
  endings_.at(uid).at_once = grace == Duration{};
  if (pod.broken || !pod.cgroup) return finish(uid);
  means_.container_ends.stop_all(uid, grace);
  pursue(uid);
}

/// Kills until no process of the pod is left; its sandbox is removed last.
void CriPodEnds::pursue(const std::string& uid) {
  CriPod* pod = pods_.find(uid);
  if (pod == nullptr || !endings_.contains(uid)) return;
  Ending& ending = endings_.at(uid);
  host_.loop.cancel(ending.timer);
  const Instant now = host_.loop.now().mono;
  if (pod->containers.empty() && !pod->sandbox.empty()) stop_sandbox(uid);
  const Result<bool> is_now_empty = is_empty(pod->cgroup);
  const bool empty = is_now_empty && *is_now_empty;
  if (!empty && now >= ending.due) kill(*pod, ending);
  if (empty && !ending.empty) ending.empty = now;
  if (!empty) ending.empty.reset();
  const bool reported = pod->containers.empty() || (ending.empty && now - *ending.empty >= kLastWords);
  if (empty && reported) return finish(uid);
  ending.timer = host_.loop.at(now + ending.waits.next(), alive_.guard([this, uid] { pursue(uid); }));
}

void CriPodEnds::kill(const CriPod& pod, Ending& ending) {
  const Outcome killed = kill_all(pod.cgroup);
  if (std::exchange(ending.killed, true) || ending.at_once || pod.containers.empty()) return;
  host_.log.warning("a pod's cgroup is killed: its time is over",
                    {{"pod", pod.command.pod.text()}, {"error", killed ? std::string() : killed.error().text()}});
  host_.events.notify(pod.command.uid, {}, agent::PodNotice::Weight::kWarning, "PodCgroupKilled",
                      "The container runtime did not end the pod in time: its cgroup was killed");
}

void CriPodEnds::stop_sandbox(const std::string& uid) {
  const CriPod& pod = *pods_.find(uid);
  const auto ending = endings_.find(uid);
  if (ending != endings_.end() && std::exchange(ending->second.sandbox_stopping, true)) return;
  host_.calls.call("StopPodSandbox", sandbox_request(pod.sandbox), kRuntimeCallMax,
                   [this, uid](const Result<Json>& /*stopped*/) { pursue(uid); });
}

void CriPodEnds::finish(const std::string& uid) {
  CriPod& pod = *pods_.find(uid);
  host_.loop.cancel(endings_.at(uid).timer);
  endings_.erase(uid);
  for (auto& [name, container] : pod.containers) {
    means_.container_ends.unwatch(container);
    pod.ended[{name, container.attempt}] = container.id;
  }
  pod.containers.clear();
  pods_.change_target(pod);
  if (pod.frees_storage && !pod.removing) return free_storage(uid);
  host_.events.emit(agent::PodStopped{uid});
  if (pod.removing) start_removal(uid);
}

/// Removes the containers' writable layers and the volumes; then, or after a while, reads the disks and reports that
/// the pod has stopped.
void CriPodEnds::free_storage(const std::string& uid) {
  CriPod& pod = *pods_.find(uid);
  const auto left = std::make_shared<std::size_t>(pod.ended.size() + 2);
  const auto report = [this, uid, identity = pod.identity] {
    if (!pods_.is_made_anew(uid, identity)) host_.events.emit(agent::PodStopped{uid});
  };
  const auto on_freed = alive_.guard([this, report, left](std::size_t done) {
    if (*left == 0) return;
    *left = done < *left ? *left - done : 0;
    if (*left == 0) means_.storage.when_disks_read(host_.loop.now().mono, report);
  });
  host_.loop.at(host_.loop.now().mono + kFreeMax, [on_freed, left] { on_freed(*left); });
  for (const auto& [instance, id] : pod.ended)
    host_.calls.call("RemoveContainer", Json::object({{"container_id", id}}), kRuntimeCallMax,
                     [on_freed](const Result<Json>& /*removed*/) { on_freed(1); });
  pods_.removals().job_began(uid);
  const auto on_removed = alive_.guard([this, uid, on_freed] {
    on_freed(1);
    pods_.removals().job_ended(uid);
  });
  const auto remove = alive_.guard(
      [this, on_removed, folder = pod.directory + "/_volumes"] { remove_volume_files(folder, on_removed); });
  const bool queued = pod.volumes && means_.volumes.release(std::exchange(pod.volumes, nullptr), remove);
  if (!queued) remove();
  on_freed(1);
}

void CriPodEnds::remove_volume_files(const std::string& folder, const std::function<void()>& then) {
  const bool queued = means_.files.submit([folder, then]() -> runtime::Loop::Task {
    std::error_code error;
    fs::remove_all(folder, error);
    return then;
  });
  if (!queued) then();
}

void CriPodEnds::start_removal(const std::string& uid) {
  std::make_shared<CriPodRemoval>(*this, *pods_.find(uid))->advance();
}

void CriPodEnds::forget(const std::string& uid) {
  const auto entry = pods_.all().find(uid);
  CriPod pod = std::move(entry->second);
  pods_.all().erase(entry);
  means_.cgroups.update_class_limits();
  for (const auto& [name, container] : pod.containers) means_.log_folders.unlink(pod.command.pod, name, container.id);
  for (const auto& [instance, id] : pod.ended) means_.log_folders.unlink(pod.command.pod, instance.first, id);
  if (pod.cgroup) means_.cgroups.remove(pod.command.qos, uid);
  remove_directories(pod);  // last: a later pod may begin here
  if (pods_.is_closing()) report_shut_down();
}

/// Unmounts the volumes, then deletes the files of the pod: the last job of its removal.
void CriPodEnds::remove_directories(CriPod& pod) {
  ++directories_in_removal_;
  const auto left = alive_.guard([this, uid = pod.command.uid] {
    --directories_in_removal_;
    pods_.removals().job_ended(uid);
    if (pods_.is_closing()) report_shut_down();
  });
  const auto remove_folders = alive_.guard([this, left, directory = pod.directory, logs = pod.logs] {
    if (directory.empty()) return left();
    const bool queued = means_.files.submit([directory, logs, left]() -> runtime::Loop::Task {
      std::error_code error;
      fs::remove_all(logs, error);  // before the directory, by which it is found again
      fs::remove_all(directory, error);
      return left;
    });
    if (queued) return;
    host_.log.warning("pod directory not removed", {{"directory", directory}});
    left();
  });
  const bool queued = pod.volumes && means_.volumes.release(std::move(pod.volumes), remove_folders);
  if (!queued) remove_folders();
}

/// Directories of pods are waited for, but not for ever: a file system may hang.
void CriPodEnds::report_shut_down() {
  if (!pods_.all().empty() || means_.cgroups.stopping() > 0 || !on_shut_down_) return;
  if (directories_in_removal_ == 0) return host_.loop.post(std::exchange(on_shut_down_, {}));
  if (std::exchange(waits_for_directories_, true)) return;
  host_.loop.at(host_.loop.now().mono + kDirectoryRemovalMax, alive_.guard([this] {
    if (on_shut_down_) std::exchange(on_shut_down_, {})();
  }));
}

}  // namespace spillway::host
