// Files that ended containers leave on disk: their logs, and files that an ended pod has written. A node of the process
// runtime can free nothing else by itself. Thread: any but the loop (it waits for the disk). Source: Kubernetes docs,
// "Node-pressure Eviction", reclaiming node level resources.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"

#include <set>
#include <string>
#include <vector>

namespace spillway::host {

/// The logs of one pod: its directory holds <container>/<attempt>.log and, rotated, <attempt>.log.N.
struct PodLogs {
  std::string directory;
  std::set<std::string> live;  // paths of the logs that are being written
  std::string spent;           // a directory that is no longer written, removed with its contents; may be empty
};

/// Deletes every log that belongs to no live one, and what is spent, as far as it can; names the first problem.
agent::ReclaimOutcome delete_dead_logs(const std::vector<PodLogs>& pods);

/// Deletes one log of `folder` with what was rotated off it, as far as it can. The first that could not be deleted.
Outcome delete_log(const std::string& folder, const std::string& log);

}  // namespace spillway::host
