// A machine of a few lines: containers start, use as much as the test says, and stop on command. Nothing happens by
// itself.
#pragma once

#include "agent/contract/ports.h"
#include "api/object/summary.h"
#include "base/bytes.h"
#include "base/time.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::agent {

class ScriptedHost {
 public:
  /// Events a command causes, each after a delay.
  using Delayed = std::vector<std::pair<Duration, HostEvent>>;

  Delayed execute(const HostCommand& command, Now now);

  /// The failures of the next volumes.
  void fail_volumes(std::vector<VolumeFailure> failures) { volume_failures_ = std::move(failures); }

  /// Ends the main process of a container by itself.
  HostEvent exit(const std::string& uid, const std::string& container, std::int32_t code, Now now);

  void set_available(Bytes available) { available_ = available; }

  /// The kernel's MemAvailable; nullopt: it has none.
  void set_mem_available(std::optional<Bytes> available) { mem_available_ = available; }

  /// A pod's usage; freed when it has stopped.
  void set_working_set(const std::string& uid, Bytes used) { working_sets_[uid] = used; }

  /// Lets every start fail with this reason, until it is set to "".
  void set_start_failure(std::string reason) { start_failure_ = std::move(reason); }

  /// SIGTERM has no effect: containers die when their grace ends.
  void set_stubborn(bool stubborn) { stubborn_ = stubborn; }

  /// Lets no signal end this pod.
  void set_immortal(const std::string& uid) { immortal_.insert(uid); }

  void set_disk_available(Bytes available) { disk_available_ = available; }

  void set_disk_used(const std::string& uid, Bytes used) { disk_used_[uid] = used; }

  /// Memory held by dead containers; freed by the next ReclaimNode.
  void set_reclaimable(Bytes reclaimable) { reclaimable_ = reclaimable; }

  /// ReclaimNode is never answered.
  void set_silent_reclaim(bool silent) { silent_reclaim_ = silent; }

  /// The page cache of a pod. RelieveMemory takes its inactive part first; the active part is in its working set.
  void set_page_cache(const std::string& uid, api::FileCache cache) { page_caches_[uid] = cache; }

  /// RelieveMemory is never answered.
  void set_silent_relief(bool silent) { silent_relief_ = silent; }

  /// nullopt: the layout is unknown.
  void set_layout(std::optional<eviction::StorageLayout> layout) { layout_ = layout; }

  /// The answer to requests and connections at this port: a status, or none at all (0). Default: 200.
  void set_http(std::uint16_t port, int status) { http_[port] = status; }

  /// The exit code of commands in containers.
  void set_command_code(std::int32_t code) { command_code_ = code; }

  /// LimitGroup fails.
  void set_limits_fail(bool fail) { limits_fail_ = fail; }

  /// Answers RunSandbox with this problem; "": with a sandbox that has an address.
  void set_sandbox_problem(std::string problem) { sandbox_problem_ = std::move(problem); }

  /// Answers ResizePod with this problem.
  void set_resize_problem(std::string problem) { resize_problem_ = std::move(problem); }

  /// ResizePod is never answered.
  void set_silent_resize(bool silent) { silent_resize_ = silent; }

  /// The text of the last SaveCheckpoint of that file; nullopt: there was none.
  std::optional<std::string> saved(std::string_view file) const {
    const auto found = saved_.find(file);
    return found == saved_.end() ? std::nullopt : std::optional(found->second);
  }

  void set_unreadable(bool unreadable) { unreadable_ = unreadable; }

  /// Lets the machine answer no command at all.
  void set_silent(bool silent) { silent_ = silent; }

  /// Answers light observations with light summaries.
  void set_light(bool light) { light_ = light; }

  bool is_running(const std::string& uid, const std::string& container) const;

  const std::vector<HostCommand>& commands() const { return commands_; }

  std::vector<HostCommand> take_commands() { return std::exchange(commands_, {}); }

  /// The last command of a kind; nullptr: there was none.
  template <typename Command>
  const Command* last() const {
    for (auto it = commands_.rbegin(); it != commands_.rend(); ++it) {
      if (const auto* found = std::get_if<Command>(&*it)) return found;
    }
    return nullptr;
  }

  template <typename Command>
  std::size_t count() const {
    std::size_t found = 0;
    for (const HostCommand& command : commands_) found += std::holds_alternative<Command>(command) ? 1 : 0;
    return found;
  }

  static constexpr Bytes kCapacity = gibibytes(1);
  static constexpr Bytes kDiskCapacity = gibibytes(100);

 private:
  struct Process {
    std::int32_t attempt = 0;
    WallTime started;
  };

  struct Release {
    Instant at;
    std::string uid;
  };

  api::Summary summary(ObserveDepth depth, Now now);
  eviction::ReliefOutcome relieve(const eviction::CacheReclaim& order);

  std::map<std::pair<std::string, std::string>, Process> running_;  // by uid and container
  std::map<std::string, Bytes> working_sets_;
  std::vector<Release> releases_;
  std::vector<VolumeFailure> volume_failures_;
  std::vector<HostCommand> commands_;
  Bytes available_ = mebibytes(900);
  std::optional<Bytes> mem_available_;
  std::string start_failure_;
  bool stubborn_ = false;
  bool unreadable_ = false;
  bool light_ = false;
  std::set<std::string> immortal_;
  std::map<std::string, Bytes> disk_used_;
  Bytes disk_available_ = gibibytes(50);
  Bytes reclaimable_;
  bool silent_reclaim_ = false;
  std::map<std::string, api::FileCache> page_caches_;
  bool silent_relief_ = false;
  std::optional<eviction::StorageLayout> layout_ = eviction::StorageLayout{};
  std::map<std::uint16_t, int> http_;
  std::int32_t command_code_ = 0;
  bool silent_ = false;
  std::string sandbox_problem_;
  std::string resize_problem_;
  bool silent_resize_ = false;
  std::map<std::string, std::string, std::less<>> saved_;  // by file
  int sandboxes_ = 0;
  bool limits_fail_ = false;
};

}  // namespace spillway::agent
