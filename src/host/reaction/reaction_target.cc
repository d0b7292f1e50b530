#include "host/reaction/reaction_target.h"

#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kStatBytesMax = 16'384;
constexpr std::size_t kListBytesMax = 4096;

std::string_view pread_text(int fd, char* buffer, std::size_t size) noexcept {
  const ssize_t got = ::pread(fd, buffer, size, 0);
  return {buffer, got > 0 ? static_cast<std::size_t>(got) : 0};
}

struct Pids {
  std::array<pid_t, DyingProcesses::kCountMax> all;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::size_t count = 0;

  std::span<const pid_t> list() const noexcept { return std::span(all).first(count); }
};

void read_pids(int directory, Pids& found) noexcept {
  const UniqueFd file(::openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC));
  if (!file) return;
  std::array<char, kListBytesMax> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::string_view text = pread_text(file.get(), buffer.data(), buffer.size());
  while (!text.empty() && found.count < found.all.size()) {
    const auto pid = parse_number(take_line(text));
    if (pid && *pid > 0) found.all[found.count++] = static_cast<pid_t>(*pid);
  }
}

UniqueFd open_below(const CgroupDir& cgroup, const char* file, int flags, Controller controller = Controller::kMemory) {
  const int directory = cgroup.fd(controller);
  return directory < 0 ? UniqueFd() : UniqueFd(::openat(directory, file, flags | O_CLOEXEC));
}

}  // namespace

std::optional<Bytes> find_memory_stat(std::string_view text, std::string_view key) noexcept {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!line.starts_with(key)) continue;
    const std::optional<std::uint64_t> value = parse_number(line.substr(key.size()));
    if (!value) return std::nullopt;
    return Bytes{static_cast<std::int64_t>(*value)};
  }
  return std::nullopt;
}

ReactionTarget::ReactionTarget(const CgroupDir& parent, const CgroupDir& pod,
                               std::vector<std::shared_ptr<ContainerHandle>> containers, KillScope scope)
    : v1_(pod.version() == CgroupVersion::kV1),
      usage_(open_below(pod, v1_ ? "memory.usage_in_bytes" : "memory.current", O_RDONLY)),
      stat_(open_below(pod, "memory.stat", O_RDONLY)),
      kill_(v1_ || scope == KillScope::kContainers ? UniqueFd() : open_below(pod, "cgroup.kill", O_WRONLY)),
      containers_(std::move(containers)) {
  const char* file = v1_ ? "cpu.shares" : "cpu.weight";
  weights_ = {open_below(parent, file, O_WRONLY, Controller::kCpu), open_below(pod, file, O_WRONLY, Controller::kCpu)};
}

std::optional<Bytes> ReactionTarget::usage() const noexcept {
  std::array<char, 32> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const auto value = parse_number(pread_text(usage_.get(), buffer.data(), buffer.size()));
  if (!value) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(*value)};
}

std::optional<Bytes> ReactionTarget::inactive_file() const noexcept {
  std::array<char, kStatBytesMax> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  return find_memory_stat(pread_text(stat_.get(), buffer.data(), buffer.size()), inactive_key());
}

std::string_view ReactionTarget::inactive_key() const noexcept {
  return v1_ ? "total_inactive_file " : "inactive_file ";
}

void ReactionTarget::measure_containers(Bytes pod_working_set, std::span<std::optional<Bytes>> into) const noexcept {
  if (containers_.size() == 1 && !into.empty()) {
    into.front() = pod_working_set;
    return;
  }
  std::array<char, kStatBytesMax> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t i = 0; i < containers_.size() && i < into.size(); ++i) {
    const int directory = containers_[i]->directory.get();
    const UniqueFd stat(::openat(directory, "memory.stat", O_RDONLY | O_CLOEXEC));
    const auto inactive_file = find_memory_stat(pread_text(stat.get(), buffer.data(), buffer.size()), inactive_key());
    const UniqueFd used(::openat(directory, v1_ ? "memory.usage_in_bytes" : "memory.current", O_RDONLY | O_CLOEXEC));
    const auto usage = parse_number(pread_text(used.get(), buffer.data(), buffer.size()));
    into[i] = std::nullopt;
    if (usage && inactive_file) into[i] = std::max(Bytes{}, Bytes{static_cast<std::int64_t>(*usage)} - *inactive_file);
  }
}

void ReactionTarget::terminate() const noexcept {
  for (const auto& container : containers_) container->terminate();
}

void ReactionTarget::hold_first(DyingProcesses& processes) const noexcept {
  for (const auto& container : containers_)
    processes.add(UniqueFd(::fcntl(container->pidfd.get(), F_DUPFD_CLOEXEC, 0)));
}

/// If kill() signals each process, only one that is in the cgroup after its pidfd was opened is the right one.
void ReactionTarget::hold_all(DyingProcesses& processes) const noexcept {
  for (const auto& container : containers_) {
    Pids before;
    read_pids(container->directory.get(), before);
    std::array<UniqueFd, DyingProcesses::kCountMax> opened;
    for (std::size_t i = 0; i < before.count; ++i) opened[i] = try_open_pidfd(before.all[i]);
    Pids after;
    if (!kill_) read_pids(container->directory.get(), after);
    for (std::size_t i = 0; i < before.count; ++i) {
      if (kill_ || std::ranges::find(after.list(), before.all[i]) != after.list().end()) {
        processes.add(std::move(opened[i]));
      }
    }
  }
}

void ReactionTarget::give_processor() const noexcept {
  const std::string_view most = v1_ ? "262144" : "10000";
  for (const UniqueFd& weight : weights_) {
    if (weight) static_cast<void>(!::write(weight.get(), most.data(), most.size()));
  }
}

void ReactionTarget::kill(DyingProcesses& held) const noexcept {
  if (kill_ && ::write(kill_.get(), "1", 1) == 1) return;
  for (const auto& container : containers_) static_cast<void>(try_send_signal(container->pidfd.get(), SIGKILL));
  if (kill_) return;
  for (const UniqueFd& pidfd : held.held()) static_cast<void>(try_send_signal(pidfd.get(), SIGKILL));
}

}  // namespace spillway::host
