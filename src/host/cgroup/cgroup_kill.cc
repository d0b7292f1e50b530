#include "host/cgroup/cgroup_kill.h"

#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <set>

namespace spillway::host {
namespace {

constexpr int kCgroupDepthMax = 16;
constexpr std::chrono::milliseconds kRound(20);
constexpr std::size_t kKillRoundsMax = 8;

Outcome collect_pids(const CgroupDir& cgroup, int depth, std::set<pid_t>& found) {
  const Result<std::vector<pid_t>> own = cgroup.pids();
  if (!own && own.error().code != ErrorCode::kNotFound) return own.error();
  if (own) found.insert(own->begin(), own->end());
  if (depth == 0) return {};
  const Result<std::vector<std::string>> names = cgroup.children();
  if (!names) return {};  // the cgroup was removed meanwhile
  for (const std::string& name : *names) {
    const Result<CgroupDir> child = cgroup.open_child(name);
    if (child) SPILLWAY_TRY_VOID(collect_pids(*child, depth - 1, found));
  }
  return {};
}

/// Stops the processes of a cgroup from forking while they are killed. Thaws when it goes out of scope: a frozen
/// process of version 1 does not die.
class Freeze {
 public:
  explicit Freeze(const CgroupDir& cgroup) : cgroup_(cgroup), v1_(cgroup.version() == CgroupVersion::kV1) {
    frozen_ = cgroup_.has(Controller::kFreezer) && write(v1_ ? "FROZEN" : "1");
  }

  ~Freeze() {
    if (frozen_) static_cast<void>(write(v1_ ? "THAWED" : "0"));
  }

  Freeze(const Freeze&) = delete;
  Freeze& operator=(const Freeze&) = delete;

 private:
  bool write(std::string_view state) {
    return cgroup_.write(Controller::kFreezer, v1_ ? "freezer.state" : "cgroup.freeze", state).has_value();
  }

  const CgroupDir& cgroup_;
  bool v1_;
  bool frozen_;
};

/// Reads the processes once: one that is in the cgroup before and after its pidfd was opened is the one that was
/// listed.
Result<std::size_t> kill_through_pidfds(const CgroupDir& cgroup, std::set<pid_t>& killed) {
  SPILLWAY_TRY(before, tree_pids(cgroup));
  std::vector<std::pair<pid_t, UniqueFd>> held;
  for (const pid_t pid : before) {
    if (killed.contains(pid)) continue;
    Result<UniqueFd> fd = open_pidfd(pid);
    if (fd) held.emplace_back(pid, *std::move(fd));
  }
  if (held.empty()) return 0;
  SPILLWAY_TRY(after, tree_pids(cgroup));
  for (const auto& [pid, fd] : held) {
    if (!std::ranges::binary_search(after, pid)) continue;
    ignored(send_signal(fd.get(), SIGKILL), "it ended by itself");
    killed.insert(pid);
  }
  return held.size();
}

Outcome kill_by_freezing(const CgroupDir& cgroup) {
  const Freeze freeze(cgroup);
  std::set<pid_t> killed;
  for (std::size_t round = 0; round < kKillRoundsMax; ++round) {  // freezing takes a moment: forks may slip through
    SPILLWAY_TRY(found, kill_through_pidfds(cgroup, killed));
    if (found == 0) break;
  }
  return {};
}

/// Waits for at most `limit` until one of the processes ends.
void wait_for_any(const std::vector<pid_t>& pids, std::chrono::milliseconds limit) {
  std::vector<UniqueFd> held;
  std::vector<pollfd> polled;
  for (const pid_t pid : pids) {
    Result<UniqueFd> fd = open_pidfd(pid);
    if (!fd) continue;
    polled.push_back({fd->get(), POLLIN, 0});
    held.push_back(*std::move(fd));
  }
  static_cast<void>(::poll(polled.data(), polled.size(), static_cast<int>(limit.count())));
}

}  // namespace

Result<std::vector<pid_t>> tree_pids(const CgroupDir& cgroup) {
  std::set<pid_t> found;
  SPILLWAY_TRY_VOID(collect_pids(cgroup, kCgroupDepthMax, found));
  return std::vector<pid_t>(found.begin(), found.end());
}

Outcome kill_all(const CgroupDir& cgroup) {
  if (cgroup.version() == CgroupVersion::kV2 && cgroup.write(Controller::kMemory, "cgroup.kill", "1")) return {};
  return kill_by_freezing(cgroup);
}

Result<bool> is_empty(const CgroupDir& cgroup) {
  if (cgroup.version() == CgroupVersion::kV2) {
    const Result<std::string> events = cgroup.read(Controller::kMemory, "cgroup.events");
    if (events) return !("\n" + *events).contains("\npopulated 1");
    if (events.error().code == ErrorCode::kNotFound) return true;
    return events.error();
  }
  SPILLWAY_TRY(pids, tree_pids(cgroup));
  return pids.empty();
}

Outcome remove_tree(const CgroupDir& parent, const std::string& name) {
  const Result<CgroupDir> child = parent.open_child(name);
  if (child) {
    SPILLWAY_TRY(names, child->children());
    for (const std::string& below : names) SPILLWAY_TRY_VOID(remove_tree(*child, below));
  }
  return parent.remove_child(name);
}

Outcome destroy_tree(const CgroupDir& parent, const std::string& name, Duration patience) {
  const auto rounds = std::max<std::int64_t>(1, patience / kRound);
  for (std::int64_t round = 0;; ++round) {
    Result<CgroupDir> child = parent.open_child(name);
    if (child) {
      SPILLWAY_TRY_VOID(kill_all(*child));
      SPILLWAY_TRY(left, tree_pids(*child));
      if (!left.empty()) wait_for_any(left, kRound);
    }
    const Outcome removed = remove_tree(parent, name);
    if (removed || removed.error().code != ErrorCode::kConflict || round >= rounds) return removed;
    wait_for_any({}, std::chrono::milliseconds(2));
  }
}

}  // namespace spillway::host
