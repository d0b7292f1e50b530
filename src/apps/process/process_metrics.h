// The standard process metrics of Prometheus' client libraries: processor time, memory, descriptors, start. Thread:
// any. Source: Prometheus docs, "Writing client libraries", process metrics.
#pragma once

#include <string>

namespace spillway::apps {

/// Measures this process. Unreadable values are left out.
std::string process_metrics();

}  // namespace spillway::apps
