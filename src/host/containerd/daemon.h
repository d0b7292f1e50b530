// The containerd that belongs to one `spillway up`: started, taken over from an earlier process, ended. It runs in a
// session of its own, so that it and its containers outlive a killed `spillway up`; the next one takes it over.
// Thread: any but the loop: every function waits, within the bounds that it names. Source: containerd(8); proc_pid(5).
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/containerd/daemon_config.h"

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

struct Daemon {
  pid_t pid = 0;
  UniqueFd process;  // a pidfd
  std::string version;
  bool taken_over = false;  // running already
};

/// The record of the daemon's process: enough to distinguish it from a later one with the same number.
struct DaemonProcess {
  pid_t pid = 0;
  std::uint64_t started_ticks = 0;  // since the boot
  std::string boot;                 // boot_id of the kernel

  friend bool operator==(const DaemonProcess&, const DaemonProcess&) = default;
};

std::string to_text(const DaemonProcess& process);
/// nullopt: the text is not such a record.
std::optional<DaemonProcess> parse_daemon_process(std::string_view text);

/// Starts it, or takes over one that runs with the same configuration; one with another is ended first, and its
/// containers run on. Returns when it answers CRI calls: at most kDaemonStartMax. Errors name its log. `cancelled`:
/// checked every kDaemonPoll. Its sandbox image is not stored yet.
Result<Daemon> start_daemon(const DaemonPlaces& places, const DaemonSettings& settings,
                            const std::atomic<bool>& cancelled);

inline constexpr Duration kDaemonStartMax = seconds(60);
inline constexpr Duration kDaemonEndMax = seconds(10);  // time until the daemon is killed
inline constexpr Duration kDaemonPoll = milliseconds(20);

/// The daemon that an earlier process of this machine left running; nullopt: none runs.
std::optional<Daemon> find_daemon(const DaemonPlaces& places);

/// Ends the daemon, then its shims, its mounts and its state. Images stay. At most kDaemonEndMax. kConflict: something
/// stays mounted; its name is in the error.
Outcome end_daemon(const DaemonPlaces& places, Daemon daemon);

/// Ends a daemon that an earlier process left, if there is one; its containers end with it. Nothing is done where none
/// has been.
Outcome end_left_daemon(const DaemonPlaces& places);

}  // namespace spillway::host
