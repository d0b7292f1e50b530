// The time for which a test waits for an event of this machine: a process, a thread, a socket. Only a failure reaches
// the end, so it is generous: a wait of a second may take ten times as long on a slow machine with others at work. A
// wait for something that must not happen is short, and named by its test.
#pragma once

#include <chrono>

namespace spillway::support {

inline constexpr std::chrono::seconds kPatience{300};
inline constexpr int kPatienceMs = 300'000;  // for poll()

}  // namespace spillway::support
