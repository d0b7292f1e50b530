#include "host/disk/fs_probe.h"

#include "host/kernel/kernel_file.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kAgeMax = minutes(2);
constexpr Duration kProbeTimeout = milliseconds(2);

}  // namespace

Result<api::FsStats> read_fs(const std::string& path) {
  struct statvfs fs = {};
  if (::statvfs(path.c_str(), &fs) != 0) return errno_error("statfs " + path, errno);
  const std::uint64_t block = fs.f_frsize;
  api::FsStats stats;
  stats.capacity_bytes = block * fs.f_blocks;
  stats.available_bytes = block * fs.f_bavail;
  stats.used_bytes = block * (fs.f_blocks - fs.f_bfree);
  stats.inodes = fs.f_files;
  stats.inodes_free = fs.f_ffree;
  stats.inodes_used = fs.f_files - fs.f_ffree;
  return stats;
}

FsProbe::FsProbe(runtime::Loop& loop, std::string path, Read read)
    : loop_(loop), path_(std::move(path)), read_(std::move(read)), thread_(loop, 1) {}

void FsProbe::refresh() {
  take_answer();  // takes the late answer of an earlier call
  if (thread_.busy()) return;
  const bool queued = thread_.submit([this, desk = desk_, path = path_, read_now = read_]() -> runtime::Loop::Task {
    Result<api::FsStats> read = read_now(path);
    const std::lock_guard lock(desk->mutex);
    desk->answer = std::move(read);
    desk->arrived.notify_one();
    return [this] { take_answer(); };  // run only while the thread's owner lives
  });
  if (!queued) return;
  {
    std::unique_lock lock(desk_->mutex);
    desk_->arrived.wait_for(lock, kProbeTimeout, [this] { return desk_->answer.has_value(); });
  }
  take_answer();
}

void FsProbe::take_answer() {
  std::optional<Result<api::FsStats>> read;
  {
    const std::lock_guard lock(desk_->mutex);
    read = std::exchange(desk_->answer, std::nullopt);
  }
  if (!read || !*read) return;  // the old answer ages
  const Now now = loop_.now();
  (*read)->time = now.wall;
  answer_ = Answer{**std::move(read), now.mono};
}

std::optional<api::FsStats> FsProbe::latest(Instant now) const {
  if (!answer_ || now - answer_->at > kAgeMax) return std::nullopt;
  return answer_->stats;
}

}  // namespace spillway::host
