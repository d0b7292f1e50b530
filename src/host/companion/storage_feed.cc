#include "host/companion/storage_feed.h"

#include "host/disk/fs_probe.h"
#include "host/kernel/kernel_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

namespace spillway::host {
namespace {

std::string key_of(const PodFolder& pod, const agent::DiskVolume& volume) {
  return pod.uid + "/" + volume.name;
}

Result<std::uint64_t> read_device(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return errno_error(path, errno);
  return std::uint64_t{status.st_dev};
}

Result<agent::FileSystem> read_file_system(const std::string& path) {
  SPILLWAY_TRY(device, read_device(path));
  SPILLWAY_TRY(sizes, read_fs(path));
  return agent::FileSystem{std::move(sizes), device};
}

/// Keeps the first problem, which is the one reported.
void record_problem(std::string& problem, const Error& error) {
  if (problem.empty()) problem = error.text();
}

void add_file_system(const std::string& mountpoint, agent::StorageReading& reading) {
  if (reading.file_systems.contains(mountpoint)) return;
  if (reading.file_systems.size() >= StorageFeed::kFileSystemsMax) {
    return record_problem(reading.problem,
                          make_error(ErrorCode::kInvalid, "more than {} file systems", StorageFeed::kFileSystemsMax));
  }
  Result<agent::FileSystem> found = read_file_system(mountpoint);
  if (!found) return record_problem(reading.problem, found.error());
  found->sizes.time = reading.begun.wall;
  reading.file_systems.emplace(mountpoint, *std::move(found));
}

void stamp(std::optional<api::FsStats>& files, WallTime at) {
  if (files) files->time = at;
}

/// Reads runtime and disks once; runs on the thread.
Result<agent::StorageReading> read_storage(CriClient& client, const std::string& node_directory,
                                           const std::vector<PodFolder>& pods, Now begun) {
  agent::StorageReading reading;
  reading.begun = begun;
  SPILLWAY_TRY(report, client.report());
  reading.runtime = std::move(report);
  const Result<std::uint64_t> device = read_device(node_directory);
  if (device) {
    reading.node_device = *device;
  } else {
    record_problem(reading.problem, device.error());
  }
  const agent::RuntimeReport& runtime = reading.runtime;
  if (!runtime.images)
    record_problem(reading.problem, Error{ErrorCode::kNotFound, "it names no image file system", "ImageFsInfo"});
  if (runtime.images) add_file_system(runtime.images->mountpoint, reading);
  if (runtime.containers_apart) add_file_system(runtime.containers_apart->mountpoint, reading);
  for (const auto& [container, layer] : runtime.writable_layers) add_file_system(layer.mountpoint, reading);
  for (const PodFolder& pod : pods) {
    agent::PodFiles files = read_pod_files(pod);
    for (auto& [container, logs] : files.logs) logs.time = begun.wall;
    stamp(files.pod_logs, begun.wall);
    stamp(files.etc_hosts, begun.wall);
    reading.files.emplace(pod.uid, std::move(files));
  }
  return reading;
}

}  // namespace

StorageFeed::StorageFeed(runtime::Loop& loop, Options options, telemetry::Log log, std::function<void()> on_reading)
    : loop_(loop),
      options_(std::move(options)),
      log_(std::move(log)),
      on_reading_(std::move(on_reading)),
      client_(std::make_shared<CriClient>(options_.socket, options_.image_socket)),
      volumes_(loop),
      thread_(loop, 1) {}

StorageFeed::~StorageFeed() {
  client_->stop();
}

void StorageFeed::refresh(std::vector<PodFolder> pods) {
  std::vector<DiskUsage::Place> places;
  for (const PodFolder& pod : pods) {
    for (const agent::DiskVolume& volume : pod.volumes) {
      places.push_back(
          {key_of(pod, volume), fmt::format("{}/volumes/{}/{}", pod.directory, volume.plugin, volume.name)});
    }
  }
  volumes_.refresh(std::move(places));
  const Now now = loop_.now();
  if (thread_.busy() || (ended_ && now.mono - *ended_ < kRoundInterval)) return;
  const bool queued = thread_.submit([this, client = client_, directory = options_.node_directory,
                                      pods = std::move(pods), now]() -> runtime::Loop::Task {
    // The returned function runs on the loop while the thread's owner lives: only it may use `this`.
    return [this, reading = read_storage(*client, directory, pods, now)]() mutable { take(std::move(reading)); };
  });
  if (!queued) log_.error("storage usage not requested", {});
}

void StorageFeed::take(Result<agent::StorageReading> reading) {
  ended_ = loop_.now().mono;
  const std::string problem = reading ? reading->problem : reading.error().text();
  if (problem != std::exchange(problem_, problem)) {
    if (!problem.empty()) {
      log_.warning("storage figures incomplete", {{"runtime", options_.socket}, {"error", problem}});
    } else {
      log_.info("storage figures complete", {{"runtime", reading->runtime.runtime}});
    }
  }
  if (!reading) return;  // the last readings stay, with their age
  reading_ = *std::move(reading);
  on_reading_();
}

const agent::StorageReading* StorageFeed::latest(Instant now) const {
  return reading_ && now - reading_->begun.mono <= kAgeMax ? &*reading_ : nullptr;
}

std::vector<api::VolumeStats> StorageFeed::volumes(const PodFolder& pod,
                                                   const std::optional<api::FsStats>& node_fs) const {
  std::vector<api::VolumeStats> stats;
  for (const agent::DiskVolume& volume : pod.volumes) {
    const std::optional<DirectoryUsage> walked = volumes_.latest(key_of(pod, volume));
    if (!walked) continue;
    api::FsStats fs = node_fs.value_or(api::FsStats{});
    fs.time = walked->at;
    fs.used_bytes = walked->used_bytes;
    fs.inodes_used = walked->inodes;
    stats.push_back({volume.name, std::move(fs)});
  }
  return stats;
}

}  // namespace spillway::host
