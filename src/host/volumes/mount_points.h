// Where something is mounted, from the text of /proc/PID/mountinfo. Thread: any (pure). Source: proc_pid_mountinfo(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// In the order of the text, with what it escapes.
std::vector<std::string> mount_points(std::string_view mountinfo);

/// Those below the directory `real`, as paths below `given`, which leads there; both end in a slash.
std::vector<std::string> mounts_below(const std::vector<std::string>& points, const std::string& real,
                                      const std::string& given);

}  // namespace spillway::host
