// Folders of the logs that a container runtime writes for the pods of a node, and the links by which collectors find
// them. Thread: loop; links are made and removed on the thread that is given. Source: Kubernetes docs, "Logging
// Architecture"; vectors kubelet-surface/container_log_link.
#pragma once

#include "api/object/meta.h"
#include "host/kernel/blocking_thread.h"
#include "telemetry/log.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::host {

/// "FOLDER/app/0.log", in the folder of a pod's logs.
std::string log_in(std::string_view folder, std::string_view container, std::int32_t attempt);

class LogFolders {
 public:
  struct Options {
    std::string pods;   // podLogsDir; empty: logs are kept in the directory of their pod
    std::string links;  // empty: none are made
  };

  /// `files` must outlive this object.
  LogFolders(BlockingThread& files, telemetry::Log log, Options options)
      : files_(files), log_(std::move(log)), options_(std::move(options)) {}

  /// The folder of a pod's logs. Log folders of an earlier version of this program stay in the directory of their pod,
  /// because its containers write there.
  std::string folder_of(const api::PodKey& pod, std::string_view uid, const std::string& directory) const;
  /// The folder of a pod that is gone, by the name of its directory; empty: its logs are in that.
  std::string folder_of_remains(std::string_view name) const;

  /// Makes the link to a container's log. Without a link the container runs nevertheless.
  void link(const api::PodKey& pod, const std::string& container, const std::string& id, const std::string& log) const;
  /// Runs on the thread of files, together with the log.
  void unlink(const api::PodKey& pod, const std::string& container, const std::string& id) const;
  /// Removes links to logs that are gone. `running`: ids of containers, whose logs are missing while they are rotated.
  void remove_old_links(const std::set<std::string>& running) const;

 private:
  BlockingThread& files_;
  mutable telemetry::Log log_;
  Options options_;
};

}  // namespace spillway::host
