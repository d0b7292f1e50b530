// The sources of `spillway record`: a directory of this machine, or the agent of a node or the controllers that lead,
// which serve it segment by segment.
// Thread: main. Bounds: kListBytesMax of a list, kSegmentsMax segments, so many bytes of a segment as
// host/files/recording_pages.h serves.
#pragma once

#include "base/error.h"
#include "cli/flags/command_line.h"
#include "runtime/loop.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apps {

class RecordingSource {
 public:
  struct Segment {
    std::string name;
    std::int64_t bytes = 0;  // size as listed
  };

  virtual ~RecordingSource() = default;

  /// Names of the copies that were saved, oldest first.
  virtual Result<std::vector<std::string>> copies() = 0;
  /// The segments, oldest first. `copy`: name of a saved copy; empty: the running recording. kNotFound: there is no
  /// such copy, or no recording.
  virtual Result<std::vector<Segment>> segments(const std::string& copy) = 0;
  /// The bytes of one segment. kNotFound: the segment was removed, as the oldest ones are.
  virtual Result<std::string> read(const std::string& copy, const Segment& segment) = 0;
};

/// Opens a node's state directory, the recording in it, or a controller's directory.
std::unique_ptr<RecordingSource> recording_in(const std::string& directory);

/// Opens the recording of a node, through the API server, or of the leading controllers. kInvalid: a kubeconfig that
/// does not parse.
Result<std::unique_ptr<RecordingSource>> recording_from(runtime::Loop& loop, const cli::RecordCommand& command);

}  // namespace spillway::apps
