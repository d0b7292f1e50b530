// The processor time of a thread, which does not grow while the thread waits or another one has the processor. Read by
// clock.cc, where all clocks are read. Thread: any.
#pragma once

#include "base/time.h"

namespace spillway::runtime {

/// Processor time that the calling thread has used since it began.
Duration thread_processor_time();

}  // namespace spillway::runtime
