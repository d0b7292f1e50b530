#include "host/observation/page_cache_relief.h"

#include "host/cgroup/memory_stat.h"
#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

constexpr std::string_view kStatFile = "memory.stat";

std::optional<std::uint64_t> value_of(std::string_view stat, std::string_view key) {
  while (!stat.empty()) {
    const std::string_view line = take_line(stat);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return parse_number(line.substr(key.size()));
  }
  return std::nullopt;
}

/// Writes `text` in one call; returns the kernel's error, or 0.
int write_once(const CgroupDir& cgroup, const char* file, std::string_view text) {
  const UniqueFd fd(::openat(cgroup.fd(Controller::kMemory), file, O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

bool machine_has_swap() {
  const Result<std::string> text = read_file("/proc/meminfo");
  if (!text) return true;
  const Result<MemInfo> machine = parse_meminfo(*text);
  return !machine || machine->swap_total_bytes.value_or(1) != 0;
}

/// EAGAIN: less than the amount was reclaimed.
int reclaim_v2(const CgroupDir& pod, Bytes bytes, std::string& problem) {
  int error = write_once(pod, "memory.reclaim", fmt::format("{} swappiness=0", bytes.count()));
  if (error == EINVAL) {  // kernels before 6.10 have no swappiness here
    if (machine_has_swap()) {
      problem = "the machine has swap, and this kernel cannot reclaim page cache alone (it can since Linux 6.10)";
      return error;
    }
    error = write_once(pod, "memory.reclaim", fmt::format("{}", bytes.count()));
  }
  if (error == ENOENT) problem = "this kernel has no memory.reclaim (Linux 5.19 has it)";
  if (error != 0 && error != ENOENT && error != EAGAIN)
    problem = errno_error(pod.file_path(Controller::kMemory) + "/memory.reclaim", error).text();
  return error;
}

/// Empties the cgroups below `cgroup` that have no process and no cgroup below them. Returns their number.
int empty_spent_cgroups(const CgroupDir& cgroup) {
  const Result<std::vector<std::string>> names = cgroup.children();
  if (!names) return 0;
  int emptied = 0;
  for (const std::string& name : *names) {
    const Result<CgroupDir> child = cgroup.open_child(name);
    if (!child) continue;
    const Result<std::vector<std::string>> below = child->children();
    const Result<std::vector<pid_t>> processes = child->pids();
    if (!below || !processes) continue;
    if (!below->empty()) {
      emptied += empty_spent_cgroups(*child);
    } else if (processes->empty() && write_once(*child, "memory.force_empty", "0") == 0) {
      ++emptied;
    }
  }
  return emptied;
}

}  // namespace

std::optional<Bytes> parse_page_cache(CgroupVersion version, std::string_view stat) {
  const bool v1 = version == CgroupVersion::kV1;
  const auto inactive = value_of(stat, v1 ? "total_inactive_file" : "inactive_file");
  const auto active = value_of(stat, v1 ? "total_active_file" : "active_file");
  if (!inactive || !active) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(*inactive + *active)};
}

std::optional<Bytes> parse_refaulted(CgroupVersion version, std::string_view stat) {
  const std::string prefix = version == CgroupVersion::kV1 ? "total_" : "";
  auto pages = value_of(stat, prefix + "workingset_refault_file");
  if (!pages) pages = value_of(stat, prefix + "workingset_refault");  // before Linux 5.9
  if (!pages) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(*pages) * ::sysconf(_SC_PAGESIZE)};
}

eviction::ReliefOutcome reclaim_page_cache(const CgroupDir& pod, const eviction::CacheReclaim& order) {
  eviction::ReliefOutcome outcome{.uid = order.uid, .asked = order.bytes, .freed = {}, .refaulted = {}};
  const CgroupVersion version = pod.version();
  const auto read_stat = [&] { return pod.read(Controller::kMemory, std::string(kStatFile)); };
  const Result<std::string> before = read_stat();
  int error = 0;
  if (version == CgroupVersion::kV2) {
    error = reclaim_v2(pod, order.bytes, outcome.problem);
  } else if (empty_spent_cgroups(pod) == 0) {
    outcome.problem = "cgroup version 1 can only give back the page cache of containers that have ended";
  }
  const Result<std::string> after = read_stat();
  if (!before || !after) return outcome;
  outcome.refaulted = parse_refaulted(version, *after);
  const auto had = parse_page_cache(version, *before);
  const auto has = parse_page_cache(version, *after);
  if (had && has) outcome.freed = std::max(*had - *has, Bytes{});
  // The kernel reports if it has reclaimed all of it, although the pod may have read as much again meanwhile.
  if (version == CgroupVersion::kV2 && error == 0) outcome.freed = order.bytes;
  return outcome;
}

void PageCacheRelief::run(const agent::RelieveMemory& command, std::span<const PodView> pods,
                          std::function<void(agent::Relieved)> done) {
  struct Work {
    CgroupDir cgroup;
    eviction::CacheReclaim order;
  };

  std::vector<Work> work;
  for (const eviction::CacheReclaim& order : command.pods) {
    const auto view = std::ranges::find(pods, order.uid, &PodView::uid);
    if (view == pods.end() || view->cgroup == nullptr) continue;
    const Result<CgroupDir> root = view->cgroup->hierarchy_root();
    if (!root) continue;
    Result<CgroupDir> own = root->open_path(view->cgroup->path());
    if (own && own->is_same_as(*view->cgroup)) work.push_back({*std::move(own), order});
  }
  if (!thread_) thread_.emplace(loop_, 1);
  const bool queued = thread_->submit([id = command.id, work = std::move(work), done]() -> runtime::Loop::Task {
    agent::Relieved answer{.id = id, .outcomes = {}};
    for (const Work& each : work) answer.outcomes.push_back(reclaim_page_cache(each.cgroup, each.order));
    return [done, answer = std::move(answer)]() mutable { done(std::move(answer)); };
  });
  if (queued) return;
  agent::Relieved refused{.id = command.id, .outcomes = {}};
  for (const eviction::CacheReclaim& order : command.pods)
    refused.outcomes.push_back({.uid = order.uid,
                                .asked = order.bytes,
                                .freed = {},
                                .refaulted = {},
                                .problem = "earlier reclaim is not over"});
  done(std::move(refused));
}

}  // namespace spillway::host
