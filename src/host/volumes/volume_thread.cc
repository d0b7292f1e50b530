#include "host/volumes/volume_thread.h"

#include "host/kernel/kernel_file.h"
#include "host/volumes/managed_file.h"
#include "host/volumes/mount_points.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kJobsMax = 10'000;

Result<std::vector<OpenedMount>> open_all(VolumeSet& volumes, const VolumeThread::Mounts& wanted) {
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

Result<PlacedMount> write_file(const VolumeThread::Mounts& wanted, const agent::ManagedFile& file) {
  std::error_code error;
  std::filesystem::create_directories(wanted.folder, error);
  if (error) return errno_error(wanted.folder, error.value());
  const std::string path =
      fmt::format("{}/{}", wanted.folder, std::filesystem::path(file.container_path).filename().string());
  std::string text = file.content;
  if (!file.machine_file.empty()) {
    SPILLWAY_TRY(machine, read_file(file.machine_file));
    text += machine;
  }
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) return errno_error(path, errno);
  SPILLWAY_TRY_VOID(write_all(fd.get(), text + file.more, path));
  agent::VolumeBinding binding;
  binding.container_path = file.container_path;
  return PlacedMount{path, std::move(binding)};
}

Result<std::vector<PlacedMount>> place_all(VolumeSet& volumes, const VolumeThread::Mounts& wanted) {
  std::vector<PlacedMount> mounts;
  for (const agent::VolumeBinding& each : wanted.volumes) {
    SPILLWAY_TRY(mount, volumes.place(each, wanted.container));
    mounts.push_back(std::move(mount));
  }
  for (const agent::ManagedFile& each : wanted.files) {
    SPILLWAY_TRY(mount, write_file(wanted, each));
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace

VolumeThread::VolumeThread(runtime::Loop& loop, Namespace mounts_in) : mounts_in_(mounts_in), thread_(loop, kJobsMax) {}

/// Mounts of the thread stay in its own namespace.
Outcome VolumeThread::enter_own(Namespace mounts_in, const Home& home) {
  if (mounts_in == Namespace::kMachine || *home >= 0) return {};
  SPILLWAY_TRY_VOID(VolumeSet::enter_namespace());
  *home = ::open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
  if (*home < 0) return errno_error("/proc/thread-self/ns/mnt", errno);
  return {};
}

bool VolumeThread::enter(UniqueFd found, std::function<void(Result<std::vector<std::string>>)> done) {
  return thread_.submit([fd = std::move(found), home = home_, done = std::move(done)]() mutable -> runtime::Loop::Task {
    Outcome entered = VolumeSet::enter_namespace(fd.get());
    if (entered) *home = fd.release();
    Result<std::string> text =
        entered ? read_file("/proc/thread-self/mountinfo") : Result<std::string>(entered.error());
    Result<std::vector<std::string>> mounts =
        text ? mount_points(*text) : Result<std::vector<std::string>>(text.error());
    return [done = std::move(done), mounts = std::move(mounts)]() mutable { done(std::move(mounts)); };
  });
}

bool VolumeThread::set_up(std::shared_ptr<VolumeSet> volumes, agent::SetUpVolumes command, WallTime at,
                          std::function<void(agent::VolumesSetUp)> done) {
  return thread_.submit([volumes = std::move(volumes), command = std::move(command), at, own = mounts_in_, home = home_,
                         done = std::move(done)]() mutable -> runtime::Loop::Task {
    agent::VolumesSetUp answer{command.uid, command.id, {}};
    for (const agent::VolumeSetup& each : command.volumes) {
      Outcome made = enter_own(own, home);
      if (made) made = volumes->set_up(each, at);
      if (!made) answer.failures.push_back({each.name, made.error().text()});
    }
    volumes.reset();
    return [done = std::move(done), answer = std::move(answer)]() mutable { done(std::move(answer)); };
  });
}

bool VolumeThread::open(std::shared_ptr<VolumeSet> volumes, Mounts wanted,
                        std::function<void(Result<std::vector<OpenedMount>>)> done) {
  return thread_.submit([volumes = std::move(volumes), wanted = std::move(wanted), own = mounts_in_, home = home_,
                         done = std::move(done)]() mutable -> runtime::Loop::Task {
    const Outcome entered = enter_own(own, home);
    // Shared, because a task must be copyable and the opened mounts are not.
    const auto opened = std::make_shared<Result<std::vector<OpenedMount>>>(
        entered ? open_all(*volumes, wanted) : Result<std::vector<OpenedMount>>(entered.error()));
    volumes.reset();
    return [done = std::move(done), opened] { done(std::move(*opened)); };
  });
}

bool VolumeThread::place(std::shared_ptr<VolumeSet> volumes, Mounts wanted,
                         std::function<void(Result<std::vector<PlacedMount>>)> done) {
  return thread_.submit([volumes = std::move(volumes), wanted = std::move(wanted),
                         done = std::move(done)]() mutable -> runtime::Loop::Task {
    Result<std::vector<PlacedMount>> placed = place_all(*volumes, wanted);
    volumes.reset();
    return [done = std::move(done), placed = std::move(placed)]() mutable { done(std::move(placed)); };
  });
}

void VolumeThread::read(const std::shared_ptr<VolumeSet>& volumes, const agent::ReadVolumeFile& command,
                        const std::function<void(agent::VolumeFileRead)>& done) {
  const auto fail = [&](std::string_view why) {
    done({command.uid, command.id, make_error(ErrorCode::kServiceUnavailable, "{}", why)});
  };
  if (volumes == nullptr) return fail("the pod is unknown, or is being stopped");
  const bool queued =
      thread_.submit([volumes = volumes, command = command, done = done]() mutable -> runtime::Loop::Task {
        agent::VolumeFileRead answer{command.uid, command.id, volumes->read_file(command.volume, command.path)};
        volumes.reset();
        return [done = std::move(done), answer = std::move(answer)]() mutable { done(std::move(answer)); };
      });
  if (!queued) fail("too many volumes are being made");
}

bool VolumeThread::release(std::shared_ptr<VolumeSet> volumes, std::function<void()> done) {
  return thread_.submit([volumes = std::move(volumes), done = std::move(done)]() mutable -> runtime::Loop::Task {
    volumes.reset();
    return std::move(done);
  });
}

}  // namespace spillway::host
