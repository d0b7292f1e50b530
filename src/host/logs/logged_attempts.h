// The number of runs of containers, by the logs that remain: <container>/<attempt>.log below the directory of their
// pod, and the files that were rotated from these. Thread: any; waits for the disk.
// Source: spec "Pod lifecycle", 5.12, 15.1; vectors pod-lifecycle/restart_count.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

/// The attempt whose log a file of this name is, or was a part of: 3 of "3.log" and "3.log.20260102-030405.gz".
/// nullopt: of none.
std::optional<std::int32_t> logged_attempt(std::string_view file);

/// By container: the attempt after the last one with a log. Containers without logs are left out. Unreadable entries
/// count as absent.
std::map<std::string, std::int32_t> attempts_after_logs(const std::string& pod_directory);

}  // namespace spillway::host
