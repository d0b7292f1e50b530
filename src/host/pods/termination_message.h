// The termination message of a container: the content of its message file, else, if it wants that, the end of its log.
// Thread: any; reads two files of the node's own. Source: Kubernetes docs, "Determine the Reason for Pod Failure"; spec
// "Pod lifecycle", 9.10.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::host {

/// A run of a container that has ended.
struct EndedRun {
  std::string message_file;  // message file of this run; empty or missing: no message
  std::string log;           // log of this attempt
  bool from_logs = false;    // terminationMessagePolicy FallbackToLogsOnError
  std::int32_t exit_code = 0;
  std::string reason;   // the runtime's: "OOMKilled"
  std::string message;  // the runtime's own words
};

/// At most policy/containers' kMessageFileMax bytes of the file and of the end of the log are read.
std::string read_termination_message(const EndedRun& run);

}  // namespace spillway::host
