// The recording of a node, or of the controllers, that run in this process.
#pragma once

#include "apps/process/process.h"
#include "base/bytes.h"
#include "host/files/recording_pages.h"
#include "host/files/recording_ring.h"

#include <memory>
#include <string>

namespace spillway::apps {

/// Below a node's state directory, or the one for the controllers.
std::string recording_directory(const std::string& state_dir);

/// Null: `bytes_max` is 0, or the ring cannot be made, which is logged: the process runs without it.
std::unique_ptr<host::RecordingRing> open_recording(Process& process, const std::string& state_dir, Bytes bytes_max);

}  // namespace spillway::apps
