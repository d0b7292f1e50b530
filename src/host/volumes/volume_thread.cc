#include "host/volumes/volume_thread.h"

#include "host/volumes/managed_file.h"

#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kJobsMax = 10'000;

/// What the thread mounts is its own.
Outcome enter_namespace() {
  thread_local const Outcome entered = VolumeSet::enter_namespace();
  return entered;
}

Result<std::vector<OpenedMount>> open_all(VolumeSet& volumes, const VolumeThread::Mounts& wanted) {
  SPILLWAY_TRY_VOID(enter_namespace());
  std::vector<OpenedMount> mounts;
  for (const agent::VolumeBinding& each : wanted.volumes) {
    SPILLWAY_TRY(mount, volumes.open(each, wanted.container));
    mounts.push_back(std::move(mount));
  }
  for (const agent::ManagedFile& each : wanted.files) {
    SPILLWAY_TRY(mount, open_managed_file(wanted.folder, each, wanted.first_id));
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace

VolumeThread::VolumeThread(runtime::Loop& loop) : thread_(loop, kJobsMax) {}

bool VolumeThread::set_up(std::shared_ptr<VolumeSet> volumes, agent::SetUpVolumes command, WallTime at,
                          std::function<void(agent::VolumesSetUp)> done) {
  return thread_.submit([volumes = std::move(volumes), command = std::move(command), at,
                         done = std::move(done)]() mutable -> runtime::Loop::Task {
    agent::VolumesSetUp answer{command.uid, command.id, {}};
    for (const agent::VolumeSetup& each : command.volumes) {
      Outcome made = enter_namespace();
      if (made) made = volumes->set_up(each, at);
      if (!made) answer.failures.push_back({each.name, made.error().text()});
    }
    volumes.reset();
    return [done = std::move(done), answer = std::move(answer)]() mutable { done(std::move(answer)); };
  });
}

bool VolumeThread::open(std::shared_ptr<VolumeSet> volumes, Mounts wanted,
                        std::function<void(Result<std::vector<OpenedMount>>)> done) {
  return thread_.submit([volumes = std::move(volumes), wanted = std::move(wanted),
                         done = std::move(done)]() mutable -> runtime::Loop::Task {
    // A task is copied; what was opened is not.
    const auto opened = std::make_shared<Result<std::vector<OpenedMount>>>(open_all(*volumes, wanted));
    volumes.reset();
    return [done = std::move(done), opened] { done(std::move(*opened)); };
  });
}

bool VolumeThread::release(std::shared_ptr<VolumeSet> volumes, std::function<void()> done) {
  return thread_.submit([volumes = std::move(volumes), done = std::move(done)]() mutable -> runtime::Loop::Task {
    volumes.reset();
    return std::move(done);
  });
}

}  // namespace spillway::host
