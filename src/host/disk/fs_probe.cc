#include "host/disk/fs_probe.h"

#include "host/kernel/kernel_file.h"

#include <sys/statvfs.h>

#include <algorithm>
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

bool FsProbe::begin() {
  begun_ = loop_.now();
  return thread_.submit([this, handover = handover_, path = path_, read_now = read_]() -> runtime::Loop::Task {
    Result<api::FsStats> read = read_now(path);
    const std::lock_guard lock(handover->mutex);
    handover->answer = std::move(read);
    handover->arrived.notify_one();
    return [this] { on_call_ended(); };  // run only while the thread's owner lives
  });
}

void FsProbe::refresh() {
  take_answer();  // a late answer of an earlier call
  if (thread_.busy() || !begin()) return;
  {
    std::unique_lock lock(handover_->mutex);
    handover_->arrived.wait_for(lock, kProbeTimeout, [this] { return handover_->answer.has_value(); });
  }
  take_answer();
}

void FsProbe::take_answer() {
  std::optional<Result<api::FsStats>> read;
  {
    const std::lock_guard lock(handover_->mutex);
    read = std::exchange(handover_->answer, std::nullopt);
  }
  if (!read || !*read) return;  // the old answer ages
  (*read)->time = begun_.wall;
  answer_ = Answer{**std::move(read), begun_.mono};
}

void FsProbe::on_call_ended() {
  take_answer();
  call_waiters();
  if (!waiters_.empty()) begin();
}

void FsProbe::call_waiters() {
  std::vector<Waiter> due;
  std::erase_if(waiters_, [&](Waiter& waiter) {
    if (waiter.since > begun_.mono) return false;
    due.push_back(std::move(waiter));
    return true;
  });
  for (const Waiter& waiter : due) waiter.then();
}

void FsProbe::after_reading_since(Instant since, std::function<void()> then) {
  waiters_.push_back({since, std::move(then)});
  if (!thread_.busy()) begin();
}

std::optional<api::FsStats> FsProbe::latest(Instant now) const {
  if (!answer_ || now - answer_->begun > kAgeMax) return std::nullopt;
  return answer_->stats;
}

}  // namespace spillway::host
