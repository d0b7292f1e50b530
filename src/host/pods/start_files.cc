#include "host/pods/start_files.h"

#include "host/pods/pod_limits.h"

namespace spillway::host {

void StartFiles::when_saved(const agent::StartContainer& command, runtime::Loop::Task start) {
  if (owns_cpus_or_memory(command)) {
    start = [this, start = std::move(start)]() mutable { checkpoints_.when_saved(std::move(start)); };
  }
  if (!devices_) return start();
  devices_(std::move(start));
}

}  // namespace spillway::host
