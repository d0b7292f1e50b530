// Links of /var/log/containers, by which collectors find the logs of containers.
// Thread: any that may wait for the disk. Only symbolic links are made and removed here, never what they lead to.
// Source: Kubernetes docs, "Logging Architecture"; vectors kubelet-surface/container_log_link.
#pragma once

#include "base/error.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// Makes the folder too. A link of this name is replaced. An entry of another kind is left: kConflict.
Outcome make_log_link(const std::string& folder, const std::string& name, const std::string& log);
void remove_log_links(const std::string& folder, const std::vector<std::string>& names);
/// Removes links to logs that do not exist, below `logs_directory`, unless `is_kept` of the link's name.
void remove_dangling_log_links(const std::string& folder, std::string_view logs_directory,
                               const std::function<bool(const std::string& name)>& is_kept);

}  // namespace spillway::host
