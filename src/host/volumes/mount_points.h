// Parses the mount points in the text of /proc/PID/mountinfo. Thread: any (pure). Source: proc_pid_mountinfo(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// The mount points in the order of the text, unescaped.
std::vector<std::string> mount_points(std::string_view mountinfo);

/// The mount points below the directory `real`, as paths below `given`, which leads there; both end in a slash.
std::vector<std::string> mounts_below(const std::vector<std::string>& points, const std::string& real,
                                      const std::string& given);

}  // namespace spillway::host
