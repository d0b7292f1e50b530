// What Prometheus' client libraries tell of every process: processor time, memory, descriptors, start.
// Thread: any. Source: Prometheus docs, "Writing client libraries", process metrics.
#pragma once

#include <string>

namespace spillway::apps {

/// Of this process, now. What cannot be read is left out.
std::string process_metrics();

}  // namespace spillway::apps
