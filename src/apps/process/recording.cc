#include "apps/process/recording.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::apps {

std::string recording_directory(const std::string& state_dir) {
  return state_dir + "/recording";
}

std::unique_ptr<host::RecordingRing> open_recording(Process& process, const std::string& state_dir, Bytes bytes_max) {
  if (bytes_max == Bytes{}) return nullptr;
  std::error_code failed;  // then making the ring fails with the error
  std::filesystem::create_directories(state_dir, failed);
  auto ring = host::RecordingRing::open({.directory = recording_directory(state_dir),
                                         .bytes_max = bytes_max,
                                         .log = process.log(),
                                         .metrics = &process.metrics()});
  if (ring) return *std::move(ring);
  process.log().warning("nothing is recorded", {{"directory", state_dir}, {"error", ring.error().text()}});
  return nullptr;
}

}  // namespace spillway::apps
