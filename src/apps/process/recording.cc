#include "apps/process/recording.h"

#include <utility>

namespace spillway::apps {

std::string recording_directory(const std::string& state_dir) {
  return state_dir + "/recording";
}

std::unique_ptr<host::RecordingRing> open_recording(Process& process, const std::string& state_dir, Bytes bytes_max) {
  if (bytes_max == Bytes{}) return nullptr;
  auto ring = host::RecordingRing::open({.directory = recording_directory(state_dir),
                                         .bytes_max = bytes_max,
                                         .log = process.log(),
                                         .metrics = &process.metrics()});
  if (ring) return *std::move(ring);
  process.log().warning("nothing is recorded of this node", {{"error", ring.error().text()}});
  return nullptr;
}

}  // namespace spillway::apps
