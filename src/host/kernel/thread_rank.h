// Threads that must run when the machine is busiest. Thread: any. Source: spec "Wake-up sources", 6; sched(7).
#pragma once

namespace spillway::host {

enum class ThreadRank { kRealTime, kNice, kOrdinary };

/// Puts the calling thread ahead of others as far as its rights go: round-robin real time, else nice -20. Processes it
/// starts do not inherit the former.
ThreadRank get_ahead() noexcept;

}  // namespace spillway::host
