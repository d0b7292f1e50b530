// Rotates the logs of containers that a container runtime writes: a file that has grown too long is renamed, older
// parts are compressed, the oldest are removed. The caller asks the runtime to open the file anew. Source: Kubernetes
// docs, "Logging Architecture", log rotation; spec "Pod lifecycle", 15.2.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "host/logs/container_log.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// The acts on earlier parts of a log before it is rotated again.
struct RotationPlan {
  std::vector<std::string> remove;
  std::vector<std::string> compress;

  friend bool operator==(const RotationPlan&, const RotationPlan&) = default;
};

/// `log`: "0.log". `names`: all files of its folder. Afterwards there are at most files_max - 2 older parts, so that
/// the log and the part that is rotated off it next make files_max. Thread: any (pure).
RotationPlan plan_rotation(std::string_view log, std::vector<std::string> names, int files_max);

/// "0.log.20260102-030405", in UTC.
std::string rotated_name(std::string_view log, WallTime at);

struct LogTurn {
  /// kMissing: the file does not exist. kRenamed: to `older`; the runtime keeps writing into that until it reopens the
  /// log.
  enum class What { kShort, kMissing, kRenamed };

  What what = What::kShort;
  std::string older;
};

/// Rotates a log if it has reached its limit. Waits for the disk: for any thread but the loop.
Result<LogTurn> turn_log(const std::string& path, const LogLimits& limits, WallTime now);

/// The runtime does not write to a new file: the old one gets its name back, unless there is a new one after all.
Outcome turn_back(const std::string& path, const std::string& older);

}  // namespace spillway::host
