// The recording of a node that runs in this process.
#pragma once

#include "apps/process/process.h"
#include "base/bytes.h"
#include "host/files/recording_ring.h"

#include <memory>
#include <string>

namespace spillway::apps {

/// Below a node's state directory.
std::string recording_directory(const std::string& state_dir);

/// Null: `bytes_max` is 0, or it cannot be had, which the log says: a node does not stand still for that.
std::unique_ptr<host::RecordingRing> open_recording(Process& process, const std::string& state_dir, Bytes bytes_max);

}  // namespace spillway::apps
